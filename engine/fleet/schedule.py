"""Jobs with deadlines on a fleet: when each runs and where, what is late, what it costs, and what is best possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from time import monotonic
from typing import BinaryIO, Literal

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CatalogError, PlanError, refuse_all
from capacity_tui.engine.fleet.schedule_entries import Entries, JobEntry
from capacity_tui.engine.fleet.schedule_problem import (
    Bounds,
    Duration,
    Placed,
    Plans,
    Problem,
    Task,
    Timetable,
    durations,
    lower_bounds,
    machine_devices,
    others,
    placed_in_order,
    plans_of,
    runs_somewhere,
    share_of,
    usd_per_hour,
)
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import read_source
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS

End = Literal["value", "low", "high"]


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A job with its machines and its time."""

    name: str
    instance: str  # kind of its machines
    machines: tuple[str, ...]
    start: float  # seconds from now
    end: Interval  # seconds from now, with the range that follows from those of all jobs before it
    deadline: float | None  # seconds from now; None without one
    late_seconds: float  # after the deadline; 0 where it is kept
    usd: float | None  # price of its time on its machines; None where no price is known
    elsewhere: tuple[str, ...]  # kinds of machines on which it does not run, with the reason

    @property
    def is_at_risk(self) -> bool:
        """Whether the deadline is kept as estimated, and missed where everything takes as long as it may."""
        return self.deadline is not None and not self.late_seconds and mean(self.end.high) > self.deadline


