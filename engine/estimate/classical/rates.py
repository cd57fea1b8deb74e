"""What the cores that fit a classical model reach, and the kernels a fit is made of."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from capacity_tui.engine.catalog.rows import Algorithm
from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.timing.roofline import gemm_bytes, gemm_rate
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.keys import Parts
from capacity_tui.engine.models import ClassicalSpec
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import FP32_BYTES, FP64_BYTES, NANO

narrow_share = formula()
missed_share = formula()  # Share of the visits to ``visited`` bytes in random order that go to memory


@equation
def panel_bytes(data: Number, columns: Number, panel: Number, passes: Number, missed: Number) -> Number:
    """Bytes that the panels of an orthogonal factorization move between caches and memory."""
    return passes * np.minimum(panel, columns) * data * missed


effective_cores = formula()  # Cores' worth of speed that several cores give


@dataclass(frozen=True, slots=True)
class Rates:
    """The machine as one fit sees it."""

    row: Algorithm  # constants of the algorithm
    element_bytes: Number  # bytes of a number
    peak: Number  # dense peak of the cores used, FLOP/s
    reach: Number  # share of it that large matrix products sustain
    bandwidth: Number  # what the cores used stream, B/s
    cores: Number  # cores that share matrix products and passes over the data
    workers: Number  # cores' worth of speed in the algorithm's own loops
    fill: Number  # waves of tiles lost to the last, partly filled one
    half_sizes: Mapping[str, Number]  # sizes at which the kernels of all algorithms reach half their rate
    panel: Number  # columns that orthogonal factorizations work on one by one
    panel_passes: Number  # times that a panel is read and written for each of its columns
    cache: Number  # bytes that one core finds in its caches
    sparse_slowdown: Number  # time of a multiplication of sparse operands over that of dense ones

    def product(
        self,
        name: str,
        m: Number,
        n: Number,
        k: Number,
        *,
        kernel: str = "product",
        count: Number = 1.0,
        work: Number = 1.0,
    ) -> Operator:
        """Return a matrix product, or a factorization that is mostly products.

        Args:
            m: rows of the result.
            n: columns of the result.
            k: inner length.
            kernel: which shares of the product rate apply.
            count: how often it runs.
            work: its FLOPs over the ``2 m n k`` of the full product: symmetry and zeros save some.
        """
        half = self.row.half_sizes.get(kernel, self.half_sizes.get(kernel, self.half_sizes["product"]))
        share = self.row.shares.get(kernel, 1.0) * narrow_share(np.minimum(m, n), half)
        rate = gemm_rate(m, n, k, self.peak, self.reach, self.cores, self.fill, self.half_sizes["inner"]) * share
        flops = 2.0 * m * n * k * work
        moved = gemm_bytes(m, n, k, self.element_bytes)
        return Operator(name, "compute", "step", "layer", flops, moved, rate, self.bandwidth, count)

    def stream(self, name: str, moved: Number, *, flops: Number = 0.0, count: Number = 1.0) -> Operator:
        """Return passes over memory that move ``moved`` bytes in all."""
        return Operator(name, "compute", "step", "layer", flops, moved, self.peak, self.bandwidth, count)

    def loop(self, name: str, number: Number, kind: str, *, count: Number = 1.0, flops: Number = 2.0) -> Operator:
        """Return a loop of ``number`` elementary operations whose time the row gives in nanoseconds.

        Args:
            number: elementary operations.
            kind: which of the row's times applies.
            count: how often it runs.
            flops: FLOPs of one of them.
        """
        rate = flops * self.workers / (self.row.nanoseconds[kind] * NANO)
        return Operator(name, "compute", "step", "layer", flops * number, 0.0, rate, self.bandwidth, count)

    def panels(self, name: str, long: Number, short: Number) -> Operator:
        """Return what panels of a tall matrix's factorization move, beyond the products that follow each of them."""
        column = long * self.element_bytes
        missed = missed_share(column * np.minimum(self.panel, short), self.cache)
        return self.stream(name, panel_bytes(column * short, short, self.panel, self.panel_passes, missed))

    def misses(self, rows: Number, held: Number, *, count: Number = 1.0) -> Operator:
        """Return the waits for memory of visits to rows in random order, ``held`` bytes in all."""
        missed = rows * missed_share(held, self.cache)
        return self.loop("waits for rows in random order", missed, "miss", count=count, flops=1.0)


def rates_of(device: Device, row: Algorithm, common: Algorithm, precision: str, cores: Number) -> Rates:
    """Return the rates of a fit on so many cores; on a GPU those are its multiprocessors."""
    on_cpu = device.is_processor
    used = 1.0 if row.single_threaded and on_cpu else cores
    stream = device.bandwidth * device.efficiency.stream
    return Rates(
        row=row,
        element_bytes=FP64_BYTES if precision == "fp64" else FP32_BYTES,
        peak=device.peak(precision) * used / device.units,
        reach=device.gemm_reach(precision),
        bandwidth=np.minimum(stream, used * common.bytes["core_bandwidth"]) if on_cpu else stream,
        cores=used,
        workers=effective_cores(used, row.serial) if on_cpu else used * common.ratios["multiprocessor"],
        fill=device.efficiency.wave_fill,
        half_sizes=common.half_sizes,
        panel=common.ratios["panel"],
        panel_passes=common.passes["panel"],
        cache=common.bytes["cache"],
        sparse_slowdown=common.ratios["sparse_slowdown"],
    )


INDEX_BYTES = FP32_BYTES  # A sparse row keeps the column of each value, and where the row begins


@dataclass(frozen=True, slots=True)
class Fit:
    """What an algorithm says about one fit."""

    parameters: Number  # numbers the fitted model keeps
    inference_flops: Number  # FLOPs to predict one sample
    operators: tuple[Operator, ...]  # kernels of the fit
    memory: Mapping[str, Number]  # bytes at the peak, by part: data, copies, work, model
    peak: str  # where memory peaks, in words


@equation
def table_bytes(n: Number, p: Number, density: Number, element_bytes: Number) -> Number:
    """Bytes of the training table."""
    if density >= 1.0:
        return n * p * element_bytes
    return n * p * density * (element_bytes + INDEX_BYTES) + n * INDEX_BYTES


@equation
def held_bytes(**addends: Number) -> Number:
    """Bytes of what is held side by side."""
    return sum(addends.values(), start=0.0)


@equation
def kept_numbers(**addends: Number) -> Number:
    """Numbers a fitted model keeps."""
    return sum(addends.values(), start=0.0)


@equation
def prediction_flops(**addends: Number) -> Number:
    """FLOPs to predict one sample."""
    return sum(addends.values(), start=0.0)


def memory_parts(**parts: Mapping[str, Number]) -> dict[str, Number]:
    """Return bytes by part from the bytes of what each part is made of."""
    return {part: held_bytes.for_part(f"{Parts.MEMORY}.{part}")(**addends) for part, addends in parts.items()}


def data_bytes(spec: ClassicalSpec, element_bytes: Number) -> Number:
    """Bytes of the training table of a plan; the smaller of its dense and its sparse form."""
    dense = table_bytes(spec.n, spec.p, 1.0, element_bytes)
    return dense if spec.density >= 1.0 else min(dense, table_bytes(spec.n, spec.p, spec.density, element_bytes))
