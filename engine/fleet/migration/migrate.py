"""Moving a job to other machines: every instance with what the job reaches there, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, Instance, Workload, load_catalog
from capacity_tui.engine.cluster import instances_for
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.fleet.migration.alternative import Alternative, Migration
from capacity_tui.engine.fleet.migration.comparing import Comparing, Remedies, with_larger_machines
from capacity_tui.engine.fleet.migration.priced import Machine, current_alternative
from capacity_tui.engine.fleet.migration.question import MigrationQuestion, question_of_workload
from capacity_tui.engine.fleet.migration.throughput import Job, Reached
from capacity_tui.engine.fleet.migration.verdict import judged, risk
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.solve.search import hardware_ids

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine as DetectedMachine

# What was found so far is told so often at most.
CALLBACK_SECONDS = 0.2


def migrate(
    question: MigrationQuestion,
    catalog: Catalog | None = None,
    machine: DetectedMachine | None = None,
    callback: Callable[[Migration], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Migration:
    """Return what moving a job to other instances would bring; what was found so far where it is stopped.

    Args:
        question: the job, and which instances are to be compared.
        catalog: facts; the shipped ones with the user's own by default.
        machine: the detected machine, for a job that runs on it.
        callback: gets what was found so far now and then.
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
    alternatives: list[Alternative] = []
    due = started + CALLBACK_SECONDS
    for row in rows:
        if stopped():
            break
        alternatives.append(comparing.with_instance(row))
        if callback is not None and monotonic() >= due and len(alternatives) < len(rows):
            callback(_answer(question, current, alternatives, len(rows), started))
            due = monotonic() + CALLBACK_SECONDS
    return _answer(question, current, alternatives, len(rows), started)


def _rows(question: MigrationQuestion, now: Machine, catalog: Catalog) -> tuple[Instance, ...]:
    """Return the instances to compare: the wanted ones, else all with devices of the kind that the job runs on."""
    if not question.instances:
        on_processors = now.cluster.device.kind == "cpu"
        return tuple(row for row in catalog.instances.values() if on_processors or row.accelerator is not None)
    ids = [name for instance in question.instances for name in hardware_ids((instance,), catalog)]
    named = dict.fromkeys(entry for name in ids for entry in _instances_of(name, catalog))
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
    question: MigrationQuestion, current: Alternative, alternatives: Sequence[Alternative], wanted: int, started: float
) -> Migration:
    complete = len(alternatives) == wanted
    answer = judged(question, current, with_larger_machines(alternatives) if complete else alternatives)
    return replace(answer, complete=complete, share_done=len(alternatives) / wanted, seconds=monotonic() - started)


USUAL_SET = "basic_demos"
"""The set that is run where nobody names one."""


@dataclass(frozen=True, slots=True)
class WorkloadRun:
    """One workload, and what moving it would bring.

    Attributes:
        workload: id in the catalogue.
        name: what it is called.
        expected_outcome: what people expect of moving; None where nobody said.
        migration: what was found; None where the workload cannot be estimated.
        failure: why it cannot be.
    """

    workload: str
    name: str
    expected_outcome: str | None
    migration: Migration | None
    failure: str = ""

    @property
    def outcome(self) -> str:
        """What was found, in a sentence."""
        if self.migration is None:
            return f"cannot be estimated: {self.failure}"
        return f"{self.migration.verdict}: {'; '.join(self.migration.reasons)}"


def run_workloads(
    names: Iterable[str],
    catalog: Catalog | None = None,
    callback: Callable[[str, Migration], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    instances: tuple[str, ...] = (),
) -> Iterator[WorkloadRun]:
    """Yield what moving each of some workloads would bring; one that cannot be estimated does not keep the rest.

    Args:
        names: ids in the workloads catalogue, each run once.
        catalog: facts; the shipped ones with the user's own by default.
        callback: gets the id of the workload at work and what was found so far.
        stopped: asked between instances whether to stop.
        instances: instances to compare with, or a provider for all of its own; none for all.

    Raises:
        CatalogError: no workload is called that.
    """
    facts = catalog or load_catalog()
    rows = [facts.workloads.find(name) for name in dict.fromkeys(names)]
    for row in rows:
        if not stopped():
            yield _run(row, instances, facts, callback, stopped)


def workloads_of(sets: Iterable[str], catalog: Catalog) -> tuple[str, ...]:
    """Return the workloads of sets, those of the usual set where none is named.

    Raises:
        CatalogError: no set is called that.
    """
    rows = [catalog.workload_sets.find(name) for name in tuple(sets) or (USUAL_SET,)]
    return tuple(dict.fromkeys(name for row in rows for name in row.workloads))


def _run(
    row: Workload,
    instances: tuple[str, ...],
    catalog: Catalog,
    callback: Callable[[str, Migration], None] | None,
    stopped: Callable[[], bool],
) -> WorkloadRun:
    def tell(so_far: Migration) -> None:
        if callback is not None:
            callback(row.id, so_far)

    try:
        question = replace(question_of_workload(row, catalog), instances=instances)
        result = migrate(question, catalog, None, tell, stopped)
    except CapacityError as error:
        return WorkloadRun(row.id, row.name, row.expected_outcome, None, error.one_line())
    return WorkloadRun(row.id, row.name, row.expected_outcome, result)
