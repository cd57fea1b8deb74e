"""The table of runs: those that go on first, then the newest first."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.shown.columns import TableColumn
from capacity_tui.tui.shown.watched import RunRow, Standing
from capacity_tui.tui.terminal.text import Line, Span, line
from capacity_tui.tui.widgets.headed_panel import HeadedPanel
from capacity_tui.tui.widgets.table import fitted, joined, narrowed, widest

_MARKS = {
    Standing.GOES_ON: Span("●", "good"),
    Standing.UNWATCHED: Span("?", "warn"),
    Standing.FAILED: Span("✗", "bad"),
    Standing.ENDED: Span("✓", "label"),
    Standing.PAST: Span(" ", "dim"),
}
_FRONT = 4
"""Cells in front of the first column: cursor, standing."""
_LEAST_WIDTH = 6
_WIDEST = 28
_NOTHING = (
    "No run yet. One that is watched appears here while it goes on, and stays when it is over:",
    "  capacity-tui monitor --plan PLAN -- torchrun train.py    runs a command beside its plan",
    "  capacity-tui monitor --pid N, or --log FILE              watches what runs already",
    "  capacity-tui profile -- CMD                              measures what a command uses",
)


class RunsTable(HeadedPanel):
    """One run a line; the cursor stays on its run while others come and go.

    Attributes:
        rows: the runs.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("runs")
    NUMBER = 1
    TITLE = "Runs"
    KEYS: ClassVar[str] = "enter takes its plan · P pins · k calibrates"

    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[RunRow, ...] = ()
        self._columns: tuple[TableColumn, ...] = ()
        self._is_read = False
        self._chosen = ""

    @property
    def row(self) -> RunRow | None:
        """The run under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def show_rows(self, columns: tuple[TableColumn, ...], rows: tuple[RunRow, ...]) -> None:
        """Show other rows; the cursor stays on the run that one has gone to, else on the first."""
        ids = [row.id for row in rows]
        self._columns, self.rows, self._is_read = columns, rows, True
        self.cursor = ids.index(self._chosen) if self._chosen in ids else 0
        self.repaint()

    def move_to(self, index: int) -> None:
        """Put the cursor on a run."""
        if self.rows:
            self._chosen = self.rows[max(0, min(index, len(self.rows) - 1))].id
        super().move_to(index)

    def item_count(self) -> int:
        """Return the number of runs."""
        return len(self.rows)

    def edge(self) -> str:
        """Return how many go on."""
        going = sum(row.standing in (Standing.GOES_ON, Standing.UNWATCHED) for row in self.rows)
        return f"{going} going, {len(self.rows) - going} past" if self.rows else ""

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the runs out under their heads, in the columns that there is room for."""
        if not self.rows:
            said = _NOTHING if self._is_read else ("looking for runs…",)
            return [line(Span(f" {text}", "dim" if number else "label")) for number, text in enumerate(said)], None
        cells = [row.cells for row in self.rows]
        columns = self._columns
        widths = [
            min(widest([each[place] for each in cells] + [column.title]), _WIDEST)
            for place, column in enumerate(columns)
        ]
        places = fitted(widths, [column.rank for column in columns], width - _FRONT)
        shown = narrowed([widths[place] for place in places], width - _FRONT, _LEAST_WIDTH)
        right = [columns[place].is_number for place in places]
        heads = joined([columns[place].title for place in places], shown, right)
        lines = [line(" " * _FRONT, Span("".join(heads), "heading"))]
        for index, row in enumerate(self.rows):
            texts = joined([row.cells[place] for place in places], shown, right)
            at_cursor = index == self.cursor
            role = "label" if row.standing is Standing.PAST else "value"
            mark = _MARKS[row.standing]
            cursor = Span("▌" if at_cursor else " ", "accent")
            lines.append(
                line(cursor, Span(f"{mark.text}  ", mark.role), Span("".join(texts), role), selected=at_cursor)
            )
        return lines, range(self.cursor if self.cursor else 0, self.cursor + 2)
