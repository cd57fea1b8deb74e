"""Constants of this machine: from samples of kernels and collectives, and from runs the user timed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.cluster import Device, device_key
from capacity_tui.engine.errors import HardwareError, StorageError
from capacity_tui.engine.estimate.timing import attention_rate, gemm_rate
from capacity_tui.engine.files import make_folder, reading_error, write_atomically
from capacity_tui.engine.machine import FitError, MeasuredEfficiency, constants_file, possible, read_constants
from capacity_tui.engine.numeric import Curve
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.sampling.kernels import ELEMENT_BYTES, Kernel, KernelCase, Pass
from capacity_tui.engine.runs.sampling.samples import Sample, SampleFile

T = TypeVar("T")
Floats = NDArray[np.float64]
ELEMENTWISE = ("norm", "activation", "residual")
# What the shape constants of a product may be: the fit takes the best pair.
FILLS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
RAMPS = (0.0, 16.0, 32.0, 64.0, 128.0, 256.0)
HALF_LENGTHS = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0)
HALF_WIDTHS = (1.0, 8.0, 16.0, 32.0, 64.0)
HALF_BYTES = (0.0, 2.0**16, 2.0**20, 2.0**22, 2.0**23, 2.0**24)
FEWEST = 3


def fit_samples(device: Device, files: Sequence[SampleFile]) -> MeasuredEfficiency:
    """Return the constants that describe a device's samples best, with how well they do.

    Args:
        files: its samples; of equal cases the first file's count.

    Raises:
        HardwareError: there are too few samples to fit anything, or what they say cannot be.
    """
    samples = tuple({sample.key: sample for file in reversed(files) for sample in file.samples}.values())
    fitted = _Constants(device)
    stream = [_bandwidth(sample) for sample in samples if sample.name in ("copy", "triad") and _large(sample, samples)]
    fitted.shares("stream", stream)
    fitted.shares("elementwise", [_bandwidth(sample) for sample in samples if sample.name in ELEMENTWISE])
    for name in ("loss", "optimizer"):
        fitted.memory_bound(name, [sample for sample in samples if sample.name == name])
    for dtype in sorted({sample.dtype for sample in samples}):
        fitted.products(dtype, [s for s in samples if s.name == "gemm" and s.dtype == dtype])
        fitted.attention(dtype, [s for s in samples if s.name == "attention" and s.dtype == dtype])
    fitted.collectives([sample for sample in samples if "group" in sample.shape])
    context = next((file.context_bytes for file in files if file.context_bytes), None)
    if context:
        fitted.constants["context_bytes"] = context
    if not fitted.errors:
        raise HardwareError("too few samples to fit anything", device.name, "run capacity-tui sample kernels first")
    software = {name: version for file in reversed(files) for name, version in file.software.items() if version}
    measured = MeasuredEfficiency(
        device=device_key(device),
        date=max(sample.date for sample in samples),
        software=software,
        gemm=fitted.gemm,
        constants=fitted.constants,
        curves=tuple(fitted.curves),
        errors=tuple(fitted.errors),
    )
    return possible(measured)


def chosen_files(files: Sequence[SampleFile]) -> tuple[SampleFile, ...]:
    """Return the files that describe a device as it is used now, of all its files, the newest first.

    Those are the newest of kernels, through torch rather than NumPy, and the newest of collectives.
    """
    passed = [file for file in files if "collectives" in file.software]
    frameworks = [file for file in files if file not in passed and "torch" in file.software]
    plain = [file for file in files if file not in passed and file not in frameworks]
    return (*(frameworks or plain)[:1], *passed[:1])


def constants_before(measured: MeasuredEfficiency) -> MeasuredEfficiency | None:
    """Return the constants that writing a device's would replace; None where those are the shipped ones."""
    try:
        return read_constants(constants_file(measured.device))
    except StorageError:
        return None


def write_measured(measured: MeasuredEfficiency, folder: Path | None = None) -> Path:
    """Write a device's constants to the user's folder, and return the file; what was there before stays beside it.

    Raises:
        StorageError: it cannot be written.
    """
    path = constants_file(measured.device, folder)
    make_folder(path.parent)
    _write(_before(path), _text(path))
    _write(path, json.dumps(asdict(measured), indent=1) + "\n")
    return path


def restore_constants(device: str) -> MeasuredEfficiency | None:
    """Put a device's constants back as they were before they were last written, and return them; None: as shipped."""
    path = constants_file(device)
    if not _before(path).exists():
        raise StorageError("nothing was calibrated that could be taken back", device)
    now, before = _text(path), _text(_before(path))
    _write(_before(path), now)
    if not before:
        path.unlink(missing_ok=True)
        return None
    _write(path, before)
    return read_constants(path)


def _before(path: Path) -> Path:
    return path.with_name(f"{path.name}.before")


