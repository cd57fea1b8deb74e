"""Files of jobs and machines to schedule, and folders of plans as a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from capacity_tui.engine.catalog import Document, Plain, nearest, read_yaml, refusals
from capacity_tui.engine.errors import CapacityError, Place, PlanError, UnitError, refuse_all
from capacity_tui.engine.files import reading
from capacity_tui.engine.units import parse_quantity

MOST_JOBS, MOST_MACHINES = 500, 1000  # Jobs and machines of one schedule
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

    instance: str = Field(description="id of an instance, or of a device by itself")
    count: Annotated[PositiveInt, Field(le=MOST_MACHINES)] = 1
    devices: PositiveInt | None = Field(None, description="of one machine; by default those of the instance")
    taken: tuple[int, ...] = Field((), description="devices of each machine that others have; none by default")
    taken_until: tuple[Seconds | None, ...] = Field((), description="when each machine gets them back; None for never")
    names: tuple[str, ...] = Field((), description="what each machine is called; by default numbers behind the name")
    name: str | None = Field(None, description="what they are called; by default the instance")
    free_from: Seconds = 0.0
    usd_per_hour: PositiveFloat | None = Field(None, description="of one machine; by default the catalogue's")


class JobEntry(_Entry):
    """A job, by its plan or by how long it takes."""

    name: str | None = None
    plan: str | dict[str, object] | None = Field(None, description="a plan by name, file or line, or a plan itself")
    time: Seconds | None = Field(None, description="how long it takes, whatever the machine, where no plan says it")
    machines: Annotated[PositiveInt, Field(le=MOST_MACHINES)] = 1
    devices: PositiveInt | None = Field(None, description="of each machine, as its plan lays them out; all by default")
    only_on: tuple[str, ...] = Field((), description="names of the machines it may run on; none for all")
    earliest: Seconds = 0.0
    deadline: Seconds | None = None
    priority: PositiveFloat = 1.0


EntryT = TypeVar("EntryT", bound=_Entry)


class Entries:
    """A file of a schedule as it was read.

    Args:
        folder: of plans, as a queue: jobs that run on none of the machines, or whose plan cannot be read, are left
            out; None for a file, where they are errors.
    """

    def __init__(self, document: Document, folder: Path | None = None) -> None:
        self.document = document
        self.folder = folder
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
        refuse_all(faults)

    def changed(self, jobs: Sequence[JobEntry]) -> Entries:
        """Return the same machines with other jobs."""
        changed = copy(self)
        changed.jobs = tuple(jobs)
        return changed

    def job_name(self, number: int) -> str:
        """Return what a job is called: its name, its plan, or its number."""
        job = self.jobs[number]
        plan = job.plan if isinstance(job.plan, str) else None
        return job.name or plan or f"job {number + 1}"

    def job_fault(self, number: int, error: CapacityError) -> PlanError:
        """Return what is wrong with a job's plan, with its place: the file of the folder, or the job's own entry."""
        plan, place = self.jobs[number].plan, error.place
        is_file = self.folder is not None and isinstance(plan, str) and (self.folder / plan).is_file()
        if is_file and place.file is None:
            place = Place(f"{self.folder}/{plan}", place.line, place.field)
        if is_file:
            return PlanError(error.title, error.detail, error.hint, place)
        title = f"{self.job_name(number)}: {error.title}"
        return PlanError(title, error.detail, error.hint, self.document.place("jobs", number))

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


QUEUE_FILE = "queue.yaml"
"""What a folder of plans may hold besides: deadlines, priorities and machines, in the form of a schedule."""
_PLAN_SUFFIXES = (".yaml", ".yml", ".json")


def folder_entries(folder: Path, machines: Callable[[], Sequence[Plain]]) -> Entries:
    """Return a folder of plans as a queue: each file is a job, in the order of their names.

    Args:
        machines: returns what there is, as entries of ``fleet``; not called where the queue file names machines.

    Raises:
        CapacityError: the folder cannot be read, or holds no plan.
    """
    with reading(folder):
        files = sorted(path.name for path in folder.iterdir() if path.suffix in _PLAN_SUFFIXES and path.is_file())
    queue = folder / QUEUE_FILE
    document = read_yaml(queue) if QUEUE_FILE in files else Document({}, str(folder))
    data = document.data if document.data is not None else {}
    if not isinstance(data, dict):
        raise PlanError("not a queue", hint="give jobs: and fleet:, each a list", place=document.place())
    listed = data.get("jobs") or []
    named = [job.get("plan") for job in listed if isinstance(job, dict)] if isinstance(listed, list) else []
    jobs: list[Plain] = [
        {"plan": name, "name": Path(name).stem} for name in files if name != QUEUE_FILE and name not in named
    ]
    whole: dict[str, Plain] = {**data, "jobs": [*listed, *jobs] if isinstance(listed, list) else listed}
    if not whole["jobs"]:
        raise PlanError("no plan is in the folder", str(folder), "put plan files there, each a job")
    if not data.get("fleet"):
        whole["fleet"] = list(machines())
    return Entries(Document(whole, document.file, document.lines), folder)
