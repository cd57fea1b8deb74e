"""What is asked about moving a job to other machines, and what each of them would be for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from functools import cache
from typing import Literal, TypeAlias, get_args

from capacity_tui.engine.catalog import Catalog, Workload, key_of, nearest, parse_shipped
from capacity_tui.engine.catalog.fleet_files import words
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH, PERFORMANCE_TAG
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.plan import DETECTED, Plan, counted_name, edited
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes import ModeName
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_number, format_quantity
from capacity_tui.engine.verdict import Verdict as Judged

Degree: TypeAlias = Literal["low", "medium", "high"]
Priority: TypeAlias = Literal["cost", "performance", "reliability"]
Verdict: TypeAlias = Literal["stay", "move"]


@dataclass(frozen=True, slots=True)
class Level:
    """How much of something there is, and the reasons it follows from."""

    level: Degree = "low"  # low, medium or high
    reasons: tuple[str, ...] = ()  # what makes it so, the weightiest first; none where it is low because of nothing


@dataclass(frozen=True, slots=True)
class MovePart:
    """One part of what moving takes once."""

    name: str
    usd: float | None  # what it costs; None where no price is known
    hours: float  # how long it takes
    detail: str  # how both follow


@dataclass(frozen=True, slots=True)
class Remedy:
    """What would make a job fit where it does not."""

    words: str
    set: Mapping[str, object]  # the change of the plan
    short_bytes: float = 0.0  # what would still be missing on a device; 0 where it fits then
    is_enough: bool = True  # whether devices and host then hold the job


@dataclass(frozen=True, slots=True)
class Alternative:
    """A machine for the job, the current one or another; figures are None where something they rest on is not known."""

    instance: str  # id of the instance; of the current machine maybe that of a device
    count: int  # instances that are rented; of devices without an instance, devices
    devices: int  # devices in use
    fits: bool  # whether the job fits, and keeps the limits of its plan
    verdict: Judged = Judged.FITS  # the verdict on the plan there
    reason: str = ""  # the constraints that decide it, in words; empty where all of them hold surely
    short_bytes: float = 0.0  # bytes that the fullest device lacks; 0 where it fits
    provider: str = ""  # who rents it out; empty for a machine of one's own
    set: Mapping[str, object] = field(default_factory=dict)  # the change that makes the plan this one
    figures: Mapping[str, Interval] = field(default_factory=dict)  # figures of the estimate by result key
    performance_ratio: Interval | None = None  # work a second over that of the current machine
    performance_percent: Interval | None = None  # how much more of it that is
    usd_per_hour: float | None = None  # price of all instances, on demand or committed to
    usd_per_hour_spot: float | None = None  # the same on spot capacity; None also where the job must not be interrupted
    usd_month: float | None = None  # price of the month's hours, on demand or committed to
    usd_month_spot: Interval | None = None  # the same on spot capacity, with the hours that interruptions cost
    usd_same_work: Interval | None = None  # price of the current month's work, paid as the question says
    hours_same_work: Interval | None = None  # hours that this work takes
    saving_usd: Interval | None = None  # what the month's work costs less than on the current machine
    saving_percent: Interval | None = None  # the same in percent
    is_spot: bool = False  # whether saving and price of the same work are those of spot capacity
    move: tuple[MovePart, ...] = ()  # what moving takes once, part by part
    move_usd: float | None = None  # the sum of its prices
    move_hours: float = 0.0  # the sum of its hours
    # hours of running on the current machine after which moving has paid; None where it never does
    break_even_hours: float | None = None
    risk: Level = Level()  # what may go wrong
    complexity: Level = Level()  # how much has to change
    remedies: tuple[Remedy, ...] = ()  # what would make it fit
    warnings: tuple[str, ...] = ()  # what to know of it
    region: str | None = None  # where the price is from
    price_date: str | None = None  # when the price was seen
    price_provider: str = ""  # whose price it is; empty where none is known
    price_source: str = ""  # provider, instance, region and day of it, marked where it is old or was not verified
    price_days: int | None = None  # age of the price in days; None where its day is not known
    price_is_old: bool = False  # whether the price was seen so long ago, or nobody knows when, that it is marked
    absence: str = ""  # why there is no price, or no spot price


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to do, for one priority."""

    priority: Priority  # cost, performance or reliability
    instance: str  # where to; the current one where it is to stay
    title: str  # what to do
    detail: str  # what that gives, and what it asks
    set: Mapping[str, object] = field(default_factory=dict)  # the change that does it; empty for staying as it is


