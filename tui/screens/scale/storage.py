"""Panel 2 of the view of scaling: what the plan keeps on disk, and reads from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity_tui.tui.terminal.text import Line, Span, clip, left, line
from capacity_tui.tui.widgets.gauge import gauge
from capacity_tui.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from capacity_tui.tui.shown.compared import Row

_LABEL, _BAR = 15, 6


class Storage(Panel):
    """Data and checkpoints of the plan, a figure a line; those of another plan stay, dimmed, until others come.

    Attributes:
        message: what stands here in place of figures.
    """

    NUMBER = 2
    TITLE = "Storage"

    def __init__(self) -> None:
        super().__init__()
        self.message = "waiting for the numbers of the plan…"
        self._rows: tuple[Row, ...] | None = None
        self._is_old = False

    def show_rows(self, rows: tuple[Row, ...]) -> None:
        """Show what is known of a plan."""
        self._rows, self._is_old = rows, False
        self.cursor = min(self.cursor, max(len(rows) - 1, 0))
        self.message = "nothing is read or saved while this runs"
        self.repaint()

    def show_old(self) -> None:
        """Dim all figures: the plan is another one."""
        self._is_old = True
        self.repaint()

    def about(self) -> tuple[str, str]:
        """Return the figure under the cursor and what it means."""
        rows = self._rows or ()
        return (rows[self.cursor].label, rows[self.cursor].help) if self.cursor < len(rows) else ("", "")

    def item_count(self) -> int:
        """Return the number of figures."""
        return len(self._rows or ())

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the figures out, each with a bar where it is a share, and what goes with it behind."""
        if not self._rows:
            return [line(Span(f" {self.message}", "dim"))], None
        lines = [self._line(row, index == self.cursor, width) for index, row in enumerate(self._rows)]
        return lines, range(self.cursor, self.cursor + 1)

    def _line(self, row: Row, at_cursor: bool, width: int) -> Line:
        is_marked = at_cursor and self.is_current
        bar = "" if row.share is None else f"{gauge(row.share, _BAR)} "
        room = max(width - _LABEL - 1, 0)
        text = clip(f"{bar}{row.text}", room)
        more = clip(f"  {row.interval}" if row.interval else "", max(room - len(text), 0))
        tone = "dim" if self._is_old else "warn" if row.share is not None and row.share > 1 else "value"
        return line(
            Span("▌" if is_marked else " ", "accent"),
            Span(left(" " * row.indent + row.label, _LABEL), "label"),
            Span(text, tone),
            Span(more, "dim"),
            selected=is_marked,
        )
