"""Many jobs in one call: workloads of the catalogue and sets of them, with what was expected beside what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from capacity_tui.engine.catalog import Catalog, Workload, load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.fleet.migration.alternative import Migration
from capacity_tui.engine.fleet.migration.jobs import question_of_workload
from capacity_tui.engine.fleet.migration.migrate import migrate

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
    def found_outcome(self) -> str:
        """What was found, in a sentence."""
        if self.migration is None:
            return f"cannot be estimated: {self.failure}"
        return f"{self.migration.verdict}: {'; '.join(self.migration.reasons)}"


def run_workloads(
    names: Iterable[str],
    catalog: Catalog | None = None,
    told: Callable[[str, Migration], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    instances: tuple[str, ...] = (),
) -> Iterator[WorkloadRun]:
    """Yield what moving each of some workloads would bring; one that cannot be estimated does not keep the rest.

    Args:
        names: ids in the workloads catalogue, each run once.
        catalog: facts; the shipped ones with the user's own by default.
        told: gets the id of the workload at work and what was found so far.
        stopped: asked between instances whether to stop.
        instances: instances to compare with, or a provider for all of its own; none for all.

    Raises:
        CatalogError: no workload is called that.
    """
    facts = catalog or load_catalog()
    rows = [facts.workloads.find(name) for name in dict.fromkeys(names)]
    for row in rows:
        if not stopped():
            yield _run(row, instances, facts, told, stopped)


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
    told: Callable[[str, Migration], None] | None,
    stopped: Callable[[], bool],
) -> WorkloadRun:
    def tell(so_far: Migration) -> None:
        if told is not None:
            told(row.id, so_far)

    try:
        question = replace(question_of_workload(row, catalog), instances=instances)
        found = migrate(question, catalog, None, tell, stopped)
    except CapacityError as error:
        return WorkloadRun(row.id, row.name, row.expected_outcome, None, error.one_line())
    return WorkloadRun(row.id, row.name, row.expected_outcome, found)
