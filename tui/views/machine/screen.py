"""The screen of this machine: what is known about it, and measuring it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget

from capacity_tui.engine.present import Part, TablePart, TextPart
from capacity_tui.tui.actions import bindings
from capacity_tui.tui.requests import Fault, Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.comparison import Row
from capacity_tui.tui.text import Line, Span, fit, fold, left, line, right, to_ascii
from capacity_tui.tui.view import BenchmarkOutcome, BenchmarkStep
from capacity_tui.tui.views.dialogs.help import ScrollsText, TextLines
from capacity_tui.tui.views.view_screen import ViewScreen
from capacity_tui.tui.widgets.head import gauge
from capacity_tui.tui.widgets.lines import DrawnLines

_BUSY = 0.2  # From this share on a processor that others use is reported before measuring


class MachineScreen(ScrollsText, ViewScreen):
    """Shows facts, score, topology, settings and advice; measures on request."""

    TITLE = "Machine"
    VIEW = "machine"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("machine"), *bindings("panel")]

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._parts: tuple[Part, ...] = ()
        self._load: tuple[Row, ...] = ()
        self._before = ""
        self._measuring: Request[BenchmarkStep | BenchmarkOutcome] | None = None
        self.text = ReportLines(self._build)
        self._bar = MeasuringBar()
        self.commands = {
            **self.commands,
            "machine.benchmark": self._measure,
            "machine.copy": self._copy,
            "heading.next": partial(self.text.go_to_heading, 1),
            "heading.previous": partial(self.text.go_to_heading, -1),
            "cursor.up": partial(self.text.scroll_lines, -1),
            "cursor.down": partial(self.text.scroll_lines, 1),
            "cursor.page_up": partial(self.text.scroll_pages, -1),
            "cursor.page_down": partial(self.text.scroll_pages, 1),
            "cursor.first": partial(self.text.scroll_to_end, -1),
            "cursor.last": partial(self.text.scroll_to_end, 1),
        }

    def body(self) -> ComposeResult:
        with Vertical(id="machine-frame") as frame:
            frame.border_title = Content(self.TITLE)
            yield self.text
        yield self._bar

    def on_screen_resume(self) -> None:
        self._report()

    def on_mount(self) -> None:
        self.session.answers.subscribe(self, lambda _: self._tell_effect())

    def on_unmount(self) -> None:
        if self._measuring is not None:
            self._measuring.cancelled.set()

    def drawings(self) -> Iterator[tuple[str, str]]:
        from capacity_tui.engine.present.pictures import Grid, grid_file

        cells = [(row, round((row.share or 0.0) * _BAR)) for row in self._load]
        rows = tuple(
            (f"{row.label}: {row.text}", tuple((_load_role(row) if at < full else "dim", "") for at in range(_BAR)))
            for row, full in cells
        )
        if rows:
            yield "Load", grid_file(Grid("How full and busy this machine is", (), rows))

    # What the threads report

    def _show_report(self, report: tuple[tuple[Part, ...], tuple[Row, ...]]) -> None:
        self._parts, self._load = report
        self.text.repaint()

    def _show_measuring(self, now: BenchmarkStep | BenchmarkOutcome) -> None:
        """Show how far the benchmarks are, unless they were stopped; then what was measured."""
        if isinstance(now, BenchmarkOutcome):
            self._show_outcome(now)
        elif self._measuring is not None and not self._measuring.cancelled.is_set():
            self._bar.show_step(now)

    def _show_outcome(self, outcome: BenchmarkOutcome) -> None:
        self._measuring = None
        ended = "measured" if outcome.is_complete else "stopped"
        plural = "" if outcome.figures == 1 else "s"
        use = f"saved but not used: {outcome.doubt}" if outcome.doubt else "saved; estimates use them"
        kept = f"{outcome.figures} figure{plural} {use}" if outcome.figures else "nothing to save"
        is_good = outcome.is_complete and not outcome.doubt
        self._bar.show_text(f"{ended}: {kept}", "good" if is_good else "warn")
        if outcome.figures:
            self._report()

    def _show_failure(self, fault: Fault) -> None:
        """Show what went wrong; all of it can be read on the plan screen."""
        self._measuring = None
        self.session.last_failure = fault
        self._bar.show_text(fault.in_short, "bad")

    # Commands

    def _report(self) -> None:
        ascii_only = self.app.has_class("-ascii")
        document = self.session.store.document

        def work(_: object) -> tuple[tuple[Part, ...], tuple[Row, ...]]:
            engine = self.session.engine
            return engine.machine_report(document, ascii_only), engine.machine_load()

        self.session.ask(self, "report", work, self._show_report, failed=self._show_failure)

    def _measure(self) -> None:
        """Measure the machine, one run at a time; the plan takes it up even if this screen is gone by then."""
        if self._measuring is not None:
            return
        app = self.app

        def work(request: Request[BenchmarkStep | BenchmarkOutcome]) -> None:
            outcome = self.session.engine.benchmark(request.answer, request.cancelled)
            request.answer(outcome)
            if outcome.figures:
                app.call_later(self.session.renew_plan)

        self._before = self._answer()
        busy = next((load.share or 0.0 for load in self._load if load.label == "CPU"), 0.0)
        share = f"{busy:.0%}".replace("%", " %")
        self._bar.begin(f"the processor is {share} busy with other work" if busy >= _BUSY else "")
        self._measuring = self.session.ask(self, "benchmark", work, self._show_measuring, failed=self._show_failure)

    def back(self) -> None:
        """Stop measuring; go back if nothing is measured, or it is being stopped already."""
        if self._measuring is None or self._measuring.cancelled.is_set():
            super().back()
            return
        self._measuring.cancelled.set()
        self._bar.show_text("stopping…")

    def _copy(self) -> None:
        self.session.copy(self.text.as_text())

    def _answer(self) -> str:
        """Return what the plan comes to on this machine, in a few words."""
        column = self.session.store.column
        return " · ".join(one.text for one in column.headlines if not one.rank) if column else ""

    def _tell_effect(self) -> None:
        """Say what the figures that were measured changed in the answer, once there is a new one."""
        if self._before and self._measuring is None and not self.session.store.is_stale:
            before, self._before = self._before, ""
            after = self._answer()
            if after != before:
                self._bar.show_latest(f"the plan before: {before}   now: {after}")

    def _build(self, width: int) -> list[Line]:
        if not self._parts:
            return [line(Span("detecting this machine…", "dim"))]
        return [*load_lines(self._load, width), *report_lines(self._parts, width)]


class ReportLines(TextLines):
    """A text with headings; the frame around it says which lines are in sight."""

    def show(self, lines: Sequence[Line], reveal: range | None = None, pinned: int = 0) -> None:
        super().show(lines, reveal, pinned)
        count, height = len(self.lines), self.size.height
        text = f"tab next heading · {self.top + 1}–{min(self.top + height, count)} of {count}" if count > height else ""
        if isinstance(self.parent, Widget):
            self.parent.border_subtitle = Content(to_ascii(text) if self.app.has_class("-ascii") else text)

    def go_to_heading(self, direction: int) -> None:
        """Bring the next heading to the top; behind the last one is the first."""
        headings = [index for index, one in enumerate(self.lines) if is_heading(one)]
        ahead = [index for index in headings if (index - self.top) * direction > 0]
        if headings:
            self.scroll_lines((ahead or headings)[0 if direction > 0 else -1] - self.top)


_CELLS = 20
_IDLE = Span("{machine.benchmark} measures memory, CPU, GPUs, disk and network in about ten seconds", "dim")


class MeasuringBar(DrawnLines):
    """Two lines: which benchmark runs, and the last figure with its spread."""

    def __init__(self) -> None:
        super().__init__(id="measuring")
        self._first = line(_IDLE)
        self._latest = ""
        self._warning = ""

    def begin(self, warning: str) -> None:
        """Say that it begins, and while it lasts what may spoil it."""
        self._warning = warning
        self.show_text("measuring…")

    def show_step(self, step: BenchmarkStep) -> None:
        """Show how far the benchmarks are; the last figure stays until the next one."""
        filled = _CELLS * (step.number - 1) // max(step.total, 1)
        self._first = line(
            *("[", Span("━" * filled, "accent"), " " * (_CELLS - filled), "]"),
            *(Span(f" {step.number} of {step.total} ", "label"), Span(step.name, "best")),
            Span("  {view.back} stops", "dim"),
            Span(f"  ! {self._warning}" if self._warning else "", "warn"),
        )
        self._latest = f"last: {step.latest}" if step.latest else self._latest
        self.repaint()

    def show_text(self, text: str, role: str = "value") -> None:
        self._first, self._latest = line(Span(text, role)), ""
        self.repaint()

    def show_latest(self, text: str) -> None:
        """Say something below how it ended."""
        self._latest = text
        self.repaint()

    def draw(self, width: int) -> list[Line]:
        """Return how far the benchmarks are, and what is known by now."""
        lines = [self._first, line(Span(self._latest, "value"))] if self._latest else [self._first]
        return [fit(self.keyed(shown), width) for shown in lines]


_ROLES = {"plain": "value", "item": "value", "strong": "heading", "quiet": "dim"}
_GAP = "  "
_BAR = 30
_HIGH, _FULL = 0.8, 0.95  # Shares from which a bar warns
_NARROWEST = 8  # A column is not made narrower than this where any other can be


def report_lines(parts: Iterable[Part], width: int) -> list[Line]:
    """Return parts laid out for a width: long texts are broken, cells of tables too."""
    lines: list[Line] = []
    for part in parts:
        if isinstance(part, TextPart):
            lines += [line(Span(text, _ROLES.get(part.tone, part.tone))) for text in fold(part.text, width)]
        elif isinstance(part, TablePart):
            lines += _table_lines(part, width)
    return lines


def is_heading(shown: Line) -> bool:
    """Return whether a line begins a section; heads of tables do not."""
    return len(shown.spans) == 1 and shown.spans[0].role == _ROLES["strong"] and _GAP not in shown.plain.strip()


def load_lines(load: Iterable[Row], width: int) -> list[Line]:
    """Return how full and busy the machine is, with a bar each."""
    rows = tuple(load)
    label = max((cell_len(row.label) for row in rows), default=0)
    lines = [line(Span("Now:", "heading"))] if rows else []
    for row in rows:
        bar = Span(gauge(row.share or 0.0, min(_BAR, max(width - label - 20, 4))), _load_role(row))
        parts = (Span(f"  {row.label:<{label}}  ", "label"), bar, Span(f" {row.text}", "value"))
        lines.append(fit(line(*parts), width))
    return lines


def _load_role(row: Row) -> str:
    share = row.share or 0.0
    return "bad" if share >= _FULL else "warn" if share >= _HIGH else "good"


def _table_lines(table: TablePart, width: int) -> Iterator[Line]:
    widths = _widths(table, width)
    yield from _row_lines(table.heads, widths, table.right, "heading")
    yield line(Span("─" * min(sum(widths) + len(_GAP) * (len(widths) - 1), width), "value"))
    for row in table.rows:
        yield from _row_lines(row, widths, table.right, "value")


def _widths(table: TablePart, width: int) -> list[int]:
    """Return how wide the columns are: as wide as their cells, the widest ones less where room is short."""
    widths = [max(map(cell_len, column), default=0) for column in zip(table.heads, *table.rows, strict=True)]
    room = max(width - len(_GAP) * (len(widths) - 1), len(widths))
    while sum(widths) > room:
        # First those whose text reads well in several lines, then any.
        broken = [
            column for column, size in enumerate(widths) if column and column not in table.right and size > _NARROWEST
        ]
        widest = max(broken or range(len(widths)), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _row_lines(cells: Sequence[str], widths: Sequence[int], flush_right: Sequence[int], role: str) -> Iterator[Line]:
    folded = [fold(cell, size) for cell, size in zip(cells, widths, strict=True)]
    for pieces in zip_longest(*folded, fillvalue=""):
        placed = (
            (right if column in flush_right else left)(piece, widths[column]) for column, piece in enumerate(pieces)
        )
        yield line(Span(_GAP.join(placed), role))
