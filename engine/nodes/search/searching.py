"""Searching with the workers of a Ray cluster, resumable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.choose.search import Answer, Question, answerable
from capacity_tui.engine.nodes.search.chunks import Cutting
from capacity_tui.engine.nodes.search.circumstances import circumstances, own_files
from capacity_tui.engine.nodes.search.journal import journal_of
from capacity_tui.engine.nodes.search.ray_workers import ray_workers
from capacity_tui.engine.nodes.search.shared_search import SharedSearch
from capacity_tui.engine.nodes.search.worker import Work

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(frozen=True, slots=True)
class Shared:
    """An answer that workers found.

    Attributes:
        answer: what a search here would say.
        resumed: chunks that an earlier search of the same had done.
        lost: chunks that lost their worker and were done again.
    """

    answer: Answer
    resumed: int
    lost: int


def search_on_ray(
    address: str,
    question: Question,
    machine: Machine | None = None,
    progress: Callable[[Answer], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    cutting: Cutting | None = None,
) -> Shared:
    """Return the best configurations of a question, found by the workers of a Ray cluster.

    The answer is that of a search here, to the last bit. What is done is kept until the search is complete: started
    again, the same search resumes from there.

    Args:
        address: ``HOST:PORT`` of a cluster, ``auto``, ``local`` or ``local:N``.
        machine: the detected machine, for plans that run on it.
        progress: gets the best so far now and then.
        stopped: polled for whether to stop.

    Raises:
        CapacityError: the question makes no sense or nothing of it can be estimated, or the cluster cannot be used.
    """
    catalog, user_files, cut = load_catalog(), own_files(), cutting or Cutting()
    rests_on = circumstances(question)
    journal = journal_of(question, machine, rests_on, user_files, cut)
    shared = SharedSearch(question, catalog, machine, journal, cut)
    with ray_workers(address, Work(answerable(question), machine, user_files, rests_on, cut)) as workers:
        answer = shared.run(workers, progress, stopped)
        lost = workers.lost
    if answer.complete:
        journal.remove()
    return Shared(answer, shared.resumed, lost)
