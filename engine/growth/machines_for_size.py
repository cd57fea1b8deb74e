"""Which machines end a job of a larger size in time, after how it grew on this one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.cluster import ON_DEMAND, chosen_quote
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.data import block_storage_usd
from capacity_tui.engine.fleet import Database, database_for
from capacity_tui.engine.growth.growth_fit import GrowthFit, extrapolate
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import GIGA, HOUR_SECONDS, format_seconds

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

    Args:
        fits: how its figures grow; time must be among them.

    Raises:
        CapacityError: no law of its time is known, or no number of parts ends in time.
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
    """Yield the cheapest of each provider, the cheapest first."""
    seen: set[str] = set()
    for machine in sorted(machines, key=lambda machine: mean(machine.usd.value)):
        provider = catalog.instances[machine.instance].provider
        if provider not in seen and len(seen) < SHOWN:
            seen.add(provider)
            yield machine
