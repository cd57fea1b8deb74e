"""Moving a job to other machines: every instance with what the job reaches there, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, Instance, load_catalog
from capacity_tui.engine.cluster import instances_for
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.fleet.migration.alternative import Alternative, Migration
from capacity_tui.engine.fleet.migration.comparing import Comparing
from capacity_tui.engine.fleet.migration.priced import Machine, current_alternative
from capacity_tui.engine.fleet.migration.question import MigrationQuestion
from capacity_tui.engine.fleet.migration.reached import Job, Reached
from capacity_tui.engine.fleet.migration.remedies import Remedies, with_larger_machines
from capacity_tui.engine.fleet.migration.risks import risk
from capacity_tui.engine.fleet.migration.verdict import judged
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.solve.search import hardware_ids

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine as DetectedMachine

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
    now = _current(question, facts, machine)
    rows = _rows(question, now, facts)
    assert now.reached.filled is not None  # noqa: S101 - the job is estimated where it is
    job = Job(question.plan, now.reached.filled.plan, question.fills, question.payment, facts, machine)
    current = current_alternative(question, now)
    current = replace(current, risk=risk(current, now))
    if now.reached.is_short:
        current = replace(current, remedies=Remedies(job, facts).of(current, now.cluster.device))
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


def _current(question: MigrationQuestion, catalog: Catalog, machine: DetectedMachine | None) -> Machine:
    """Return the job where it is, as planning it gives."""
    filled = fill(question.plan, question.fills, machine, catalog)
    cluster, name = filled.resolved.cluster, filled.plan.hardware.name
    reached = Reached.of(filled, {})
    row_id = catalog.instances.find_id(name)
    row = None if row_id is None else catalog.instances[row_id]
    count = reached.devices if row is None else instances_for(row, reached.devices)
    return Machine(name if row is None else row.id, count, cluster, reached, row)


def _answer(
    question: MigrationQuestion, current: Alternative, found: Sequence[Alternative], wanted: int, started: float
) -> Migration:
    complete = len(found) == wanted
    answer = judged(question, current, with_larger_machines(found) if complete else found)
    return replace(answer, complete=complete, share_done=len(found) / wanted, seconds=monotonic() - started)