@dataclass(frozen=True, slots=True)
class Migration(ShownInNotebooks):
    """What moving a job would bring, or has turned out to bring so far."""

    current: Alternative  # the job where it is
    # the job elsewhere, the largest saving first, or the cheapest where none is known; what does not fit last
    alternatives: tuple[Alternative, ...] = ()
    verdict: Verdict = "stay"  # whether to stay or to move
    reasons: tuple[str, ...] = ()  # why
    recommendations: tuple[Recommendation, ...] = ()  # what to do, by priority
    goes_to: Alternative | None = None  # where the verdict moves the job; None where it stays
    complete: bool = False  # whether every instance was looked at
    share_done: float = 0.0  # share of them that were
    seconds: float = 0.0  # how long it took


JobKind: TypeAlias = Literal["train", "finetune", "infer", "batch_infer"]
"""Training, fine-tuning, serving people who wait, and answering what nobody waits for."""

JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)
Goal: TypeAlias = Literal["cost", "performance"]  # What moving is for
SERVED: JobKind = "infer"
"""The kind whose hours stay as they are on faster machines, and which no spot capacity is proposed for."""

MOST_HOURS = 744.0  # Hours of the longest month


@dataclass(frozen=True, slots=True)
class MigrationQuestion:
    """A job on its current machines, and which others are to be compared."""

    plan: Plan  # the job; its hardware names the current instance and the devices in use
    kind: JobKind  # what the job is
    hours: float = HOURS_OF_A_MONTH  # hours a month that it runs where it is
    # whether alternatives may be paid for at spot prices; the plan's pricing says how the current one is paid
    spot: bool = False
    region: str | None = None  # region or area of the prices; None for where prices are known
    commitment: str | None = None  # how long capacity would be committed to, ``1y`` or ``3y``; None for on demand
    instances: tuple[str, ...] = ()  # ids of the instances to compare, or a provider for all of its own; none for all
    data_bytes: float = 0.0  # data that has to move along, besides weights and checkpoints
    goal: Goal = "cost"  # whether moving is judged by what it saves, or by how much faster it is
    # the mode that fills what the plan leaves open; None for the one that is usual for the kind of job
    mode: ModeName | None = None

    def __post_init__(self) -> None:
        """Raise PlanError for hours outside a month, or an unknown kind of job."""
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
    if plan.is_inference:
        return SERVED
    return "finetune" if plan.is_finetuning else "train"


def job_kind_called(name: str) -> JobKind:
    """Return the kind of job of a name: this program's own, or one that files of the fleet guide have.

    Raises:
        PlanError: there is no such kind; the hint tells the nearest.
    """
    called = words()["workload_types"].get(key_of(name))
    return checked_kind(str(called or name.casefold()))


def checked_kind(kind: str) -> JobKind:
    """Return a kind of job as it is; raises PlanError if there is no such kind; the hint tells the nearest."""
    match = next((known for known in JOB_KINDS if known == kind), None)
    if match is None:
        near = nearest(kind, JOB_KINDS)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(JOB_KINDS)}"
        raise PlanError("no such kind of job", repr(kind)[:80], hint)
    return match


PRECISION, WEIGHTS = Key.TRAINING_PRECISION, Key.INFERENCE_WEIGHTS


@dataclass(frozen=True, slots=True)
class JobWords:
    """A job as people say it.

    Attributes:
        instance: where it runs: an instance, or a device; None for what a plan says.
        model: a size, a model or a count of parameters; or a whole plan.
        kind: what it is; None for what the plan says.
        count: instances that are rented for it; with ``devices`` those follow.
        devices: devices in use, over all instances; None for all that are rented.
        precision: of the training, or of the weights that are served; None for the usual one.
        hours: hours a month that it runs.
        spot: whether alternatives may be paid for at spot prices.
        region: region or area of the prices.
        commitment: how long capacity is committed to.
        instances: instances to compare; none for all.
        data_bytes: data that moves along.
        goal: whether moving is judged by what it saves, or by how much faster it is.
        mode: the mode that fills what is left open; None for the usual one.
    """

    instance: str | None
    model: str | Plan
    kind: JobKind | None = None
    count: int = 1
    devices: int | None = None
    precision: str | None = None
    hours: float = HOURS_OF_A_MONTH
    spot: bool = False
    region: str | None = None
    commitment: str | None = None
    instances: tuple[str, ...] = ()
    data_bytes: float = 0.0
    goal: Goal = "cost"
    mode: ModeName | None = None


