"""Jobs and machines as numbers, and the schedule that an order of the jobs makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from capacity_tui.engine.catalog import Catalog, Document, nearest, refusals
from capacity_tui.engine.cluster import ON_DEMAND, chosen_quote
from capacity_tui.engine.errors import CapacityError, PlanError, UnitError
from capacity_tui.engine.estimate import job_seconds
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan, edited, with_values
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import parse_quantity
from capacity_tui.engine.verdict import Verdict

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

NEVER = Interval(np.inf, np.inf, np.inf)


@dataclass(frozen=True, slots=True)
class Task:
    """A job as the scheduler sees it.

    Attributes:
        seconds: of the job on machines of each kind; infinite where it does not run.
        machines: machines of one kind that it takes at once.
        earliest: seconds from now until it may begin.
        deadline: seconds from now until it should have ended; infinite without one.
        priority: what a second of lateness counts.
    """

    seconds: tuple[float, ...]
    machines: int = 1
    earliest: float = 0.0
    deadline: float = np.inf
    priority: float = 1.0


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be scheduled.

    Attributes:
        kinds: kind of each machine, by number.
        free_from: seconds from now until each machine is free.
        usd_per_second: of a machine of each kind; 0 where no price is known.
    """

    tasks: tuple[Task, ...]
    kinds: tuple[int, ...]
    free_from: tuple[float, ...]
    usd_per_second: tuple[float, ...]

    def of_kind(self, kind: int) -> list[int]:
        """Return the machines of a kind."""
        return [machine for machine, own in enumerate(self.kinds) if own == kind]


@dataclass(frozen=True, slots=True)
class Placed:
    """A job with its machines and its time.

    Attributes:
        task: number of the job.
        kind: kind of its machines.
        machines: their numbers.
        start, end: seconds from now.
    """

    task: int
    kind: int
    machines: tuple[int, ...]
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Timetable:
    """A schedule, with what it is judged by.

    Attributes:
        placed: the jobs in the order in which they were placed.
        lateness: seconds after deadlines, each times its job's priority.
        makespan: seconds until the last job has ended.
        usd: price of the time in which jobs hold machines.
    """

    placed: tuple[Placed, ...]
    lateness: float
    makespan: float
    usd: float

    @property
    def score(self) -> tuple[float, float, float]:
        """What is least in the best schedule: lateness first, then the end of it all, then its price."""
        return self.lateness, self.makespan, self.usd


def placed_in_order(problem: Problem, order: Sequence[int], wanted: Sequence[int | None]) -> Timetable:
    """Return the schedule in which each job of an order begins as early as those before it let it.

    Gaps that they left are filled. A job goes to the kind of machine on which it ends first, the cheaper of equals,
    unless a kind is wanted for it.

    Args:
        order: numbers of the jobs.
        wanted: the kind that each job has to take; None for any.
    """
    busy: list[list[tuple[float, float]]] = [[] for _ in problem.kinds]
    placed: list[Placed] = []
    for number in order:
        task = problem.tasks[number]
        kinds = range(len(task.seconds)) if wanted[number] is None else (wanted[number],)
        options = [
            (start + task.seconds[kind], task.seconds[kind] * problem.usd_per_second[kind], start, kind, machines)
            for kind in kinds
            if kind is not None and np.isfinite(task.seconds[kind])
            for start, machines in [_earliest(problem, busy, task, kind)]
            if machines
        ]
        end, _, start, kind, machines = min(options)
        for machine in machines:
            busy[machine].append((start, end))
            busy[machine].sort()
        placed.append(Placed(number, kind, machines, start, end))
    return judged(problem, placed)


def judged(problem: Problem, placed: Sequence[Placed]) -> Timetable:
    """Return placed jobs with what their schedule is judged by."""
    late = sum(
        max(entry.end - problem.tasks[entry.task].deadline, 0.0) * problem.tasks[entry.task].priority
        for entry in placed
    )
    usd = sum((entry.end - entry.start) * len(entry.machines) * problem.usd_per_second[entry.kind] for entry in placed)
    return Timetable(tuple(placed), late, max((entry.end for entry in placed), default=0.0), usd)


