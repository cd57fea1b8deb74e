"""A question asked backwards, answered as rows: the value that keeps the limits, and the next one, which does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from capacity_tui.engine.estimate import figures_of
from capacity_tui.engine.present import TextPart, needed_parts
from capacity_tui.engine.solve.need import need, solved_path
from capacity_tui.engine.solve.search import Answer as SearchAnswer
from capacity_tui.engine.solve.search import SearchResult
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.screens.find.found_view import found_of
from capacity_tui.tui.shown.found import Found, FoundRow

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Catalog
    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.solve import Candidate
    from capacity_tui.engine.solve.need import Needed
    from capacity_tui.engine.solve.search import Question

_TOLD_SECONDS = 0.1


def solved(
    question: Question,
    solve: str,
    machine: Machine | None,
    catalog: Catalog,
    told: Callable[[Found], object],
    stopped: Callable[[], bool],
) -> Found:
    """Return the value of a field that keeps the limits as the first row, and what the next value breaks.

    Args:
        question: the plan, the limits, and what else may change.
        solve: the field.
        machine: what was detected.
        catalog: the catalogues.
        told: called with how many values were tried.
        stopped: whether to go on.

    Raises:
        CapacityError: the question makes no sense.
    """
    began = time.monotonic()
    counted, due = 0, began

    def count(_: Candidate) -> None:
        nonlocal counted, due
        counted, now = counted + 1, time.monotonic()
        if now >= due:
            due = now + _TOLD_SECONDS
            told(Found((), (), counted, 0, now - began, is_complete=False, share=0.0))

    return _found(need(question, solve, machine, catalog, count, stopped), question, solved_path(solve))


def _found(needed: Needed, question: Question, path: str) -> Found:
    shown = [tried for tried in (needed.best or needed.nearest, needed.neighbour) if tried is not None]
    plans = [plan for tried in shown for plan in _plans(tried)]
    answer = SearchAnswer(
        evaluated=needed.tried,
        fitting=int(needed.best is not None),
        seconds=needed.seconds,
        top=tuple(plans),
        complete=needed.complete,
        share_done=1.0,
    )
    found = found_of(
        answer, question, tuple(dict.fromkeys((path, *(name for tried in shown for name in tried.change))))
    )
    texts = tuple(part.text for part in needed_parts(needed) if isinstance(part, TextPart))
    rows = tuple(
        replace(row, about=texts if not place else texts[1:], verdict=_verdict(row, tried))
        for place, (row, tried) in enumerate(zip(found.rows, shown, strict=False))
    )
    return replace(found, rows=rows, remarks=texts, is_complete=needed.complete)


def _verdict(row: FoundRow, tried: Candidate) -> Verdict:
    """Return the verdict on what was tried, held to the limits of the question too."""
    return row.verdict if tried.holds or row.verdict.holds is False else Verdict.MISSES_LIMIT


def _plans(tried: Candidate) -> Iterator[SearchResult]:
    """Yield what was tried as a search finds it; nothing where it cannot be estimated."""
    if tried.filled is not None:
        estimate = tried.filled.estimate
        yield SearchResult(tried.change, estimate.verdict, figures_of(estimate))