def question_of_job(job: JobWords, catalog: Catalog) -> MigrationQuestion:
    """Return the question about moving a job.

    Raises:
        CapacityError: nothing is called what the job names, or its parts contradict each other.
    """
    kind = _kind(job)
    if job.count < 1 or (job.devices is not None and job.devices < 1):
        raise PlanError("no such number of machines", f"{job.count} instances, {job.devices} devices", "give 1 or more")
    pricing: dict[str, object] = {Key.PRICING_REGION: job.region, Key.PRICING_COMMITMENT: job.commitment}
    change = {**_hardware(job, catalog), **{path: value for path, value in pricing.items() if value is not None}}
    if job.precision is not None:
        name = catalog.precisions.find(job.precision).id
        change |= {WEIGHTS: name} if kind in ("infer", "batch_infer") else {PRECISION: name}
    plan = job.model if isinstance(job.model, Plan) else _plan(job.model, kind)
    same = {entry.name: getattr(job, entry.name) for entry in fields(MigrationQuestion) if entry.name != "plan"}
    return MigrationQuestion(edited(plan, change, catalog).plan if change else plan, **{**same, "kind": kind})


def question_of_workload(row: Workload, catalog: Catalog) -> MigrationQuestion:
    """Return the question that a workload of the catalogue asks."""
    scenario = row.scenario
    return question_of_job(
        JobWords(
            instance=scenario.current_instance,
            model=scenario.model_size,
            kind=scenario.workload_type,
            devices=scenario.current_gpu_count,
            precision=scenario.precision,
            hours=scenario.monthly_hours,
            spot=scenario.use_spot,
            goal="performance" if PERFORMANCE_TAG in row.tags else "cost",
        ),
        catalog,
    )


def _hardware(job: JobWords, catalog: Catalog) -> dict[str, object]:
    """Return what a plan says of the machines where the job is; nothing where a plan says it already."""
    if job.instance is None:
        if not isinstance(job.model, Plan):
            raise PlanError("the job's current machine is not given", hint="name its instance, or give a plan")
        return {} if job.devices is None else {Key.HARDWARE_DEVICES: job.devices}
    if job.instance == DETECTED:
        return {Key.HARDWARE_NAME: DETECTED, Key.HARDWARE_DEVICES: job.devices}
    counted = counted_name(job.instance)
    name = job.instance if counted is None else counted[1]
    match = catalog.find_hardware(name)
    sold = catalog.instances[match.id].sold_devices if match.id in catalog.instances else 1
    rented = job.count * sold if counted is None else counted[0]
    return {Key.HARDWARE_NAME: match.id, Key.HARDWARE_DEVICES: job.devices or rented}


def _kind(job: JobWords) -> JobKind:
    if not isinstance(job.model, Plan):
        return checked_kind(job.kind or "infer")
    own = job_kind_of(job.model)
    kind = job.kind if job.kind is not None else own
    if (kind in ("infer", "batch_infer")) != (own == "infer"):
        raise PlanError("the plan does something else", f"task {job.model.task}, not {kind}", "leave the task out")
    return checked_kind(kind)


def _plan(model: str, kind: JobKind) -> Plan:
    return plan_from_data({**_plans()[kind], "model": {"name": model}})


@cache
def _plans() -> Mapping[str, Mapping[str, object]]:
    return parse_shipped("job_plans.yaml")


_WHOLE = 10.0  # Ratios from here on are written without decimals


def money(usd: Number) -> str:
    """Return a sum of money, without cents where it is large."""
    return format_quantity(mean(usd), "USD")


def percent(share: Interval) -> str:
    """Return a figure that is in percent, with its range where it has one."""
    value, low, high = (f"{mean(end):.0f}" for end in (share.value, share.low, share.high))
    return f"{value} %" if low == high else f"{value} % ({low} to {high} %)"


def times(ratio: Interval) -> str:
    """Return how many times as much something is, with its range."""
    value, low, high = (_ratio(mean(end)) for end in (ratio.value, ratio.low, ratio.high))
    return value if low == high else f"{value} ({low} to {high})"


def ends(ratio: Interval) -> str:
    """Return the ends of such a range."""
    return f"{_ratio(mean(ratio.low))} to {_ratio(mean(ratio.high))}"


def machines(alternative: Alternative) -> str:
    """Return which machines are meant, and that they are spot capacity."""
    return f"{alternative.count} x {alternative.instance}{' on spot capacity' if alternative.is_spot else ''}"


def _ratio(value: float) -> str:
    return format_number(round(value)) if value >= _WHOLE else f"{value:.2g}"