def _earliest(
    problem: Problem, busy: Sequence[Sequence[tuple[float, float]]], task: Task, kind: int
) -> tuple[float, tuple[int, ...]]:
    """Return when a job may begin on machines of a kind, and on which; none where there are too few of them."""
    machines, seconds = problem.of_kind(kind), task.seconds[kind]
    ready = {machine: max(problem.free_from[machine], task.earliest) for machine in machines}
    starts = {*ready.values(), *(end for machine in machines for _, end in busy[machine] if end > task.earliest)}
    for start in sorted(starts):
        free = [
            machine
            for machine in machines
            if ready[machine] <= start and all(end <= start or begin >= start + seconds for begin, end in busy[machine])
        ]
        if len(free) >= task.machines:
            return start, tuple(free[: task.machines])
    return np.inf, ()


MOST_JOBS, MOST_MACHINES = 500, 1000
"""Jobs and machines of one schedule."""

_SECTIONS = ("fleet", "jobs")

_EXAMPLE = "write it as 90s, 24h or 2d"


def _seconds(value: object) -> object:
    """Return a time in seconds; plain numbers mean hours, as in most calendars of jobs."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(_EXAMPLE)
    try:
        return parse_quantity(f"{value}h" if not isinstance(value, str) else value, "s")
    except UnitError as error:
        raise ValueError(_EXAMPLE) from error


Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0, allow_inf_nan=False)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MachineEntry(_Entry):
    """Machines of one kind."""

    instance: str = Field(description="id of an instance, or of a device that stands alone")
    count: Annotated[PositiveInt, Field(le=MOST_MACHINES)] = 1
    name: str | None = Field(None, description="what they are called; by default the instance")
    free_from: Seconds = 0.0
    usd_per_hour: PositiveFloat | None = Field(None, description="of one machine; by default the catalogue's")


class JobEntry(_Entry):
    """A job, by its plan or by how long it takes."""

    name: str | None = None
    plan: str | dict[str, object] | None = Field(None, description="a plan by name, file or line, or a plan itself")
    time: Seconds | None = Field(None, description="how long it takes, whatever the machine, where no plan says it")
    machines: Annotated[PositiveInt, Field(le=MOST_MACHINES)] = 1
    only_on: tuple[str, ...] = Field((), description="names of the machines it may run on; none for all")
    earliest: Seconds = 0.0
    deadline: Seconds | None = None
    priority: PositiveFloat = 1.0


EntryT = TypeVar("EntryT", bound=_Entry)


class Entries:
    """A file of a schedule as it was read."""

    def __init__(self, document: Document) -> None:
        self.document = document
        data = document.data
        if not isinstance(data, dict) or not data:
            hint = "give fleet: and jobs:, each a list"
            raise PlanError(
                "not a schedule", "it has no keys" if not data else "a list, or text", hint, document.place()
            )
        faults = list(self._strays(data))
        self.machines = tuple(self._read("fleet", MachineEntry, faults))
        self.jobs = tuple(self._read("jobs", JobEntry, faults))
        if not faults:
            faults += self._contradictions()
        if faults:
            first, *others = faults
            first.further = tuple(others)
            raise first

    def job_name(self, number: int) -> str:
        """Return what a job is called: its name, its plan, or its number."""
        job = self.jobs[number]
        plan = job.plan if isinstance(job.plan, str) else None
        return job.name or plan or f"job {number + 1}"

    def machine_name(self, number: int) -> str:
        """Return what machines of one entry are called."""
        return self.machines[number].name or self.machines[number].instance

    def _strays(self, data: Iterable[str]) -> Iterator[PlanError]:
        for key in data:
            if key not in _SECTIONS:
                near = nearest(key, _SECTIONS) or _SECTIONS
                hint = f"known: {' and '.join(near)}"
                yield PlanError("unknown field", repr(key)[:60], hint, self.document.place(key))

    def _read(self, section: str, kind: type[EntryT], faults: list[PlanError]) -> Iterator[EntryT]:
        data = self.document.data
        result = data.get(section) if isinstance(data, dict) else None
        if not isinstance(result, list) or not result:
            place = self.document.place(section)
            faults.append(PlanError("a list is missing", section, f"give {section}: with one entry a line", place))
            return
        if len(result) > MOST_JOBS:
            faults.append(
                PlanError("too many entries", f"{len(result)}", f"at most {MOST_JOBS}", self.document.place(section))
            )
            return
        for number, entry in enumerate(result):
            try:
                yield kind.model_validate(entry)
            except ValidationError as error:
                text = refusals(error, kind, self.document, (section, number), PlanError)
                faults += [item for item in text if isinstance(item, PlanError)]

    def _contradictions(self) -> Iterator[PlanError]:
        known = {self.machine_name(number) for number in range(len(self.machines))}
        seen: set[str] = set()
        for number in range(len(self.machines)):
            name = self.machine_name(number)
            if name in seen:
                place = self.document.place("fleet", number)
                yield PlanError("machines of one name twice", name, "give one of them a name, or add up count", place)
            seen.add(name)
        if sum(machine.count for machine in self.machines) > MOST_MACHINES:
            yield PlanError("too many machines", hint=f"at most {MOST_MACHINES}", place=self.document.place("fleet"))
        for number, job in enumerate(self.jobs):
            place = self.document.place("jobs", number)
            if (job.plan is None) == (job.time is None):
                what = "neither plan nor time" if job.plan is None else "both plan and time"
                yield PlanError("a job says how long it takes in one way", what, "give plan: or time:", place)
            for name in job.only_on:
                if name not in known:
                    near = ", ".join(nearest(name, tuple(known)) or sorted(known))
                    yield PlanError("no machines are called", repr(name)[:60], f"known: {near}", place)


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a job takes on machines of one kind.

    Attributes:
        seconds: the time with its range; infinite where it does not run there.
        reason: why it does not run there; empty where it does.
    """

    seconds: Interval
    reason: str = ""


