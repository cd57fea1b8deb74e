"""What is best after measuring: settings by what they get done in a second, machines that end a larger job in time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.cluster import ON_DEMAND, chosen_quote
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import formula
from capacity_tui.engine.estimate.data import block_storage_usd
from capacity_tui.engine.fleet import Database, database_for
from capacity_tui.engine.growth.growth_fit import GrowthFit, extrapolate
from capacity_tui.engine.growth.measuring import Measurement, Measuring, Setting
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import GIGA, HOUR_SECONDS, format_number, format_seconds

_ALIKE = 0.25  # How far the exponent may be from 1 with which what gets done grows over a setting that is a size
_MOST_START = 0.9  # Share of the shortest run that its start can be: what is left of a shorter one would be noise


efficiency = formula()


@dataclass(frozen=True, slots=True)
class RankedSetting:
    """A setting with what its runs came to, as medians; None where no run ended well."""

    set: Setting  # what stood for each placeholder
    seconds: float | None  # of a run
    metric: float | None  # what it got done; None where nothing was to be read, and runs are ranked by time alone
    efficiency: float | None  # what it gets done in a second behind its start; without a metric, runs in a second
    peak_memory_bytes: float | None  # the most that a run held
    exit_code: int  # of its last run that failed, 0 where all ended well
    problem: str  # of that run
    runs: int  # that ended well
    # what any of the runs takes before it gets anything done, as runs of several sizes show it; 0 where none do
    start_seconds: float = 0.0


def ranked_settings(measured: Iterable[Measurement]) -> tuple[RankedSetting, ...]:
    """Return settings, the most efficient first and those that failed last."""
    grouped: dict[tuple[tuple[str, str], ...], list[Measurement]] = {}
    for run in measured:
        grouped.setdefault(tuple(run.set.items()), []).append(run)
    start = _start_seconds([_ranked(runs, 0.0) for runs in grouped.values()])
    ranked = [_ranked(runs, start) for runs in grouped.values()]
    return tuple(
        sorted(ranked, key=lambda setting: -1.0 if setting.efficiency is None else setting.efficiency, reverse=True)
    )


def _start_seconds(settings: Sequence[RankedSetting]) -> float:
    """Return what runs take before they get anything done: where the line through runs of several sizes begins."""
    done = [
        (entry.set, entry.metric, entry.seconds)
        for entry in settings
        if entry.metric is not None and entry.metric > 0 and entry.seconds is not None
    ]
    starts = []
    for key in dict.fromkeys(key for setting, _, _ in done for key in setting):
        alike: dict[tuple[tuple[str, str], ...], list[tuple[float, float, float]]] = {}
        for setting, metric, seconds in done:
            size = _number(setting[key])
            if size is not None:
                others = tuple(item for item in setting.items() if item[0] != key)
                alike.setdefault(others, []).append((size, metric, seconds))
        starts += [start for runs in alike.values() if (start := _start_of(sorted(runs))) is not None]
    shortest = min((seconds for _, _, seconds in done), default=0.0)
    return min(median(starts), _MOST_START * shortest) if starts else 0.0


def _start_of(runs: Sequence[tuple[float, float, float]]) -> float | None:
    """Return where the line of time over what got done begins, of runs by size; None where their setting is no size."""
    (small, little, _), (large, much, _) = runs[0], runs[-1]
    if large <= small or much <= little or abs(math.log(much / little) / math.log(large / small) - 1) > _ALIKE:
        return None
    slope, start = np.polyfit([metric for _, metric, _ in runs], [seconds for _, _, seconds in runs], 1)
    return max(0.0, float(start)) if slope > 0 else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < math.inf else None


def _ranked(runs: Sequence[Measurement], start: float) -> RankedSetting:
    well = [run for run in runs if not run.problem]
    failed = [run for run in runs if run.problem]
    seconds = _median(run.seconds for run in well)
    metric = _median(run.metric for run in well)
    done = 1.0 if metric is None else metric
    return RankedSetting(
        set=runs[0].set,
        seconds=seconds,
        metric=metric,
        efficiency=None if seconds is None else float(efficiency(done, seconds, start)),
        peak_memory_bytes=_median(run.peak_memory_bytes for run in well),
        exit_code=failed[-1].exit_code if failed else 0,
        problem=failed[-1].problem if failed else "",
        runs=len(well),
        start_seconds=start,
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


DEFAULT_GRID = ("depth=3..10", "chunk=5..25:5", "samples=100,300,1000")
"""What a hierarchy of patterns is tried with where nobody says: levels, tokens of a chunk, and short runs."""

MOST_SETTINGS = 10_000
_BETWEEN = ".."
_EXAMPLE = "write KEY=V1,V2 or KEY=LO..HI or KEY=LO..HI:STEP, such as depth=3..10"


def parse_grid(texts: Sequence[str], measuring: Measuring) -> tuple[Setting, ...]:
    """Return every setting of a grid, the last key changing first.

    Args:
        texts: a key with its values each; without any those of the default grid that the command takes.

    Raises:
        CapacityError: a text is no key with values, a key is given twice, nothing in the command takes it, or there are
            too many settings.
    """
    axes = dict(map(_axis, texts or DEFAULT_GRID))
    if len(axes) < len(texts):
        raise CapacityError("a key is given twice", hint="give all of its values at once, with commas")
    unused = measuring.missing(tuple(axes))
    if not texts:
        axes = {key: values for key, values in axes.items() if key not in unused}
    elif unused:
        missing = " and ".join(f"{{{key}}}" for key in unused)
        raise CapacityError(f"nothing in the command takes {missing}", hint=f"write {missing} where its value goes")
    if not axes:
        raise CapacityError(
            "nothing in the command changes", hint="write {depth} where a value goes, and --grid depth=3..10"
        )
    if math.prod(map(len, axes.values())) > MOST_SETTINGS:
        raise CapacityError("too many settings", hint=f"{format_number(MOST_SETTINGS)} at most: take fewer values")
    return tuple(dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))


def _axis(text: str) -> tuple[str, tuple[str, ...]]:
    key, equals, written = text.partition("=")
    values = tuple(dict.fromkeys(itertools.chain.from_iterable(_values(part.strip()) for part in written.split(","))))
    if not equals or not key.strip() or not values:
        raise CapacityError(f"{text!r:.60} is no key with values", hint=_EXAMPLE)
    return key.strip(), values


def _values(text: str) -> Iterator[str]:
    """Yield one value, or those of a range, both ends among them where the step meets them."""
    if _BETWEEN not in text:
        yield from [text] if text else []
        return
    ends, _, step_text = text.partition(":")
    try:
        low, high = (float(end) for end in ends.split(_BETWEEN, 1))
        step = float(step_text or 1)
    except ValueError:
        raise CapacityError(f"{text!r:.60} is no range", hint=_EXAMPLE) from None
    if not (step > 0 and low <= high and math.isfinite(high - low) and (high - low) / step < MOST_SETTINGS):
        raise CapacityError(f"{text!r:.60} is no range", hint=_EXAMPLE)
    for number in range(math.floor((high - low) / step + 1e-9) + 1):
        yield f"{low + number * step:.12g}"


SHOWN = 3
_PARTS: tuple[int, ...] = (*range(1, 33), *(1 << power for power in range(6, 17)))  # Parts that a job may be split into


@dataclass(frozen=True, slots=True)
class SizedMachines:
    """Machines that end a job in time."""

    instance: str  # id of the instance
    count: int  # how many of it
    cores: int  # physical cores of all of them
    memory_bytes: float  # of all of them
    usd: Interval  # price of the job, without storage
    usd_per_hour: float  # of all of them
    price_source: str  # whose price it is, and of which day
    storage_usd: float | None  # price of the disk space for the time of the job; None where none is known


@dataclass(frozen=True, slots=True)
class SizedJob:
    """What a job of some size needs to end in time."""

    n: float  # its size
    deadline_seconds: float  # the longest that it may take, at the far end of its range
    parts: int  # how many parts it has to be split into that run side by side; 1 where it ends in time as it is
    seconds: Interval  # time of a part
    memory_bytes: Interval | None  # of a part at its peak; None where it was not measured
    cores: int  # cores that all parts keep busy
    storage_bytes: Interval | None  # disk space of all parts; None where it was not measured
    database: Database | None  # what would keep what it stores; None without storage
    machines: tuple[SizedMachines, ...]  # the cheapest, one of each provider


def machines_for_size(
    fits: Sequence[GrowthFit], n: float, deadline_seconds: float, catalog: Catalog | None = None
) -> SizedJob:
    """Return what a job of some size needs to end in time, and the cheapest machines that have it.

    A core is taken to be as fast as those here. A job that takes too long is split into equal parts, each as large as
    its law says of its size.
    """
    by_figure = {fit.figure: fit for fit in fits}
    if "seconds" not in by_figure or by_figure["seconds"].choice.chosen is None:
        raise CapacityError("how time grows is not known", hint="measure at least three sizes")
    parts, seconds = _parts(by_figure["seconds"], n, deadline_seconds)
    memory, disk = _at(by_figure, "peak_memory_bytes", n / parts), _at(by_figure, "disk_bytes", n / parts)
    storage = None if disk is None else disk.scaled(float(parts))
    facts = catalog or load_catalog()
    busy = _busy_cores(by_figure)
    sized = _machines(facts, parts, busy, seconds, memory, storage)
    machines = tuple(_cheapest_by_provider(sized, facts))
    return SizedJob(
        n=n,
        deadline_seconds=deadline_seconds,
        parts=parts,
        seconds=seconds,
        memory_bytes=memory,
        cores=parts * busy,
        storage_bytes=storage,
        database=None
        if storage is None
        else database_for(mean(storage.high), machines[0].count if machines else parts),
        machines=machines,
    )


def _parts(time: GrowthFit, n: float, deadline: float) -> tuple[int, Interval]:
    """Return the fewest parts each of which ends in time, and the time of one."""
    counts = [parts for parts in _PARTS if n / parts >= 1]
    ends = extrapolate(time.choice, [n / parts for parts in counts])
    for parts, end in zip(counts, ends, strict=True):
        if end.high <= deadline:
            return parts, Interval(end.value, end.low, end.high)
    shortest = min((end.high for end in ends), default=math.inf)
    detail = f"a part takes up to {format_seconds(shortest)} however many there are" if ends else "the size is below 1"
    raise CapacityError("no number of parts ends in time", detail, "allow more time")


def _at(fits: Mapping[str, GrowthFit], figure: str, n: float) -> Interval | None:
    """Return a figure of a job of some size, None where it was not measured."""
    ends = extrapolate(fits[figure].choice, (n,)) if figure in fits else ()
    return Interval(ends[0].value, ends[0].low, ends[0].high) if ends else None


def _busy_cores(fits: Mapping[str, GrowthFit]) -> int:
    """Return how many cores the largest measured run kept busy."""
    if "cpu_seconds" not in fits:
        return 1
    (_, seconds), (_, busy) = max(fits["seconds"].points), max(fits["cpu_seconds"].points)
    return max(1, round(busy / seconds))


def _machines(
    catalog: Catalog, parts: int, busy: int, seconds: Interval, memory: Interval | None, storage: Interval | None
) -> Iterator[SizedMachines]:
    """Yield every instance of processors alone that holds a part, as many of it as all parts take."""
    needed = 0.0 if memory is None else mean(memory.high)
    for row in catalog.instances.values():
        quote = None if row.accelerator else chosen_quote(row, ON_DEMAND, None, catalog)
        if quote is None or row.cores is None or row.memory_gb is None:
            continue
        held = row.cores // busy
        if needed:
            held = min(held, int(row.memory_gb * GIGA / needed))
        if held < 1:
            continue
        count = math.ceil(parts / held)
        rate = quote.usd_per_hour * count
        yield SizedMachines(
            instance=row.id,
            count=count,
            cores=row.cores * count,
            memory_bytes=row.memory_gb * GIGA * count,
            usd=seconds.scaled(rate / HOUR_SECONDS),
            usd_per_hour=rate,
            price_source=quote.words,
            storage_usd=None
            if storage is None
            else block_storage_usd(row.provider, mean(storage.high), mean(seconds.value), catalog),
        )


def _cheapest_by_provider(machines: Iterable[SizedMachines], catalog: Catalog) -> Iterator[SizedMachines]:
    seen: set[str] = set()
    for machine in sorted(machines, key=lambda machine: mean(machine.usd.value)):
        provider = catalog.instances[machine.instance].provider
        if provider not in seen and len(seen) < SHOWN:
            seen.add(provider)
            yield machine