def _text(path: Path) -> str:
    """Return what a file holds; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise reading_error(error, path) from error


def _write(path: Path, text: str) -> None:
    write_atomically(path, text, overwrite=True)


@dataclass(frozen=True, slots=True)
class PassFit:
    """What all-gathers, reduce-scatters and all-reduces say of a link."""

    hop_seconds: float  # one step from one member to the next
    half_bytes: float  # payload at which the change of protocol costs half of what it can
    bandwidth: float  # B/s in one direction of large payloads
    modelled: Floats  # seconds of each sample by these three
    seconds: Floats  # seconds of each sample

    @property
    def error(self) -> float:
        """Median of how far the samples are from what is modelled."""
        return float(np.median(np.abs(self.modelled / self.seconds - 1.0)))


def fit_passes(samples: Sequence[Sample], half_bytes: Sequence[float] = (0.0,)) -> PassFit | None:
    """Return what collectives say of a link; None where there are too few.

    Args:
        half_bytes: changes of protocol to try.
    """
    passes = [s for s in samples if s.name in ("all_gather", "reduce_scatter", "all_reduce")]
    if len(passes) < FEWEST:
        return None
    payload, group, seconds = _columns(passes, "bytes", "group")
    rounds = np.where([s.name == "all_reduce" for s in passes], 2.0, 1.0)
    hop = float(np.median((seconds / rounds / (group - 1.0))[payload == payload.min()]))
    moved = payload * (group - 1.0) / group

    def shape(half: float) -> Floats:
        rest = np.maximum(seconds / rounds - hop * (group - 1.0), 1e-9)
        slower = 1.0 + half / (payload + half) if half else np.ones(len(payload))
        bandwidth = float(np.median((moved * slower / rest)[payload == payload.max()]))
        return np.asarray(rounds * (hop * (group - 1.0) + moved * slower / bandwidth))

    every = np.ones(len(passes), dtype=bool)
    half = _best(lambda value: 1.0 / shape(value), 1.0 / seconds, every, half_bytes)
    modelled = shape(half)
    rest = (modelled / rounds - hop * (group - 1.0))[payload == payload.max()]
    slower = 1.0 + half / (payload.max() + half) if half else 1.0
    bandwidth = float(np.median(moved[payload == payload.max()] * slower / rest))
    return PassFit(hop, half, bandwidth, modelled, seconds)


class _Constants:
    """Constants found so far; each method fits one kind of samples."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.gemm: dict[str, float] = {}
        self.constants: dict[str, float] = {}
        self.curves: list[Curve] = []
        self.errors: list[FitError] = []

    def _now(self, name: str) -> float:
        return self.constants.get(name, float(getattr(self._device.efficiency, name)))

    def shares(self, name: str, bandwidths: Sequence[float]) -> None:
        """Fit a share of the memory bandwidth: bytes of all kernels over their time, each kernel alike."""
        if not bandwidths:
            return
        rates = np.array(bandwidths)
        together = float(1.0 / np.mean(1.0 / rates))
        self.constants[name] = together / float(self._device.bandwidth)
        self._judge(name, np.full(len(rates), together), rates)

    def memory_bound(self, name: str, samples: Sequence[Sample]) -> None:
        """Keep the share of the memory bandwidth a kernel reaches at each size."""
        if len(samples) < 2:
            return
        sizes = np.array([_case(sample).bytes for sample in samples])
        shares = sizes / np.array([sample.undisturbed for sample in samples]) / float(self._device.bandwidth)
        places, ratios = _binned(sizes, shares)
        self.curves.append(Curve(name, places, ratios))
        self._judge(name, np.interp(np.log(sizes), np.log(places), ratios), shares)

    def products(self, dtype: str, samples: Sequence[Sample]) -> None:
        """Fit the share of the peak and how it falls with shape."""
        if dtype not in self._device.peaks or len(samples) < FEWEST:
            return
        m, n, k, seconds = _columns(samples, "m", "n", "k")
        width = float(ELEMENT_BYTES[dtype])
        flops, moved = 2.0 * m * n * k, width * (m * k + k * n + m * n)
        rates = flops / seconds
        peak, bandwidth = self._device.peaks[dtype], float(self._device.bandwidth * self._now("stream"))
        bound = flops / moved * bandwidth > rates * 1.5
        chosen = bound if bound.sum() >= FEWEST else np.ones(len(rates), dtype=bool)

        def shape(pair: tuple[float, float]) -> Floats:
            fill, ramp = pair
            return np.asarray(gemm_rate(m, n, k, peak, 1.0, self._device.units, fill, ramp * 2.0 / width))

        fill, ramp = _best(shape, rates, chosen, [(fill, ramp) for fill in FILLS for ramp in RAMPS])
        share = float(np.median((rates / shape((fill, ramp)))[chosen]))
        self.gemm[dtype] = share / float(self._device.efficiency.sustained * self._device.clock)
        if len(self.gemm) == 1:
            # The constants of shape are the device's, not a type's: the first type sampled sets them.
            self.constants |= {"wave_fill": max(fill, 1e-6), "ramp_length": max(ramp, 1e-6)}
        modelled = shape((self._now("wave_fill"), self._now("ramp_length"))) * share
        self._curve(f"gemm.{dtype}", flops, np.minimum(modelled, flops / moved * bandwidth), rates)

    def attention(self, dtype: str, samples: Sequence[Sample]) -> None:
        """Fit fused attention of both passes: share of the peak, length and width of head of half of it."""
        for step, name in (("forward", "attention"), ("backward", "attention_backward")):
            self._attention(dtype, name, [sample for sample in samples if sample.step == step])

    def _attention(self, dtype: str, name: str, samples: Sequence[Sample]) -> None:
        if dtype not in self._device.peaks or len(samples) < 2:
            return
        peak = self._device.peaks[dtype] * float(self._device.clock)
        length, head, seconds = _columns(samples, "seq", "head_dim")
        flops = np.array([_case(sample).flops for sample in samples])
        rates = flops / seconds

        def shape(pair: tuple[float, float]) -> Floats:
            half, width = pair
            return np.asarray(attention_rate(length, head, peak, 1.0, half, width))

        every = np.ones(len(rates), dtype=bool)
        widths = HALF_WIDTHS if len(set(head)) > 1 else HALF_WIDTHS[:1]
        half, width = _best(shape, rates, every, [(half, width) for half in HALF_LENGTHS for width in widths])
        share = float(np.median(rates / shape((half, width))))
        # All types share these: they are as the first type sampled has them.
        for part, value in (("reach", share), ("half_length", half), ("half_width", width)):
            self.constants.setdefault(f"{name}_{part}", value)
        self._curve(f"{name}.{dtype}", flops, shape((half, width)) * share, rates)

    def collectives(self, samples: Sequence[Sample]) -> None:
        """Fit hop, share of the link and change of protocol to all-gathers and reduce-scatters."""
        fit = fit_passes(samples, HALF_BYTES)
        if fit is None:
            return
        self.constants |= {
            "collective_hop_seconds": fit.hop_seconds,
            "collective_half_bytes": max(fit.half_bytes, 1.0),
            "collective_share": fit.bandwidth / float(self._device.link_bandwidth),
        }
        self._judge("collectives", 1.0 / fit.modelled, 1.0 / fit.seconds)

    def _curve(self, name: str, sizes: Floats, modelled: Floats, measured: Floats) -> None:
        places, ratios = _binned(sizes, measured / modelled)
        between = _between(sizes, measured / modelled) if len(places) >= FEWEST else None
        if len(places) >= FEWEST:
            self.curves.append(Curve(name, places, ratios))
        self._judge(name, modelled, measured, between)

    def _judge(self, name: str, modelled: Floats, measured: Floats, between: float | None = None) -> None:
        errors = np.abs(measured / modelled - 1.0)
        self.errors.append(FitError(name, len(errors), float(np.median(errors)), float(errors.max()), between))