def durations(
    entries: Entries, catalog: Catalog, read: Callable[[str], Plan], machine: Machine | None = None
) -> list[list[Duration]]:
    """Return how long each job takes on each kind of machine.

    Raises:
        PlanError: a job runs on none of the machines, or nothing is called what it names; all such faults.
    """
    result: list[list[Duration]] = []
    faults: list[PlanError] = []
    for number, job in enumerate(entries.jobs):
        place = entries.document.place("jobs", number)
        name = entries.job_name(number)
        try:
            plan = None if job.plan is None else _plan(job.plan, read)
        except CapacityError as error:
            faults.append(PlanError(f"{name}: {error.title}", error.detail, error.hint, place))
            continue
        result.append(
            [_duration(job, plan, entries, entry, catalog, machine) for entry in range(len(entries.machines))]
        )
        if not any(np.isfinite(mean(entry.seconds.value)) for entry in result[-1]):
            reasons = dict.fromkeys(entry.reason for entry in result[-1])
            detail = "; ".join(list(reasons)[:2])
            faults.append(PlanError(f"{name} runs on none of the machines", detail, "add machines that hold it", place))
    if faults:
        faults[0].further = tuple(faults[1:])
        raise faults[0]
    return result


def usd_per_hour(entry: MachineEntry, catalog: Catalog) -> float | None:
    """Return the price of one machine: its own, or that of the catalogue on demand; None where neither is known."""
    if entry.usd_per_hour is not None:
        return entry.usd_per_hour
    row_id = catalog.instances.find_id(entry.instance)
    quote = None if row_id is None else chosen_quote(catalog.instances[row_id], ON_DEMAND, None, catalog)
    return None if quote is None else quote.usd_per_hour


def _plan(text: str | dict[str, object], read: Callable[[str], Plan]) -> Plan:
    return read(text) if isinstance(text, str) else plan_from_data(text)


def _duration(
    job: JobEntry, plan: Plan | None, entries: Entries, kind: int, catalog: Catalog, machine: Machine | None
) -> Duration:
    """Return how long a job takes on machines of one entry."""
    entry, name = entries.machines[kind], entries.machine_name(kind)
    if job.only_on and name not in job.only_on:
        return Duration(NEVER, f"not on {name}")
    if entry.count < job.machines:
        return Duration(NEVER, f"{name}: {entry.count} of {job.machines} machines")
    if plan is None:
        seconds = job.time or 0.0
        return Duration(Interval.exactly(seconds))
    try:
        return _estimated(plan, entry, job.machines, catalog, machine)
    except CapacityError as error:
        return Duration(NEVER, f"{name}: {error.detail or error.title}")


def _estimated(plan: Plan, entry: MachineEntry, machines: int, catalog: Catalog, machine: Machine | None) -> Duration:
    """Return how long a plan takes on some machines: on its own number of devices on its own hardware, else on all."""
    is_own = plan.hardware.name == entry.instance and machines == 1 and plan.hardware.devices is not None
    there = plan
    if not is_own:
        devices = catalog.sold_together(entry.instance) * machines
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
