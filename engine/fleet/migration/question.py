"""What is asked about moving a job to other machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from capacity_tui.engine.catalog import key_of, nearest
from capacity_tui.engine.catalog.fleet_files import words
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.solve.modes import ModeName

JobKind: TypeAlias = Literal["train", "finetune", "infer", "batch_infer"]
"""Training, fine-tuning, serving people who wait, and answering what nobody waits for."""
JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)
Goal: TypeAlias = Literal["cost", "performance"]
"""What moving is for."""
SERVED: JobKind = "infer"
"""The kind whose hours stay as they are on faster machines, and which no spot capacity is proposed for."""
MOST_HOURS = 744.0
"""Hours of the longest month."""


@dataclass(frozen=True, slots=True)
class MigrationQuestion:
    """A job on its current machines, and which others are to be compared.

    Attributes:
        plan: the job; its hardware names the current instance and the devices in use.
        kind: what the job is.
        hours: hours a month that it runs where it is.
        spot: whether alternatives may be paid for at spot prices; the plan's pricing says how the current one is paid.
        region: region or area of the prices; None for where prices are known.
        commitment: how long capacity would be committed to, ``1y`` or ``3y``; None for on demand.
        instances: ids of the instances to compare, or a provider for all of its own; none for all.
        data_bytes: data that has to move along, besides weights and checkpoints.
        goal: whether moving is judged by what it saves, or by how much faster it is.
        mode: the mode that fills what the plan leaves open; None for the one that is usual for the kind of job.
    """

    plan: Plan
    kind: JobKind
    hours: float = HOURS_OF_A_MONTH
    spot: bool = False
    region: str | None = None
    commitment: str | None = None
    instances: tuple[str, ...] = ()
    data_bytes: float = 0.0
    goal: Goal = "cost"
    mode: ModeName | None = None

    def __post_init__(self) -> None:
        """Refuse what no month and no job is.

        Raises:
            PlanError: hours outside a month, or an unknown kind of job.
        """
        checked_kind(self.kind)
        if not 0 < self.hours <= MOST_HOURS:
            raise PlanError("no such month", f"{self.hours:g} hours", f"give more than 0 and at most {MOST_HOURS:g}")
        if not 0 <= self.data_bytes < float("inf"):
            raise PlanError("no such amount of data", f"{self.data_bytes:g} bytes", "give 0 or more")

    @property
    def is_fixed_work(self) -> bool:
        """Whether a month is a fixed amount of work, which a faster machine ends earlier."""
        return self.kind != SERVED

    @property
    def fills(self) -> ModeName:
        """The mode that fills the plan: where nobody waits for answers, the one of the largest throughput."""
        return self.mode or ("extreme" if self.kind == "batch_infer" else "balanced")

    @property
    def payment(self) -> Mapping[str, object]:
        """How alternatives are paid for, as fields of a plan."""
        wanted = {Key.PRICING_REGION: self.region, Key.PRICING_COMMITMENT: self.commitment}
        return {path: value for path, value in wanted.items() if value is not None}

    @property
    def allows_spot(self) -> bool:
        """Whether the job may be interrupted at all: people who wait may not."""
        return self.kind != SERVED


def job_kind_of(plan: Plan) -> JobKind:
    """Return the kind of job that a plan is, serving being that of people who wait."""
    if plan.task == "infer":
        return SERVED
    return "finetune" if plan.task == "finetune" else "train"


def job_kind_called(name: str) -> JobKind:
    """Return the kind of job of a name: this program's own, or one that files of the fleet guide have.

    Raises:
        PlanError: there is no such kind; the hint tells the nearest.
    """
    called = words()["workload_types"].get(key_of(name))
    return checked_kind(str(called or name.casefold()))


def checked_kind(kind: str) -> JobKind:
    """Return a kind of job as it is.

    Raises:
        PlanError: there is no such kind; the hint tells the nearest.
    """
    found = next((known for known in JOB_KINDS if known == kind), None)
    if found is None:
        near = nearest(kind, JOB_KINDS)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(JOB_KINDS)}"
        raise PlanError("no such kind of job", repr(kind)[:80], hint)
    return found
