"""Jobs with deadlines on a fleet: when each runs and where, what is late, what it costs, and what is best possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO, Literal

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CatalogError, PlanError
from capacity_tui.engine.fleet.scheduling.bounds import Bounds, lower_bounds
from capacity_tui.engine.fleet.scheduling.durations import Duration, durations, usd_per_hour
from capacity_tui.engine.fleet.scheduling.entries import Entries
from capacity_tui.engine.fleet.scheduling.list_scheduling import best_schedule
from capacity_tui.engine.fleet.scheduling.problem import Placed, Problem, Task, Timetable, placed_in_order
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import read_source
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

End = Literal["value", "low", "high"]


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A job with its machines and its time.

    Attributes:
        name: the job.
        instance: kind of its machines.
        machines: which of them.
        start: seconds from now.
        end: seconds from now, with the range that follows from those of all jobs before it.
        deadline: seconds from now; None without one.
        late_seconds: after the deadline; 0 where it is kept.
        usd: price of its time on its machines; None where no price is known.
        elsewhere: kinds of machines on which it does not run, with the reason.
    """

    name: str
    instance: str
    machines: tuple[str, ...]
    start: float
    end: Interval
    deadline: float | None
    late_seconds: float
    usd: float | None
    elsewhere: tuple[str, ...]

    @property
    def is_at_risk(self) -> bool:
        """Whether the deadline is kept as estimated, and missed where everything takes as long as it may."""
        return self.deadline is not None and not self.late_seconds and mean(self.end.high) > self.deadline


@dataclass(frozen=True, slots=True)
class Schedule:
    """Jobs on a fleet.

    Attributes:
        jobs: in the order of their starts.
        makespan: seconds until the last has ended, with its range.
        usd: price of the time in which jobs hold machines; None where a price is not known.
        fleet_usd: price of the whole fleet until the last has ended, likewise.
        late_seconds: after all deadlines together, each times its job's priority.
        bounds: what no schedule is better than.
        tried: schedules that were tried.
        seconds: time that took.
    """

    jobs: tuple[ScheduledJob, ...]
    makespan: Interval
    usd: float | None
    fleet_usd: float | None
    late_seconds: float
    bounds: Bounds
    tried: int
    seconds: float

    @property
    def missed(self) -> tuple[ScheduledJob, ...]:
        """The jobs that end after their deadlines, the latest first."""
        return tuple(sorted((job for job in self.jobs if job.late_seconds > 0), key=lambda job: -job.late_seconds))

    @property
    def is_best(self) -> bool:
        """Whether no schedule is better: neither its lateness nor its end can be less."""
        near = bool(np.isclose(mean(self.makespan.value), self.bounds.makespan))
        return near and bool(np.isclose(self.late_seconds, self.bounds.lateness))


def read_entries(name: str, standard_input: BinaryIO) -> Entries:
    """Return the machines and jobs of a file; ``-`` is standard input.

    Raises:
        CapacityError: it cannot be read, or is not a schedule.
    """
    return Entries(read_source(name, standard_input).document)


def schedule(
    entries: Entries,
    read: Callable[[str], Plan],
    catalog: Catalog | None = None,
    machine: Machine | None = None,
    seed: int = 1,
) -> Schedule:
    """Return a good schedule of the jobs of a file on its machines.

    Args:
        entries: the file as it was read.
        read: returns the plan that a name stands for.
        catalog: facts.
        machine: the detected machine.
        seed: of the random numbers of the search.

    Raises:
        PlanError: a job runs nowhere, or nothing is called what it names; with ``further`` faults.
    """
    begun, facts = monotonic(), catalog or load_catalog()
    for number, entry in enumerate(entries.machines):
        _refuse_unknown(entry.instance, entries, number, facts)
    times = durations(entries, facts, read, machine)
    prices = [usd_per_hour(entry, facts) for entry in entries.machines]
    problem = _problem(entries, times, prices, "value")
    best = best_schedule(problem, seed)
    kinds = {each.task: each.kind for each in best.timetable.placed}
    # The same order on the same kinds of machines, were everything as short or as long as it may be.
    wanted = tuple(kinds[number] for number in range(len(entries.jobs)))
    low, high = (placed_in_order(_problem(entries, times, prices, end), best.order, wanted) for end in ("low", "high"))
    timetable = best.timetable
    jobs = _jobs(entries, times, prices, timetable, low, high)
    known = all(price is not None for price in prices)
    hourly = sum((price or 0.0) * entry.count for price, entry in zip(prices, entries.machines, strict=True))
    return Schedule(
        jobs=tuple(sorted(jobs, key=lambda job: (job.start, job.name))),
        makespan=_ends(timetable.makespan, low.makespan, high.makespan),
        usd=timetable.usd if known else None,
        fleet_usd=timetable.makespan / HOUR_SECONDS * hourly if known else None,
        late_seconds=timetable.lateness,
        bounds=lower_bounds(problem),
        tried=best.tried,
        seconds=monotonic() - begun,
    )


def _refuse_unknown(instance: str, entries: Entries, number: int, catalog: Catalog) -> None:
    try:
        catalog.find_hardware(instance)
    except CatalogError as error:
        place = entries.document.place("fleet", number, "instance")
        raise PlanError(error.title, error.detail, error.hint, place) from error


def _problem(entries: Entries, times: list[list[Duration]], prices: list[float | None], end: End) -> Problem:
    kinds = [kind for kind, entry in enumerate(entries.machines) for _ in range(entry.count)]
    return Problem(
        tasks=tuple(
            Task(
                tuple(mean(getattr(each.seconds, end)) for each in of_job),
                job.machines,
                job.earliest,
                np.inf if job.deadline is None else job.deadline,
                job.priority,
            )
            for job, of_job in zip(entries.jobs, times, strict=True)
        ),
        kinds=tuple(kinds),
        free_from=tuple(entries.machines[kind].free_from for kind in kinds),
        usd_per_second=tuple((price or 0.0) / HOUR_SECONDS for price in prices),
    )


def _jobs(
    entries: Entries,
    times: list[list[Duration]],
    prices: list[float | None],
    timetable: Timetable,
    low: Timetable,
    high: Timetable,
) -> list[ScheduledJob]:
    ends = [{each.task: each.end for each in found.placed} for found in (timetable, low, high)]
    return [_job(entries, times, prices, each, _ends(*(end[each.task] for end in ends))) for each in timetable.placed]


def _ends(value: float, low: float, high: float) -> Interval:
    """Return an end with its range; shorter jobs may leave an order whose ends are later, which the range holds too."""
    return Interval(value, min(value, low, high), max(value, low, high))


def _job(
    entries: Entries, times: list[list[Duration]], prices: list[float | None], placed: Placed, end: Interval
) -> ScheduledJob:
    job, price = entries.jobs[placed.task], prices[placed.kind]
    name = entries.machine_name(placed.kind)
    before = sum(entry.count for entry in entries.machines[: placed.kind])
    deadline = job.deadline
    hours = (placed.end - placed.start) / HOUR_SECONDS
    return ScheduledJob(
        name=entries.job_name(placed.task),
        instance=entries.machines[placed.kind].instance,
        machines=tuple(f"{name} {machine - before + 1}" for machine in placed.machines),
        start=placed.start,
        end=end,
        deadline=deadline,
        late_seconds=0.0 if deadline is None else max(placed.end - deadline, 0.0),
        usd=None if price is None else hours * len(placed.machines) * price,
        elsewhere=tuple(each.reason for each in times[placed.task] if each.reason),
    )
