"""Moving a job to other machines: every instance with what the job reaches there, and what that costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog, Instance, load_catalog
from capacity_tui.engine.choose.modes.modes import ModeName, fill, open_fields
from capacity_tui.engine.choose.search.catalogue_names import hardware_ids
from capacity_tui.engine.cluster.pricing import instances_for
from capacity_tui.engine.cluster.resolve_cluster import resolve_cluster
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.fleet.alternative import Alternative, Migration
from capacity_tui.engine.fleet.assumptions import assumed
from capacity_tui.engine.fleet.priced import Machine, alternative, current_alternative
from capacity_tui.engine.fleet.question import MigrationQuestion
from capacity_tui.engine.fleet.reached import BATCH, Job, Reached
from capacity_tui.engine.fleet.verdict import judged
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.edit import with_values
from capacity_tui.engine.plan.field_lists import open_jobs
from capacity_tui.engine.plan.plan import AUTO, HardwareSection, Plan, PricingSection

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine as DetectedMachine

# What was found so far is told so often at most.
TOLD_SECONDS = 0.2


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
    rows = _rows(question, facts)
    now = _current(question, facts, machine)
    current = current_alternative(question, now)
    job = Job(_settled(question, now), question.kind, facts, machine, is_batch_open=_batch_is_open(question))
    found: list[Alternative] = []
    due = started + TOLD_SECONDS
    for number, row in enumerate(rows, start=1):
        if stopped():
            break
        found.append(alternative(question, _enough_of(question, job, row, now, facts), current, now))
        share = number / len(rows)
        if told is not None and monotonic() >= due and number < len(rows):
            told(_answer(current, found, share, monotonic() - started))
            due = monotonic() + TOLD_SECONDS
    else:
        return replace(_answer(current, found, 1.0, monotonic() - started), complete=True)
    return _answer(current, found, len(found) / max(1, len(rows)), monotonic() - started)


def _rows(question: MigrationQuestion, catalog: Catalog) -> tuple[Instance, ...]:
    """Return the instances to compare, those of the wanted ones that the catalogue has."""
    if not question.instances:
        return tuple(row for row in catalog.instances.values())
    ids = [name for each in question.instances for name in hardware_ids((each,), catalog)]
    rows = tuple(catalog.instances[name] for name in dict.fromkeys(ids) if name in catalog.instances)
    if not rows:
        raise PlanError("no instance is called that", ", ".join(question.instances)[:80], "see `instances --list`")
    return rows


def _current(question: MigrationQuestion, catalog: Catalog, machine: DetectedMachine | None) -> Machine:
    """Return the job where it is: as the plan says, what it leaves open chosen as for any machine."""
    mode: ModeName = "extreme" if question.kind == "batch_infer" else "balanced"
    filled = fill(question.plan, mode, machine, catalog)
    fits = filled.estimate.fits is not False
    short = 0.0
    memory = filled.estimate.memory
    if not fits and memory.capacity_bytes is not None:
        short = max(0.0, mean(memory.reserved_bytes.low) - float(np.max(np.asarray(memory.capacity_bytes))))
    cluster = filled.resolved.cluster
    devices = int(cluster.devices)
    reached = Reached(devices, {}, filled.resolved, filled.estimate if fits else None, short)
    name = filled.plan.hardware.name
    row_id = catalog.instances.find_id(name)
    row = None if row_id is None else catalog.instances[row_id]
    count = devices if row is None else instances_for(row, devices)
    return Machine(name if row is None else row.id, count, cluster, reached)


def _settled(question: MigrationQuestion, now: Machine) -> Plan:
    """Return the plan with the job as it is where it runs now, so that every machine gets the same."""
    resolved = now.reached.resolved
    assert resolved is not None  # noqa: S101 - the current machine has one
    wanted = {path: resolved.plan.value(path) for path in open_jobs() if question.plan.value(path) == AUTO}
    wanted["training.global_batch"] = resolved.plan.training.global_batch
    return with_values(question.plan, wanted)


def _batch_is_open(question: MigrationQuestion) -> bool:
    return BATCH in open_fields(question.plan)


def _enough_of(question: MigrationQuestion, job: Job, row: Instance, now: Machine, catalog: Catalog) -> Machine:
    """Return instances of one kind in the number that the job asks for."""
    reached = _reached(job, row, now)
    section = HardwareSection(name=row.id, devices=reached.devices)
    cluster = resolve_cluster(section, PricingSection(), catalog)
    reached = replace(reached, set={**reached.set, **_payment(question)})
    return Machine(row.id, instances_for(row, reached.devices), cluster, reached)


def _reached(job: Job, row: Instance, now: Machine) -> Reached:
    """Return what the job reaches on as many instances as it asks for.

    A service gets the fewest that hold the model and do the current machine's work. A training gets the devices that it
    has now, whole instances of them. What these do not hold is tried on more of them, where a network joins those.
    """
    sold = row.sold_devices
    have = now.reached.devices
    first = 1 if job.is_replicated else -(-have // sold)
    most = max(first, int(assumed("most_together"))) if row.network_link is not None else first
    count = first
    reached = job.on(row, count * sold)
    while not reached.fits and not reached.refusal and 2 * count <= most:
        count *= 2
        larger = job.on(row, count * sold)
        reached = larger if larger.fits or larger.short_bytes < reached.short_bytes else reached
    if not reached.fits and reached.refusal and have % sold and job.on(row, have).fits:
        return job.on(row, have)
    wanted, work = now.reached.work, reached.work
    if not job.is_replicated or wanted is None or work is None:
        return reached
    copies = int(np.ceil(mean(wanted.value) / mean(work.value) - 1e-9))
    return reached if copies <= 1 else job.spread(reached, row, copies * reached.devices)


def _payment(question: MigrationQuestion) -> dict[str, object]:
    """Return what the plan has to say so that it is paid as was asked."""
    given = question.plan.pricing
    return {"pricing.usd_per_hour": AUTO} if given.usd_per_hour is not None else {}


def _answer(current: Alternative, found: list[Alternative], share: float, seconds: float) -> Migration:
    return replace(judged(current, found), share_done=share, seconds=seconds)
