"""Jobs and machines as numbers, and the schedule that an order of the jobs makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import ON_DEMAND, chosen_quote
from capacity_tui.engine.errors import CapacityError, PlanError, refuse_all
from capacity_tui.engine.estimate import job_seconds
from capacity_tui.engine.fleet.schedule_entries import Entries, JobEntry, MachineEntry
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan, edited, with_values
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Verdict

NEVER = Interval(np.inf, np.inf, np.inf)


@dataclass(frozen=True, slots=True)
class Task:
    """A job as the scheduler sees it."""

    seconds: tuple[float, ...]  # of the job on machines of each kind; infinite where it does not run
    machines: int = 1  # machines of one kind that it takes at once
    earliest: float = 0.0  # seconds from now until it may begin
    deadline: float = np.inf  # seconds from now until it should have ended; infinite without one
    priority: float = 1.0  # what a second of lateness counts
    shares: tuple[float, ...] = ()  # of a machine of each kind that it takes; whole ones where empty

    def share(self, kind: int) -> float:
        """Return what it takes of a machine of a kind."""
        return self.shares[kind] if self.shares else 1.0

    def usd(self, problem: Problem, kind: int) -> float:
        """Return the price of its time on machines of a kind."""
        return self.seconds[kind] * self.machines * self.share(kind) * problem.usd_per_second[kind]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be scheduled."""

    tasks: tuple[Task, ...]
    kinds: tuple[int, ...]  # kind of each machine, by number
    free_from: tuple[float, ...]  # seconds from now until each machine is free
    usd_per_second: tuple[float, ...]  # of a machine of each kind; 0 where no price is known
    # share of each machine that others have, and until when; nothing where empty
    taken: tuple[tuple[float, float], ...] = ()

    def of_kind(self, kind: int) -> list[int]:
        return [machine for machine, own in enumerate(self.kinds) if own == kind]


@dataclass(frozen=True, slots=True)
class Placed:
    """A job with its machines and its time."""

    task: int  # number of the job
    kind: int  # kind of its machines
    machines: tuple[int, ...]  # their numbers
    # start, end: seconds from now
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Timetable:
    """A schedule, with what it is judged by."""

    placed: tuple[Placed, ...]  # the jobs in the order in which they were placed
    lateness: float  # seconds after deadlines, each times its job's priority
    makespan: float  # seconds until the last job has ended
    usd: float  # price of the time in which jobs hold machines

    @property
    def score(self) -> tuple[float, float, float]:
        """What is least in the best schedule: lateness first, then the end of it all, then its price."""
        return self.lateness, self.makespan, self.usd


def placed_in_order(problem: Problem, order: Sequence[int], wanted: Sequence[int | None]) -> Timetable:
    """Return the schedule in which each job of an order begins as early as those before it let it.

    Gaps that they left are filled. A job goes to the kind of machine on which it ends first, the cheaper of equals,
    unless a kind is wanted for it.
    """
    busy: list[list[_Use]] = [[] for _ in problem.kinds]
    for machine, (share, until) in enumerate(problem.taken):
        if share:
            busy[machine].append((0.0, until, share))
    placed: list[Placed] = []
    for number in order:
        task = problem.tasks[number]
        kinds = range(len(task.seconds)) if wanted[number] is None else (wanted[number],)
        options = [
            (start + task.seconds[kind], task.usd(problem, kind), start, kind, machines)
            for kind in kinds
            if kind is not None and np.isfinite(task.seconds[kind])
            for start, machines in [_earliest(problem, busy, task, kind)]
            if machines
        ]
        end, _, start, kind, machines = min(options)
        for machine in machines:
            busy[machine].append((start, end, task.share(kind)))
            busy[machine].sort()
        placed.append(Placed(number, kind, machines, start, end))
    return judged(problem, placed)


def judged(problem: Problem, placed: Sequence[Placed]) -> Timetable:
    """Return placed jobs with what their schedule is judged by."""
    late = sum(
        max(entry.end - problem.tasks[entry.task].deadline, 0.0) * problem.tasks[entry.task].priority
        for entry in placed
    )
    usd = sum(problem.tasks[entry.task].usd(problem, entry.kind) for entry in placed)
    return Timetable(tuple(placed), late, max((entry.end for entry in placed), default=0.0), usd)


