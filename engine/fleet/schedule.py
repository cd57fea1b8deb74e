"""Jobs with deadlines on a fleet: when each runs and where, what is late, what it costs, and what is best possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, BinaryIO, Literal

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CatalogError, PlanError
from capacity_tui.engine.fleet.schedule_problem import (
    Duration,
    Entries,
    Placed,
    Problem,
    Task,
    Timetable,
    durations,
    placed_in_order,
    usd_per_hour,
)
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import read_source
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no schedule is better than.

    Attributes:
        makespan: seconds until all jobs can have ended.
        lateness: seconds after deadlines that cannot be avoided, each times its job's priority.
        usd: price of each job on the machines on which it is cheapest.
    """

    makespan: float
    lateness: float
    usd: float


def lower_bounds(problem: Problem) -> Bounds:
    """Return what no schedule of the jobs is better than.

    All work needs room on the machines from when it may begin; and no job ends before its own shortest time has passed.
    """
    tasks = problem.tasks
    alone = [_alone(problem, task) for task in tasks]
    begins = sorted({task.earliest for task in tasks})
    rooms = [_room(problem, [task for task in tasks if task.earliest >= begin], begin) for begin in begins]
    late = sum(max(end - task.deadline, 0.0) * task.priority for task, end in zip(tasks, alone, strict=True))
    usd = sum(
        min(
            seconds * task.machines * rate
            for seconds, rate in zip(task.seconds, problem.usd_per_second, strict=True)
            if np.isfinite(seconds)
        )
        for task in tasks
    )
    return Bounds(max([*alone, *rooms], default=0.0), max(late, _crowded(problem)), usd)


def _alone(problem: Problem, task: Task) -> float:
    """Return when a job ends that has all machines for itself."""
    ends = []
    for kind, seconds in enumerate(task.seconds):
        free = sorted(max(problem.free_from[machine], task.earliest) for machine in problem.of_kind(kind))
        if np.isfinite(seconds) and len(free) >= task.machines:
            ends.append(free[task.machines - 1] + seconds)
    return min(ends, default=np.inf)


def _work(tasks: Iterable[Task]) -> float:
    """Return the least time that some jobs hold machines in all."""
    return sum(min(task.seconds) * task.machines for task in tasks)


def _room(problem: Problem, tasks: Sequence[Task], begin: float) -> float:
    """Return when the machines have had room for some jobs, none of which begins before a moment."""
    free, left = sorted(max(entry, begin) for entry in problem.free_from), _work(tasks)
    for number, (since, until) in enumerate(zip(free, [*free[1:], np.inf], strict=True), start=1):
        room = (until - since) * number
        if room >= left:
            return float(since + left / number)
        left -= room
    return float("inf")


def _crowded(problem: Problem) -> float:
    """Return lateness that follows from too many jobs before one deadline: the last of them ends no earlier."""
    worst = 0.0
    for deadline in {task.deadline for task in problem.tasks if np.isfinite(task.deadline)}:
        due = [task for task in problem.tasks if task.deadline <= deadline]
        end = _room(problem, due, min(task.earliest for task in due))
        worst = max(worst, (end - deadline) * min(task.priority for task in due))
    return worst


End = Literal["value", "low", "high"]


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A job with its machines and its time.

    Attributes:
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
    kinds = {item.task: item.kind for item in best.timetable.placed}
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
                tuple(mean(getattr(entry.seconds, end)) for entry in of_job),
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
    ends = [{item.task: item.end for item in entry.placed} for entry in (timetable, low, high)]
    return [
        _job(entries, times, prices, entry, _ends(*(end[entry.task] for end in ends))) for entry in timetable.placed
    ]


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
        elsewhere=tuple(time.reason for time in times[placed.task] if time.reason),
    )


# Schedules that are tried at most, and jobs times schedules: many jobs take longer each.
MOST_TRIED, MOST_PLACED = 3000, 60_000

# Schedules that are tried for each job after the last that was better.
PATIENCE = 40


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order of the jobs, the kinds of machines that some must take, and the schedule it makes."""

    order: tuple[int, ...]
    wanted: tuple[int | None, ...]
    timetable: Timetable
    tried: int = 1


def best_schedule(problem: Problem, seed: int = 1) -> Ordered:
    """Return the best schedule that was found.

    The rules go first: earliest deadline, longest job, least slack, highest priority, shortest job, earliest start. The
    best of them is then improved: jobs change places, go elsewhere in the order, or take another kind of machine.
    """
    count = len(problem.tasks)
    free: tuple[int | None, ...] = (None,) * count
    ordered = [_made(problem, order, free) for order in _rules(problem)]
    best = min(ordered, key=lambda entry: entry.timetable.score)
    bounds = lower_bounds(problem)
    least = (bounds.lateness, bounds.makespan, bounds.usd)
    draw = np.random.default_rng(seed)
    tried, better = len(ordered), len(ordered)
    while tried < min(MOST_TRIED, MOST_PLACED // count) and tried - better < PATIENCE * count:
        if np.allclose(best.timetable.score, least):
            break
        changed = _changed(problem, best, draw)
        tried += 1
        if changed.timetable.score < best.timetable.score:
            better = tried
        if changed.timetable.score <= best.timetable.score:
            best = changed
    return replace(best, tried=tried)


def _made(problem: Problem, order: Sequence[int], wanted: tuple[int | None, ...]) -> Ordered:
    return Ordered(tuple(order), wanted, placed_in_order(problem, order, wanted))


def _rules(problem: Problem) -> Iterator[list[int]]:
    """Yield the orders of the usual rules."""

    def shortest(task: Task) -> float:
        return min(task.seconds)

    tasks = problem.tasks
    numbers = range(len(tasks))
    yield sorted(numbers, key=lambda entry: (tasks[entry].deadline, -shortest(tasks[entry])))
    yield sorted(numbers, key=lambda entry: -shortest(tasks[entry]) * tasks[entry].machines)
    yield sorted(numbers, key=lambda entry: tasks[entry].deadline - shortest(tasks[entry]))
    yield sorted(numbers, key=lambda entry: (-tasks[entry].priority, tasks[entry].deadline))
    yield sorted(numbers, key=lambda entry: shortest(tasks[entry]) / tasks[entry].priority)
    yield sorted(numbers, key=lambda entry: (tasks[entry].earliest, tasks[entry].deadline))


def _kinds(problem: Problem) -> int:
    return len(problem.usd_per_second)


def _changed(problem: Problem, best: Ordered, draw: np.random.Generator) -> Ordered:
    """Return an order with one change."""
    order, wanted = list(best.order), list(best.wanted)
    one, other = (int(integer) for integer in draw.integers(len(order), size=2))
    way = int(draw.integers(3))
    if way == 0 and _kinds(problem) > 1:
        possible = [kind for kind, seconds in enumerate(problem.tasks[one].seconds) if np.isfinite(seconds)]
        choices: list[int | None] = [None, *possible]
        wanted[one] = choices[int(draw.integers(len(choices)))]
    elif way == 1:
        order[one], order[other] = order[other], order[one]
    else:
        order.insert(other, order.pop(one))
    return _made(problem, order, tuple(wanted))