@dataclass(frozen=True, slots=True)
class Schedule:
    """Jobs on a fleet."""

    jobs: tuple[ScheduledJob, ...]  # in the order of their starts
    makespan: Interval  # seconds until the last has ended, with its range
    usd: float | None  # price of the time in which jobs hold machines; None where a price is not known
    fleet_usd: float | None  # price of the whole fleet until the last has ended, likewise
    late_seconds: float  # after all deadlines together, each times its job's priority
    bounds: Bounds  # what no schedule is better than
    evaluated: int  # schedules that were compared
    seconds: float
    left_out: tuple[tuple[str, str], ...] = ()  # jobs that run on none of the machines, with the reason
    unread: tuple[PlanError, ...] = ()  # what is wrong with jobs that are left out since their plans cannot be read

    @property
    def first_start(self) -> float | None:
        """Seconds until the first begins; None where none does."""
        return min((job.start for job in self.jobs), default=None)

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
    """Return the machines and jobs of a file, ``-`` for standard input; CapacityError for what is no schedule."""
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
        PlanError: a job runs nowhere, or nothing is called what it names; with ``further`` faults. Of a folder: none
            runs anywhere, or no plan of it can be read.
    """
    begun, facts = monotonic(), catalog or load_catalog()
    for number, entry in enumerate(entries.machines):
        _refuse_unknown(entry.instance, entries, number, facts)
    plans = plans_of(entries, cache(read))
    unread: tuple[PlanError, ...] = ()
    if entries.folder is not None:
        entries, plans, unread = _laid_out(entries, plans, facts)
    times = durations(entries, plans, facts, machine)
    prices = [usd_per_hour(entry, facts) for entry in entries.machines]
    left_out = tuple(
        (entries.job_name(number), "; ".join(dict.fromkeys(entry.reason for entry in of_job)))
        for number, of_job in enumerate(times)
        if not runs_somewhere(of_job)
    )
    if left_out:
        runs = [number for number, of_job in enumerate(times) if runs_somewhere(of_job)]
        if not runs:
            raise PlanError(f"{left_out[0][0]} runs on none of the machines, nor does any other", left_out[0][1])
        entries, times = entries.changed([entries.jobs[number] for number in runs]), [times[number] for number in runs]
    case = _Case(entries, facts, times, prices)
    problem = case.problem("value")
    best = best_schedule(problem, seed)
    kinds = {item.task: item.kind for item in best.timetable.placed}
    # The same order on the same kinds of machines, were everything as short or as long as it may be.
    wanted = tuple(kinds[number] for number in range(len(entries.jobs)))
    low, high = (placed_in_order(case.problem(end), best.order, wanted) for end in ("low", "high"))
    timetable = best.timetable
    ends = [{item.task: item.end for item in table.placed} for table in (timetable, low, high)]
    jobs = [case.job(problem, item, _ends(*(end[item.task] for end in ends))) for item in timetable.placed]
    known = all(price is not None for price in prices)
    hourly = sum((price or 0.0) * entry.count for price, entry in zip(prices, entries.machines, strict=True))
    return Schedule(
        jobs=tuple(sorted(jobs, key=lambda job: (job.start, job.name))),
        makespan=_ends(timetable.makespan, low.makespan, high.makespan),
        usd=timetable.usd if known else None,
        fleet_usd=timetable.makespan / HOUR_SECONDS * hourly if known else None,
        late_seconds=timetable.lateness,
        bounds=lower_bounds(problem),
        evaluated=best.evaluated,
        seconds=monotonic() - begun,
        left_out=left_out,
        unread=unread,
    )


def _laid_out(entries: Entries, plans: Plans, catalog: Catalog) -> tuple[Entries, Plans, tuple[PlanError, ...]]:
    """Return the jobs of a folder on as many machines as they fill, their plans, and what is wrong with those left out.

    Raises:
        PlanError: no plan can be read; with ``further`` faults.
    """
    faults = tuple(plan for plan in plans if isinstance(plan, PlanError))
    read = [(job, plan) for job, plan in zip(entries.jobs, plans, strict=True) if not isinstance(plan, PlanError)]
    if not read:
        refuse_all(faults)
    jobs = [job if plan is None else _job_on_machines(job, plan, entries, catalog) for job, plan in read]
    return entries.changed(jobs), [plan for _, plan in read], faults


def _job_on_machines(job: JobEntry, plan: Plan, entries: Entries, catalog: Catalog) -> JobEntry:
    """Return a job with the machines that its plan's devices fill; as it is where either is said or open."""
    if not isinstance(job.plan, str) or job.devices is not None or job.machines > 1:
        return job
    hardware = plan.hardware
    own = catalog.accelerators.find_id(hardware.name or "")
    entry = next((entry for entry in entries.machines if entry.instance in (own, hardware.name)), entries.machines[0])
    devices = hardware.devices
    if not isinstance(devices, int):
        return job
    per_machine = min(devices, hardware.per_node or devices, machine_devices(entry, catalog))
    return job.model_copy(update={"devices": per_machine, "machines": -(-devices // per_machine)})


def _refuse_unknown(instance: str, entries: Entries, number: int, catalog: Catalog) -> None:
    try:
        catalog.find_hardware(instance)
    except CatalogError as error:
        place = entries.document.place("fleet", number, "instance")
        raise PlanError(error.title, error.detail, error.hint, place) from error


@dataclass(frozen=True, slots=True)
class _Case:
    """The jobs that run somewhere, with what is known of them on each kind of machine."""

    entries: Entries
    catalog: Catalog
    times: list[list[Duration]]  # of each job on each kind of machine
    prices: list[float | None]  # US dollars an hour of a machine of each kind; None where it is not known

    def problem(self, end: End) -> Problem:
        """Return what is to be scheduled, were every job to take as long as one end of its range says."""
        machines = self.entries.machines
        kinds = [kind for kind, entry in enumerate(machines) for _ in range(entry.count)]
        return Problem(
            tasks=tuple(
                Task(
                    tuple(mean(getattr(time.seconds, end)) for time in of_job),
                    job.machines,
                    job.earliest,
                    np.inf if job.deadline is None else job.deadline,
                    job.priority,
                    tuple(share_of(job, entry, self.catalog) for entry in machines),
                )
                for job, of_job in zip(self.entries.jobs, self.times, strict=True)
            ),
            kinds=tuple(kinds),
            free_from=tuple(machines[kind].free_from for kind in kinds),
            usd_per_second=tuple((price or 0.0) / HOUR_SECONDS for price in self.prices),
            taken=tuple(
                (devices / machine_devices(entry, self.catalog), until)
                for entry in machines
                for devices, until in zip(*others(entry), strict=True)
            ),
        )

    def job(self, problem: Problem, placed: Placed, end: Interval) -> ScheduledJob:
        kind, entry = placed.kind, self.entries.machines[placed.kind]
        names = entry.names or [f"{self.entries.machine_name(kind)} {number + 1}" for number in range(entry.count)]
        before = sum(entry.count for entry in self.entries.machines[:kind])
        deadline = self.entries.jobs[placed.task].deadline
        return ScheduledJob(
            name=self.entries.job_name(placed.task),
            instance=entry.instance,
            machines=tuple(names[machine - before] for machine in placed.machines),
            start=placed.start,
            end=end,
            deadline=deadline,
            late_seconds=0.0 if deadline is None else max(placed.end - deadline, 0.0),
            usd=None if self.prices[kind] is None else problem.tasks[placed.task].usd(problem, kind),
            elsewhere=tuple(time.reason for time in self.times[placed.task] if time.reason),
        )


def _ends(value: float, low: float, high: float) -> Interval:
    """Return an end with its range; shorter jobs may leave an order whose ends are later, which the range holds too."""
    return Interval(value, min(value, low, high), max(value, low, high))


# Schedules that are tried at most, and jobs times schedules: many jobs take longer each.
MOST_EVALUATED, MOST_PLACED = 3000, 60_000

PATIENCE = 40  # Schedules that are tried for each job after the last that was better


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order of the jobs, the kinds of machines that some must take, and the schedule it makes."""

    order: tuple[int, ...]
    wanted: tuple[int | None, ...]
    timetable: Timetable
    evaluated: int = 1


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
    evaluated, better = len(ordered), len(ordered)
    while evaluated < min(MOST_EVALUATED, MOST_PLACED // count) and evaluated - better < PATIENCE * count:
        if np.allclose(best.timetable.score, least):
            break
        changed = _changed(problem, best, draw)
        evaluated += 1
        if changed.timetable.score < best.timetable.score:
            better = evaluated
        if changed.timetable.score <= best.timetable.score:
            best = changed
    return replace(best, evaluated=evaluated)


def _made(problem: Problem, order: Sequence[int], wanted: tuple[int | None, ...]) -> Ordered:
    return Ordered(tuple(order), wanted, placed_in_order(problem, order, wanted))


def _rules(problem: Problem) -> Iterator[list[int]]:
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


def _changed(problem: Problem, best: Ordered, draw: np.random.Generator) -> Ordered:
    order, wanted = list(best.order), list(best.wanted)
    one, other = (int(integer) for integer in draw.integers(len(order), size=2))
    way = int(draw.integers(3))
    if way == 0 and len(problem.usd_per_second) > 1:
        possible = [kind for kind, seconds in enumerate(problem.tasks[one].seconds) if np.isfinite(seconds)]
        choices: list[int | None] = [None, *possible]
        wanted[one] = choices[int(draw.integers(len(choices)))]
    elif way == 1:
        order[one], order[other] = order[other], order[one]
    else:
        order.insert(other, order.pop(one))
    return _made(problem, order, tuple(wanted))