_Use = tuple[float, float, float]  # Begin and end of what a machine does, and the share of it that this takes
_ROUNDING = 1e-9


def _earliest(problem: Problem, busy: Sequence[Sequence[_Use]], task: Task, kind: int) -> tuple[float, tuple[int, ...]]:
    """Return when a job may begin on machines of a kind, and on which; none where there are too few of them."""
    machines, seconds = problem.of_kind(kind), task.seconds[kind]
    room = 1.0 - task.share(kind) + _ROUNDING
    ready = {machine: max(problem.free_from[machine], task.earliest) for machine in machines}
    starts = {*ready.values(), *(end for machine in machines for _, end, _ in busy[machine] if end > task.earliest)}
    for start in sorted(starts):
        if np.isinf(start):
            break
        free = [
            machine
            for machine in machines
            if ready[machine] <= start and _most_used(busy[machine], start, start + seconds) <= room
        ]
        if len(free) >= task.machines:
            return start, tuple(free[: task.machines])
    return np.inf, ()


def _most_used(uses: Sequence[_Use], start: float, end: float) -> float:
    """Return the largest share of a machine that is in use at any moment of a time."""
    within = [use for use in uses if use[0] < end and use[1] > start]
    moments = {start, *(begin for begin, _, _ in within if begin > start)}
    return max(sum(share for begin, until, share in within if begin <= moment < until) for moment in moments)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no schedule is better than."""

    makespan: float  # seconds until all jobs can have ended
    lateness: float  # seconds after deadlines that cannot be avoided, each times its job's priority
    usd: float  # price of each job on the machines on which it is cheapest


def lower_bounds(problem: Problem) -> Bounds:
    """Return what no schedule of the jobs is better than.

    All work needs room on the machines from when it may begin; and no job ends before its own shortest time has passed.
    """
    tasks = problem.tasks
    alone = [_shortest_end(problem, task) for task in tasks]
    begins = sorted({task.earliest for task in tasks})
    rooms = [_room(problem, [task for task in tasks if task.earliest >= begin], begin) for begin in begins]
    late = sum(max(end - task.deadline, 0.0) * task.priority for task, end in zip(tasks, alone, strict=True))
    usd = sum(
        min(task.usd(problem, kind) for kind, seconds in enumerate(task.seconds) if np.isfinite(seconds))
        for task in tasks
    )
    return Bounds(max([*alone, *rooms], default=0.0), max(late, _crowded(problem)), usd)


def _shortest_end(problem: Problem, task: Task) -> float:
    """Return when a job ends that has all machines for itself."""
    ends = []
    for kind, seconds in enumerate(task.seconds):
        free = sorted(max(problem.free_from[machine], task.earliest) for machine in problem.of_kind(kind))
        if np.isfinite(seconds) and len(free) >= task.machines:
            ends.append(free[task.machines - 1] + seconds)
    return min(ends, default=np.inf)


def _work(tasks: Iterable[Task]) -> float:
    """Return the least time that some jobs hold machines in all."""
    return sum(
        min(seconds * task.share(kind) for kind, seconds in enumerate(task.seconds)) * task.machines for task in tasks
    )


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


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a job takes on machines of one kind."""

    seconds: Interval  # the time with its range; infinite where it does not run there
    reason: str = ""  # why it does not run there; empty where it does


Plans = Sequence[Plan | PlanError | None]
"""The plan of each job, or what is wrong with it; None where the job says how long it takes."""


def plans_of(entries: Entries, read: Callable[[str], Plan]) -> Plans:
    """Return the plan of each job, which says it itself or what it is called."""
    plans: list[Plan | PlanError | None] = []
    for number, job in enumerate(entries.jobs):
        try:
            if job.plan is None:
                plans.append(None)
            else:
                plans.append(read(job.plan) if isinstance(job.plan, str) else plan_from_data(job.plan))
        except CapacityError as error:
            plans.append(entries.job_fault(number, error))
    return plans


