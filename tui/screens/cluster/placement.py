"""Panel 2 of the view of a cluster: which level divides what of the plan, and how busy each link is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.terminal.text import Line, Span, line, wrap
from capacity_tui.tui.widgets.panel import Panel
from capacity_tui.tui.widgets.table import fitted, joined, widest

if TYPE_CHECKING:
    from capacity_tui.tui.shown.clustered import PlacedRow

_HEADS = ("level", "divides", "busy", "of", "link")
_RANKS = (0, 0, 0, 2, 1)
_IS_NUMBER = (False, False, True, False, False)


class PlacementLevels(Panel):
    """Levels from the outermost in, and sentences below; those of another plan stay, dimmed, until others come."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("placement")
    NUMBER = 2
    TITLE = "Placement"

    def __init__(self) -> None:
        super().__init__()
        self.message = "waiting for the numbers of the plan…"
        self._levels: tuple[PlacedRow, ...] = ()
        self._remarks: tuple[str, ...] = ()
        self._is_old = False

    def show_placement(self, levels: tuple[PlacedRow, ...], remarks: tuple[str, ...]) -> None:
        """Show where a plan lies."""
        self._levels, self._remarks, self._is_old = levels, remarks, False
        self.message = "this runs on one device, or is not divided"
        self.repaint()

    def show_old(self) -> None:
        """Dim all lines: the plan is another one."""
        self._is_old = True
        self.repaint()

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the levels out in the columns that there is room for, sentences below."""
        if not self._levels and not self._remarks:
            return [line(Span(f" {self.message}", "dim"))], None
        lines = list(self._table(width)) if self._levels else []
        for remark in self._remarks:
            lines += [line(Span(f" {text}", self._tone("label"))) for text in wrap(remark, width - 2, "  ")]
        return lines, None

    def _table(self, width: int) -> list[Line]:
        rows = [(each.name, each.divides, each.busy, each.holds, each.link) for each in self._levels]
        sizes = [max(widest([row[place] for row in rows]), len(head)) for place, head in enumerate(_HEADS)]
        places = fitted(sizes, list(_RANKS), width - 2)
        widths, right = [sizes[place] for place in places], [_IS_NUMBER[place] for place in places]
        heads = "".join(joined([_HEADS[place] for place in places], widths, right))
        lines = [line(Span(f"  {heads}", "heading"))]
        for level, row in zip(self._levels, rows, strict=True):
            cells = "".join(joined([row[place] for place in places], widths, right))
            mark = Span("▸ " if level.is_hottest else "  ", self._tone("warn"))
            lines.append(line(mark, Span(cells, self._tone("best" if level.is_hottest else "value"))))
        return lines

    def _tone(self, role: str) -> str:
        return "dim" if self._is_old else role
