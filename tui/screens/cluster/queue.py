"""Panel 3 of the view of a cluster: the jobs of its queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.terminal.text import Line, Span, line, wrap
from capacity_tui.tui.widgets.headed_panel import HeadedPanel
from capacity_tui.tui.widgets.table import fitted, joined, widest

if TYPE_CHECKING:
    from capacity_tui.tui.shown.clustered import QueueRow

_HEADS = ("job", "name", "partition", "state", "nodes", "time", "reason")
_RANKS = (0, 2, 4, 0, 1, 3, 5)
_RIGHT = (True, False, False, False, True, True, False)


class Queue(HeadedPanel):
    """Jobs in the order of the queue, or why there are none."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("queue")
    NUMBER = 3
    TITLE = "Queue"

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[QueueRow, ...] = ()
        self._message = ""

    def show_queue(self, rows: tuple[QueueRow, ...], message: str) -> None:
        """Show other jobs, or a message in place of them."""
        self._rows, self._message = rows, message
        self.cursor = min(self.cursor, max(len(rows) - 1, 0))
        self.repaint()

    def item_count(self) -> int:
        """Return the number of jobs."""
        return len(self._rows)

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the jobs out in the columns that there is room for."""
        if not self._rows:
            return [line(Span(f" {text}", "label")) for text in wrap(self._message, width - 2)], None
        cells = [row.cells for row in self._rows]
        sizes = [max(widest([each[place] for each in cells]), len(head)) for place, head in enumerate(_HEADS)]
        places = fitted(sizes, list(_RANKS), width - 1)
        widths, right = [sizes[place] for place in places], [_RIGHT[place] for place in places]
        lines = [line(Span(" " + "".join(joined([_HEADS[place] for place in places], widths, right)), "heading"))]
        for index, row in enumerate(self._rows):
            at_cursor = index == self.cursor and self.is_current
            text = "".join(joined([row.cells[place] for place in places], widths, right))
            spans = Span("▌" if at_cursor else " ", "accent"), Span(text, "value" if row.is_running else "label")
            lines.append(line(*spans, selected=at_cursor))
        return lines, range(self.cursor if self.cursor else 0, self.cursor + 2)
