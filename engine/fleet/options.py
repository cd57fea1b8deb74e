"""Machines that a job could run on: what each cannot be better than, and the plan there, made when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from capacity_tui.engine.catalog import Catalog, ModelSize, Precision, load_catalog, named_numbers
from capacity_tui.engine.catalog.fleet_files import Remark
from capacity_tui.engine.catalog.rows import Assumption
from capacity_tui.engine.cluster import SIXTEEN_BIT, Cluster, resolve_cluster
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import figures_of, formula
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.modes import ModePlan, fill
from capacity_tui.engine.solve.search import Rejected, hardware_ids
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import GIGA, HOUR_SECONDS

TIME, USD, FLOPS = Figure.ESTIMATED_TRAIN_TIME_SECONDS, Figure.COST_USD, Figure.TOTAL_FLOPS
NAME, DEVICES = Key.HARDWARE_NAME, Key.HARDWARE_DEVICES


@dataclass(frozen=True, slots=True)
class Option:
    """A number of devices of one kind."""

    name: str
    devices: int
    usd_per_hour: float
    flops_per_second: float  # the most that they reach together

    def least_seconds(self, flops: float) -> float:
        """Return the time below which they do not do so many FLOPs."""
        return flops / self.flops_per_second

    def least_usd(self, flops: float) -> float:
        """Return the price below which they do not do so many FLOPs."""
        return self.least_seconds(flops) / HOUR_SECONDS * self.usd_per_hour


@dataclass(frozen=True, slots=True, eq=False)
class PlannedOption:
    """A plan of the job on some machines."""

    option: Option
    set: Mapping[str, object]  # the change that makes the plan this one
    filled: ModePlan  # the plan, filled and estimated
    figures: Mapping[str, Interval]

    @property
    def seconds(self) -> float:
        """Time of the job."""
        return mean(self.figures[TIME].value)

    @property
    def usd(self) -> float:
        """Price of the job."""
        return mean(self.figures[USD].value)


@dataclass(slots=True)
class Options:
    """Machines to choose among; each is planned once, when its plan is asked for."""

    plan: Plan
    opened: Mapping[str, object]  # what a machine decides of it, left to the balanced mode
    # returns which limit a plan does not keep, in words; empty where it keeps all of them
    keeps: Callable[[Mapping[str, Interval]], str]
    catalog: Catalog
    machine: Machine | None
    flops: float | None = None  # of the job, once it was planned anywhere; None before
    _planned: dict[Option, PlannedOption | None] = field(default_factory=dict)
    _missed: dict[str, list[Option]] = field(default_factory=dict)
    _refused: dict[str, list[Option]] = field(default_factory=dict)

    @property
    def evaluated(self) -> int:
        """How many were planned."""
        return len(self._planned)

    @property
    def missed(self) -> tuple[Rejected, ...]:
        """What machines miss."""
        return _counted(self._missed)

    @property
    def refused(self) -> tuple[Rejected, ...]:
        """What cannot be, and why."""
        return _counted(self._refused)

    @property
    def holding(self) -> tuple[PlannedOption, ...]:
        """The plans that keep all limits."""
        return tuple(entry for entry in self._planned.values() if entry is not None)

    def of(self, names: Iterable[str], counts: Sequence[int], most: int) -> Iterator[Option]:
        """Yield numbers of devices of what names stand for, where their price is known.

        Args:
            names: instances, devices, or whoever makes them or rents them out.
            counts: numbers of devices; none for whole instances, doubled up to the most.
        """
        for name in _rented(names, self.catalog):
            sold = self.catalog.sold_together(name)
            doubled = (sold << power for power in range(most.bit_length()))
            for devices in counts or [count for count in doubled if count <= max(most, sold)]:
                try:
                    cluster = self._cluster(name, devices)
                except CapacityError as error:
                    self._refused.setdefault(error.title, []).append(Option(name, devices, 0.0, 0.0))
                    continue
                if cluster.price.rate is not None:
                    yield Option(name, devices, cluster.price.rate, _flops_per_second(cluster, self.plan))

    def planned(self, option: Option) -> PlannedOption | None:
        """Return the job on some machines; None where it cannot be there, or keeps not all limits."""
        if option not in self._planned:
            self._planned[option] = self._filled(option)
        return self._planned[option]

    def leave_out(self, option: Option, why: str) -> None:
        """Note that machines cannot keep a limit, without planning them."""
        self._missed.setdefault(why, []).append(option)

    def _filled(self, option: Option) -> PlannedOption | None:
        change = self._change(option.name, option.devices)
        try:
            plan = edited(self.plan, change, self.catalog).plan
            filled = fill(plan, "balanced", self.machine, self.catalog)
        except CapacityError as error:
            self._refused.setdefault(error.title, []).append(option)
            return None
        figures = figures_of(filled.estimate)
        self.flops = mean(figures[FLOPS].value) if FLOPS in figures else self.flops
        estimate = filled.estimate
        why = self.keeps(figures) if estimate.fits is not False else f"{estimate.verdict.words}: {estimate.reason}"
        if why:
            self.leave_out(option, why.partition(":")[0] if estimate.fits is False else why)
            return None
        return PlannedOption(option, change, filled, figures)

    def _change(self, name: str, devices: int) -> dict[str, object]:
        return {**self.opened, NAME: name, DEVICES: devices}

    def _cluster(self, name: str, devices: int) -> Cluster:
        plan = edited(self.plan, self._change(name, devices), self.catalog).plan
        return resolve_cluster(plan.hardware, plan.pricing, self.catalog, self.machine)


def first_options(
    options: Options,
    among: Iterable[Option],
    bound: Callable[[Option], float],
    figure: Callable[[PlannedOption], float],
    wanted: int,
    shown: Callable[[], bool],
) -> tuple[PlannedOption, ...]:
    """Return the best plans, each of another instance; no more is planned than could be better by its bound.

    Args:
        bound: what a plan on machines cannot be better than.
        figure: what is to be least.
        shown: called after each plan; whether to stop.
    """
    best: dict[str, PlannedOption] = {}
    for option in sorted(among, key=bound):
        chosen = sorted(best.values(), key=figure)[:wanted]
        if len(chosen) == wanted and bound(option) >= figure(chosen[-1]):
            break
        result = options.planned(option)
        if result is not None and (option.name not in best or figure(result) < figure(best[option.name])):
            best[option.name] = result
        if shown():
            break
    return tuple(sorted(best.values(), key=figure)[:wanted])


def _rented(names: Iterable[str], catalog: Catalog) -> tuple[str, ...]:
    """Return the hardware that names stand for; of a maker that also rents out, what it rents out."""
    instances: list[str] = []
    for name in names:
        ids = hardware_ids((name,), catalog)
        instances += [row_id for row_id in ids if row_id in catalog.instances] or ids
    return tuple(dict.fromkeys(instances))


def _flops_per_second(cluster: Cluster, plan: Plan) -> float:
    """Return the most FLOPs a second that devices sustain in the plan's type of number, or in any that modes choose."""
    device, given = cluster.device, plan.training.precision
    types = ("fp32", "tf32", *SIXTEEN_BIT) if given == AUTO else (given,)
    return max(device.peak(name) * device.gemm_reach(name) for name in types) * mean(cluster.devices)