def _columns(samples: Sequence[Sample], *names: str) -> tuple[Floats, ...]:
    sizes = (np.array([float(sample.shape[name]) for sample in samples]) for name in names)
    return (*sizes, np.array([sample.undisturbed for sample in samples]))


def _case(sample: Sample) -> KernelCase:
    """Return what a sample of a kernel timed."""
    return KernelCase(cast("Kernel", sample.name), cast("Pass", sample.step), sample.dtype, sample.shape)


def _bandwidth(sample: Sample) -> float:
    """Return the B/s of a memory-bound sample."""
    return _case(sample).bytes / sample.undisturbed


def _large(sample: Sample, samples: Sequence[Sample]) -> bool:
    """Whether a copy is of the largest size: smaller ones stay in caches."""
    return sample.shape["elements"] == max(s.shape["elements"] for s in samples if s.name == sample.name)


def _best(shape: Callable[[T], Floats], rates: Floats, chosen: NDArray[np.bool_], values: Sequence[T]) -> T:
    """Return the value whose shape follows the rates most closely, up to a factor."""

    def misfit(value: T) -> float:
        ratios = np.log((rates / shape(value))[chosen])
        return float(np.median(np.abs(ratios - np.median(ratios))))

    return min(values, key=misfit)


def _binned(sizes: Floats, ratios: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the median ratio of each power of two of the sizes; the ends stay where the samples end."""
    bins = np.round(np.log2(sizes))
    occupied = np.unique(bins)
    places = [float(np.exp(np.mean(np.log(sizes[bins == bin_index])))) for bin_index in occupied]
    if len(places) > 1:
        places[0], places[-1] = float(sizes.min()), float(sizes.max())
    return tuple(places), tuple(float(np.median(ratios[bins == bin_index])) for bin_index in occupied)


def _between(sizes: Floats, ratios: Floats) -> float:
    """Return the median error of samples predicted from all others."""
    errors = []
    for index in range(len(sizes)):
        others = np.arange(len(sizes)) != index
        places, values = _binned(sizes[others], ratios[others])
        guess = float(np.interp(np.log(sizes[index]), np.log(places), values))
        errors.append(abs(guess / ratios[index] - 1.0))
    return float(np.median(errors))
