"""Questions about a plan: what they have in common, the thread that answers, and details of one row."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

from textual.dom import DOMNode

from capacity_tui.engine.catalog import Catalog, parse_shipped
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import column_head, column_text
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_number, format_seconds
from capacity_tui.tui.requests import Fault, Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.results import Cell, Field, Kind, Question, ResultRow, Results
from capacity_tui.tui.text import Line, Span, clip, line, spread, wrap
from capacity_tui.tui.widgets.lines import Bar, DrawnLines

if TYPE_CHECKING:
    from capacity_tui.tui.view import Document
    from capacity_tui.tui.views.query_view.results import ResultTable


Begin: TypeAlias = "Callable[[Document, Mapping[str, str]], Question]"


"""Returns the question about a plan: what the user said, and what makes sense at once for the rest."""


@cache
def _questions() -> Mapping[str, Any]:
    return parse_shipped(Path(__file__).with_name("questions.yaml"))


def question_fields(question: str) -> Mapping[str, Field]:
    """Return the parts of a question by their keys, in order."""
    return {key: Field(key=key, **_typed(row)) for key, row in _questions()[question].items()}


def goals_of(task: str) -> Mapping[str, str]:
    """Return what plans of a task may be chosen by, with the words of a command for it."""
    goals: Mapping[str, str] = _questions()["goals"][task]
    return goals


def _typed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"text": "", **row, "kind": Kind(row.get("kind", Kind.TEXT)), "choices": tuple(row.get("choices", ()))}


class SearchState(NamedTuple):
    """How far a search is."""

    question: Question  # what is asked
    rows: Results | None = None  # the best so far; None before any are known
    is_last: bool = False  # whether the search has ended


class Searching:
    """Keeps the question, and has it answered anew when it or the plan changes.

    A search goes on while another view is shown, unless the plan changes: then its answer would be of no use.
    """

    SUBJECT: ClassVar[str] = "search"

    def __init__(
        self,
        session: Session,
        requester: DOMNode,
        begin: Begin,
        show: Callable[[SearchState], object],
        failed: Callable[[Fault], object],
    ) -> None:
        self._show, self._failed = show, failed
        self._begin = begin
        self._session = session
        self._requester = requester
        self._stop = threading.Event()
        self._given: Mapping[str, str] = {}
        self._answered: list[Document] = []
        self.question: Question | None = None  # what is asked; None before it is known
        self.is_running = False  # whether a search is under way
        self.was_stopped = False  # whether the last one was stopped before its end

    @property
    def is_current(self) -> bool:
        """Whether the rows are those of the plan: it is the one that was asked about, or has taken up one of them."""
        return self._session.store.document in self._answered

    def follow(self) -> bool:
        """Ask about the plan as it is now; return whether that is anything new."""
        if self._session.store.document is None or self.is_current:
            return False
        self._ask(None)
        return True

    def edit(self, key: str, text: str) -> None:
        """Ask otherwise; CapacityError leaves the question as it is."""
        if self.question is None:
            return
        self.question = self.question.edited(key, text)
        self._given = self.question.given
        self._ask(self.question)

    def take_up(self, document: Document) -> None:
        """Keep the rows for what the plan has become with one of them."""
        self._answered.append(document)

    def forget(self) -> None:
        """Take no answer for one about the plan as it is."""
        self._answered = []

    @property
    def can_stop(self) -> bool:
        """Whether a search is under way that was not stopped."""
        return self.is_running and not self._stop.is_set()

    def stop(self) -> None:
        self._stop.set()
        self.was_stopped = True

    def give_up(self) -> None:
        self._stop.set()
        self._session.cancel(self._requester, self.SUBJECT)
        self.is_running = False

    def _take(self, so_far: SearchState) -> None:
        """Take up the question as it was understood, and note the end of the search."""
        self.question, self.is_running = so_far.question, not so_far.is_last
        self._show(so_far)

    def _fail(self, fault: Fault) -> None:
        self.is_running = False
        self._failed(fault)

    def _ask(self, question: Question | None) -> None:
        document = self._session.store.document
        if document is None:
            return
        self._stop.set()
        stop = self._stop = threading.Event()
        self._answered, self.is_running, self.was_stopped = [document], True, False
        given = self._given

        def work(request: Request[SearchState]) -> SearchState:
            query = question or self._begin(document, given)
            request.answer(SearchState(query))

            def is_stopped() -> bool:
                return stop.is_set() or request.cancelled.is_set()

            rows = query.answer(lambda so_far: request.answer(SearchState(query, so_far)), is_stopped)
            return SearchState(query, rows, is_last=True)

        self._session.ask(self._requester, self.SUBJECT, work, self._take, failed=self._fail)


class Progress(Bar):
    """One line: plans tried, plans that fit, time; at the right how rows are sorted and filtered."""

    def __init__(self) -> None:
        super().__init__(id="progress")
        self._left = line()
        self._right = ""

    def show_state(self, table: ResultTable, searching: Searching) -> None:
        running = searching.is_running
        self._left = _counted(table.results, running, searching.was_stopped) if not table.is_old else _SEARCHING
        words = [f"by {table.order}{', reversed' if table.is_reversed else ''}"]
        words += [f"with {table.filter!r}"] if table.filter else []
        words += [f"{len(table.marked)} marked"] if table.marked else []
        self._right = " · ".join(words) if table.results else ""
        self.repaint()

    def build(self, width: int) -> Line:
        """Lay both out, the way rows are sorted where there is room."""
        return spread(self.keyed(self._left), line(Span(f"{clip(self._right, width // 2)} ", "dim")), width)


_SEARCHING = line(Span(" ▸ ", "accent"), Span("searching…", "value"), Span("  {view.back} stops", "dim"))


def _counted(results: Results | None, running: bool, was_stopped: bool) -> Line:
    if results is None:
        return _SEARCHING if running else line()
    evaluated, fitting = format_number(results.evaluated), format_number(results.fitting)
    counts = f"{evaluated} tried, {fitting} fit, {format_seconds(results.seconds)}"
    share = f"{results.share:.0%}".replace("%", " %")
    if running:
        end = "stopping…" if was_stopped else "{view.back} stops"
        known = f", {share}" if results.share else ""
        return line(Span(" ▸ ", "accent"), Span(f"{counts}{known}", "value"), Span(f"  {end}", "dim"))
    if not results.is_complete:
        return line(Span(" ! ", "warn"), Span(counts, "value"), Span(f", stopped at {share}: the best so far", "warn"))
    return line(Span(" ✓ ", "good"), Span(counts, "value"))


class Details(DrawnLines):
    """A few lines, as many as there is room for."""

    def __init__(self) -> None:
        super().__init__(id="details")
        self._texts: tuple[tuple[str, str], ...] = ()

    def show_row(self, row: ResultRow | None, results: Results | None) -> None:
        """Say all that a row sets, its ranges, and what surpasses it."""
        texts = (
            []
            if row is None
            else [(text, "value" if not position else "dim") for position, text in enumerate(row.about)]
        )
        if row is not None and results is not None and row.surpassed is not None:
            texts.insert(0, (_surpassed(row.surpassed, results), "warn"))
        if row is None and results is not None:
            texts = [(remark, "dim") for remark in results.remarks]
        self._show(texts)

    def show_field(self, field: Field | None) -> None:
        self._show([] if field is None else [(f"{field.label}: {field.help}", "value")])

    def draw(self, width: int) -> list[Line]:
        pieces = ((piece, role) for text, role in self._texts for piece in wrap(text, max(width - 1, 1)))
        return [line(Span(f" {piece}", role)) for piece, role in pieces]

    def _show(self, texts: list[tuple[str, str]]) -> None:
        self._texts = tuple(texts)
        self.repaint()


def _surpassed(index: int, results: Results) -> str:
    """Return which row is no worse in all that was weighed."""
    other = results.rows[index]
    words = [cell.text for cell, column in zip(other.cells, results.columns, strict=True) if not column.is_number]
    figures = [f"{results.columns[position].title} {other.cells[position].text}" for position in results.weighed or ()]
    return f"dominated by {' '.join(word for word in words if word)}: {', '.join(figures)}"


@dataclass(frozen=True)
class PlanQuestion(ABC):
    """A question about a plan."""

    plan: Plan
    machine: Machine | None = field(compare=False)  # what was detected
    catalog: Catalog = field(compare=False, repr=False)  # the catalogues
    given: Mapping[str, str] = field(default_factory=dict)  # what the user said, by the keys of its parts

    def edited(self, key: str, text: str) -> Self:
        """Return the question with one part said otherwise; raises CapacityError for a senseless text."""
        given = {**self.given, key: text.strip()}
        after = replace(self, given={name: value for name, value in given.items() if value})
        after.stated()
        return after

    @abstractmethod
    def stated(self) -> object:
        """Return the question of the engine; raises CapacityError where a part of it makes no sense."""


def range_text(key: str, value: Interval) -> str:
    """Return the range of a figure behind its head."""
    return f"{column_head(key)} {column_text(key, float(value.low))} – {column_text(key, float(value.high))}"


def figure_cell(key: str, value: Interval | None) -> Cell:
    """Return the cell of a figure; ``n/a`` where it is not known."""
    if value is None:
        return Cell("n/a")
    return Cell(column_text(key, float(value.value)), float(value.value))