def _counted(data: Mapping[str, Sequence[Option]]) -> tuple[Rejected, ...]:
    ordered = sorted(data.items(), key=lambda pair: -len(pair[1]))
    return tuple(Rejected(why, len(some), f"{some[0].devices} x {some[0].name}") for why, some in ordered)


@dataclass(frozen=True)
class SizeInPrecision:
    """The weights of one model size in one precision."""

    size: ModelSize  # row of the size
    precision: Precision  # row of the precision
    weights_bytes: float  # what the weights take, alone

    @property
    def weights_gb(self) -> float:
        """The same in billions of bytes, the unit in which devices' memory is marketed."""
        return self.weights_bytes / GIGA


weights_bytes = formula()  # Bytes of a model's weights in one format, alone


def sizes_in_precisions(
    catalog: Catalog, precisions: Iterable[str] = (), sizes: Iterable[str] = ()
) -> tuple[SizeInPrecision, ...]:
    """Return every size, or those named, in every precision, or those named; CatalogError for an unknown name."""
    rows = [catalog.precisions.find(name) for name in precisions or catalog.precisions]
    return tuple(
        SizeInPrecision(size, row, float(weights_bytes(size.parameter_count_billion * GIGA, row.compute_bytes)))
        for size in (catalog.model_sizes.find(name) for name in sizes or catalog.model_sizes)
        for row in rows
    )


startup_seconds = formula()  # Seconds from the order of an instance until it works


@dataclass(frozen=True, slots=True)
class Startup:
    """How long it takes until an instance works."""

    seconds: Interval  # from its order on
    parts: tuple[tuple[str, float], ...] = ()  # the assumptions that it is the sum of, by name; none where it was said


def assumed_startup(weights: float, catalog: Catalog) -> Startup:
    """Return the time that is assumed until an instance works that reads so many bytes of weights."""
    rows = catalog.assumptions
    boot, image, engine = (rows[name] for name in ("instance-boot", "image-pull", "engine-start"))
    disk = rows["weight-load-bandwidth"]
    parts = tuple((row.name, row.value) for row in (boot, image, engine))
    ends = [
        mean(startup_seconds(_end(boot, end), _end(image, end), _end(engine, end), weights, _end(disk, -end) * GIGA))
        for end in (0, -1, 1)
    ]
    return Startup(Interval(*ends), (*parts, ("reading of the weights", weights / (disk.value * GIGA))))


def _end(row: Assumption, end: int) -> float:
    """Return the value of an assumption, or its low or high end."""
    result = {0: row.value, -1: row.low, 1: row.high}[end]
    return row.value if result is None else result


@dataclass(frozen=True)
class Checked:
    """What was found; whatever is not named here is used."""

    files: tuple[Path, ...]  # files of the fleet guide that were read
    faults: tuple[CapacityError, ...]  # what cannot be used, with file, line and field
    remarks: tuple[Remark, ...]  # what was read otherwise than it is written
    # names of the instances, sizes, workloads and sets there are, the shipped ones among them
    known: Mapping[str, tuple[str, ...]]


def check_fleet_files(fleet_files: Path | None = None) -> Checked:
    """Return every fault of the user's own files.

    Args:
        fleet_files: a JSON file of the fleet guide alone, or those of a folder; None for all of the user's own files.

    Raises:
        CatalogError: there is no such file, or none in the folder.
    """
    catalog = load_catalog(None, fleet_files)
    known = {
        "instances": tuple(catalog.instances),
        "sizes": tuple(catalog.model_sizes),
        "workloads": tuple(catalog.workloads),
        "sets": tuple(catalog.workload_sets),
    }
    files, faults, remarks = tuple(catalog.fleet_files), catalog.problems, catalog.remarks
    if fleet_files is not None:
        files = tuple(path for path in files if path == fleet_files or fleet_files in path.parents)
        named = set(map(str, files))
        faults = tuple(fault for fault in faults if fault.place.file in named)
        remarks = tuple(remark for remark in remarks if remark.place.file in named)
    return Checked(files, faults, remarks, known)


def assumed(key: str) -> float:
    return named_numbers("migration.yaml")[key].value
