"""The file of a schedule: machines there are, and jobs that want them; every fault of it by line and field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from capacity_tui.engine.catalog import Document, nearest, refusals
from capacity_tui.engine.errors import PlanError, UnitError
from capacity_tui.engine.units import parse_quantity

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
    """A file of a schedule as it was read.

    Attributes:
        document: where everything stands.
        machines: the machines.
        jobs: the jobs.
    """

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
        found = data.get(section) if isinstance(data, dict) else None
        if not isinstance(found, list) or not found:
            place = self.document.place(section)
            faults.append(PlanError("a list is missing", section, f"give {section}: with one entry a line", place))
            return
        if len(found) > MOST_JOBS:
            faults.append(
                PlanError("too many entries", f"{len(found)}", f"at most {MOST_JOBS}", self.document.place(section))
            )
            return
        for number, entry in enumerate(found):
            try:
                yield kind.model_validate(entry)
            except ValidationError as error:
                told = refusals(error, kind, self.document, (section, number), PlanError)
                faults += [each for each in told if isinstance(each, PlanError)]

    def _contradictions(self) -> Iterator[PlanError]:
        known = {self.machine_name(number) for number in range(len(self.machines))}
        seen: set[str] = set()
        for number in range(len(self.machines)):
            name = self.machine_name(number)
            if name in seen:
                place = self.document.place("fleet", number)
                yield PlanError("machines of one name twice", name, "give one of them a name, or add up count", place)
            seen.add(name)
        if sum(each.count for each in self.machines) > MOST_MACHINES:
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
