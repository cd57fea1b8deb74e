"""Jobs and machines as numbers, and the schedule that an order of the jobs makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from capacity_tui.engine.catalog import Document, nearest, refusals
from capacity_tui.engine.errors import PlanError, UnitError
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import parse_quantity


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
