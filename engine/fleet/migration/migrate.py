"""Moving a job to other machines: every instance with what the job reaches there, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, Instance, load_catalog
from capacity_tui.engine.choose.modes.modes import ModeName, fill, open_fields
from capacity_tui.engine.choose.search.catalogue_names import hardware_ids
from capacity_tui.engine.choose.space.open_axes import open_fields_of_training
from capacity_tui.engine.choose.whatif.trials import SERVING_LAYOUT
from capacity_tui.engine.cluster.pricing import instances_for
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.fleet.migration.alternative import Alternative, Migration
from capacity_tui.engine.fleet.migration.comparing import Comparing
from capacity_tui.engine.fleet.migration.priced import Machine, current_alternative
from capacity_tui.engine.fleet.migration.question import MigrationQuestion
from capacity_tui.engine.fleet.migration.reached import BATCH, Job, estimated
from capacity_tui.engine.fleet.migration.remedies import with_larger_machines
from capacity_tui.engine.fleet.migration.risks import risk
from capacity_tui.engine.fleet.migration.verdict import judged
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.edit import with_values
from capacity_tui.engine.plan.layout_rules import FOLLOWING
from capacity_tui.engine.plan.plan import AUTO, Plan

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine as DetectedMachine

# What every machine has its own best value of, where nobody gives one.
_OF_MACHINES = ("training.precision", "parallelism.offload")
# Settings that are chosen for every machine alike, the current one included, where the plan leaves them open.
_CHOSEN = {BATCH, *open_fields_of_training(), *SERVING_LAYOUT}
# What was found so far is told so often at most.
TOLD_SECONDS = 0.2
# Machines that do the same work as nearly as numbers can tell are enough.
_NEARLY = 1e-9


def migrate(
    question: MigrationQuestion,
    catalog: Catalog | None = None,
    machine: DetectedMachine | None = None,
    told: Callable[[Migration], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Migration:
    """Return what moving a job to other instances would bring; what was found so far where it is stopped.

    Args:
        question: the job, and which instances are to be compared.
        catalog: facts; the shipped ones with the user's own by default.
        machine: the detected machine, for a job that runs on it.
        told: gets what was found so far now and then.
        stopped: asked between instances whether to stop.

    Raises:
        CapacityError: the job cannot be estimated where it is, or nothing is called what was asked for.
    """
    facts = catalog or load_catalog()
    started = monotonic()
    now, settled = _current(question, facts, machine)
    rows = _rows(question, now, facts)
    job = Job(_same_job(question.plan, settled), question.kind, facts, machine, is_batch_open=_batch_is_open(question))
    if set(open_fields(question.plan)) & _CHOSEN:
        now = _best_settings(job, now)
    current = current_alternative(question, now)
    current = replace(current, risk=risk(current, now))
    comparing = Comparing(question, now, current, job, facts)
    found: list[Alternative] = []
    due = started + TOLD_SECONDS
    for row in rows:
        if stopped():
            break
        found.append(comparing.with_instance(row))
        if told is not None and monotonic() >= due and len(found) < len(rows):
            told(_answer(question, current, found, len(rows), started))
            due = monotonic() + TOLD_SECONDS
    return _answer(question, current, found, len(rows), started)


def _rows(question: MigrationQuestion, now: Machine, catalog: Catalog) -> tuple[Instance, ...]:
    """Return the instances to compare: the wanted ones, else all with devices of the kind that the job runs on."""
    if not question.instances:
        on_processors = now.cluster.device.kind == "cpu"
        return tuple(row for row in catalog.instances.values() if on_processors or row.accelerator is not None)
    ids = [name for each in question.instances for name in hardware_ids((each,), catalog)]
    named = dict.fromkeys(found for name in ids for found in _instances_of(name, catalog))
    rows = tuple(catalog.instances[name] for name in named)
    if not rows:
        raise PlanError("no instance is called that", ", ".join(question.instances)[:80], "see `instances --list`")
    return rows


def _instances_of(name: str, catalog: Catalog) -> Iterator[str]:
    """Yield the instance of a name, or those that have the device of that name."""
    if name in catalog.instances:
        yield name
    else:
        yield from (row.id for row in catalog.instances_with(name))


def _current(question: MigrationQuestion, catalog: Catalog, machine: DetectedMachine | None) -> tuple[Machine, Plan]:
    """Return the job where it is: as the plan says, what it leaves open chosen as for any machine; and its plan."""
    mode: ModeName = "extreme" if question.kind == "batch_infer" else "balanced"
    filled = fill(question.plan, mode, machine, catalog)
    cluster = filled.resolved.cluster
    devices = int(cluster.devices)
    reached = estimated(filled.plan, filled.estimate, {})
    name = filled.plan.hardware.name
    row_id = catalog.instances.find_id(name)
    row = None if row_id is None else catalog.instances[row_id]
    count = devices if row is None else instances_for(row, devices)
    return Machine(name if row is None else row.id, count, cluster, reached, row), filled.plan


def _best_settings(job: Job, now: Machine) -> Machine:
    """Return the current machine with the settings of the most work, as those that it is compared with get them."""
    found = job.here(now.cluster)
    before = now.reached.work
    if found.work is None or (before is not None and mean(found.work.value) <= mean(before.value)):
        return now
    return replace(now, reached=found)


def _same_job(plan: Plan, settled: Plan) -> Plan:
    """Return the job as it is where it runs now, what a machine decides of it open.

    Args:
        plan: as the user gave it.
        settled: the same with nothing open.
    """
    is_open = (path for path in _OF_MACHINES if plan.value(path) == AUTO)
    following = (f"parallelism.{name}" for name in FOLLOWING)
    return with_values(settled, {**dict.fromkeys(following), **dict.fromkeys(is_open, AUTO)})


def _batch_is_open(question: MigrationQuestion) -> bool:
    return BATCH in open_fields(question.plan)


def _answer(
    question: MigrationQuestion, current: Alternative, found: Sequence[Alternative], wanted: int, started: float
) -> Migration:
    complete = len(found) == wanted
    answer = judged(question, current, with_larger_machines(found) if complete else found)
    return replace(answer, complete=complete, share_done=len(found) / wanted, seconds=monotonic() - started)
