"""From what people say of a job to the question about moving it: an instance, a model, a precision, hours a month."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from capacity_tui.engine.catalog import Catalog, Workload, parse_shipped
from capacity_tui.engine.catalog.rows import HOURS_OF_A_MONTH, PERFORMANCE_TAG
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.fleet.migration.question import Goal, JobKind, MigrationQuestion, checked_kind, job_kind_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import DETECTED, Plan, counted_name, edited
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve.modes import ModeName

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
    return MigrationQuestion(
        plan=edited(plan, change, catalog).plan if change else plan,
        kind=kind,
        hours=job.hours,
        spot=job.spot,
        region=job.region,
        commitment=job.commitment,
        instances=job.instances,
        data_bytes=job.data_bytes,
        goal=job.goal,
        mode=job.mode,
    )


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
            raise PlanError("nothing says where the job runs", hint="name its instance, or give a plan")
        return {} if job.devices is None else {Key.HARDWARE_DEVICES: job.devices}
    if job.instance == DETECTED:
        return {Key.HARDWARE_NAME: DETECTED, Key.HARDWARE_DEVICES: job.devices}
    counted = counted_name(job.instance)
    name = job.instance if counted is None else counted[1]
    found = catalog.find_hardware(name)
    sold = catalog.instances[found.id].sold_devices if found.id in catalog.instances else 1
    rented = job.count * sold if counted is None else counted[0]
    return {Key.HARDWARE_NAME: found.id, Key.HARDWARE_DEVICES: job.devices or rented}


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
    return parse_shipped(files("capacity_tui.profiles").joinpath("job_plans.yaml"))