def durations(entries: Entries, plans: Plans, catalog: Catalog, machine: Machine | None) -> list[list[Duration]]:
    """Return how long each job takes on each kind of machine.

    Raises:
        PlanError: a job runs on none of the machines, or nothing is called what it names; all such faults.
    """
    result: list[list[Duration]] = []
    faults: list[PlanError] = []
    for number, (job, plan) in enumerate(zip(entries.jobs, plans, strict=True)):
        if isinstance(plan, PlanError):
            faults.append(plan)
            continue
        result.append(
            [_duration(job, plan, entries, entry, catalog, machine) for entry in range(len(entries.machines))]
        )
        if entries.folder is None and not runs_somewhere(result[-1]):
            reasons = dict.fromkeys(entry.reason for entry in result[-1])
            detail = "; ".join(list(reasons)[:2])
            title = f"{entries.job_name(number)} runs on none of the machines"
            place = entries.document.place("jobs", number)
            faults.append(PlanError(title, detail, "add machines that hold it", place))
    refuse_all(faults)
    return result


def runs_somewhere(times: Sequence[Duration]) -> bool:
    """Return whether a job runs on any of some machines."""
    return any(np.isfinite(mean(entry.seconds.value)) for entry in times)


def share_of(job: JobEntry, entry: MachineEntry, catalog: Catalog) -> float:
    """Return what a job takes of each machine."""
    return 1.0 if job.devices is None else min(1.0, job.devices / machine_devices(entry, catalog))


def machine_devices(entry: MachineEntry, catalog: Catalog) -> int:
    return entry.devices or catalog.sold_together(entry.instance)


def usd_per_hour(entry: MachineEntry, catalog: Catalog) -> float | None:
    """Return the price of one machine: its own, or that of the catalogue on demand; None where neither is known."""
    if entry.usd_per_hour is not None:
        return entry.usd_per_hour
    row = catalog.instances.known(entry.instance)
    quote = None if row is None else chosen_quote(row, ON_DEMAND, None, catalog)
    return None if quote is None else quote.usd_per_hour


def _duration(
    job: JobEntry, plan: Plan | None, entries: Entries, kind: int, catalog: Catalog, machine: Machine | None
) -> Duration:
    """Return how long a job takes on machines of one entry."""
    entry, name = entries.machines[kind], entries.machine_name(kind)
    if job.only_on and name not in job.only_on:
        return Duration(NEVER, f"not on {name}")
    needed, has = job.devices or 0, machine_devices(entry, catalog)
    if needed > has:
        return Duration(NEVER, f"{name}: {has} of {needed} devices of a machine")
    free = sum(
        has - taken >= (needed or has) or np.isfinite(until) for taken, until in zip(*others(entry), strict=True)
    )
    if free < job.machines:
        return Duration(NEVER, f"{name}: {free} of {job.machines} machines")
    if plan is None:
        seconds = job.time or 0.0
        return Duration(Interval.exactly(seconds))
    try:
        return _estimated(plan, entry, job, catalog, machine)
    except CapacityError as error:
        return Duration(NEVER, f"{name}: {error.detail or error.title}")


def others(entry: MachineEntry) -> tuple[list[int], list[float]]:
    """Return the devices of each machine that others have, and until when."""
    missing = entry.count - len(entry.taken)
    until = [np.inf if end is None else end for end in entry.taken_until]
    until += [np.inf] * (entry.count - len(until))
    return [*entry.taken, *(0 for _ in range(missing))], until


def _estimated(plan: Plan, entry: MachineEntry, job: JobEntry, catalog: Catalog, machine: Machine | None) -> Duration:
    """Return how long a plan takes on some machines: on its own number of devices on its own hardware, else on all."""
    name = plan.hardware.name or ""
    is_same = entry.instance in (name, catalog.accelerators.find_id(name))
    is_own = is_same and plan.hardware.devices is not None and (job.devices is not None or job.machines == 1)
    there = plan
    if not is_own:
        devices = (job.devices or machine_devices(entry, catalog)) * job.machines
        there = with_values(
            edited(plan, {Key.HARDWARE_NAME: entry.instance}, catalog).plan, {Key.HARDWARE_DEVICES: devices}
        )
    estimate = fill(there, "balanced", machine, catalog).estimate
    if estimate.verdict is Verdict.DOES_NOT_FIT:
        return Duration(NEVER, f"{entry.instance}: {estimate.verdict.words}")
    computation = estimate.computation
    if computation.steps is None:
        raise PlanError("its length is open", "the plan gives no tokens, steps or epochs", "give them, or time:")
    steps, step = computation.steps, computation.step_seconds
    return Duration(Interval(*(mean(job_seconds(steps, item)) for item in (step.value, step.low, step.high))))
