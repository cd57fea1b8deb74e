"""Panel 1 of the view of a cluster: its nodes, a cell for each device, or for more where there are many."""

from __future__ import annotations

from itertools import chain, groupby
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.terminal.text import Line, Span, fit, left, line
from capacity_tui.tui.widgets.headed_panel import HeadedPanel

if TYPE_CHECKING:
    from capacity_tui.tui.shown.clustered import DeviceState, NodeMap, NodesRow

GLYPHS: dict[DeviceState, str] = {"planned": "■", "free": "░", "busy": "▒", "down": "✗"}
_ROLES: dict[DeviceState, str] = {"planned": "accent", "free": "good", "busy": "warn", "down": "bad"}
_LONGEST_NAME = 24


class Nodes(HeadedPanel):
    """Rows of nodes, first all of them; those of another plan stay, dimmed, until others come.

    Attributes:
        taken: key of the row that was taken over last.
        is_old: whether the rows are those of another plan.
        message: what stands here in place of rows.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("nodes")
    NUMBER = 1
    TITLE = "Nodes"
    KEYS: ClassVar[str] = "enter plans for what is free · + - finer, coarser"

    def __init__(self) -> None:
        super().__init__()
        self.taken: tuple[tuple[str, str], ...] = ()
        self.is_old = False
        self.message = "waiting for the numbers of the plan…"
        self._map: NodeMap | None = None
        self._level = ""

    @property
    def rows(self) -> tuple[NodesRow, ...]:
        """The rows that are shown."""
        return () if self._map is None else self._map.rows[self._shown_level]

    @property
    def row(self) -> NodesRow | None:
        """The row under the cursor, unless it is one of another plan."""
        rows = () if self.is_old else self.rows
        return rows[self.cursor] if self.cursor < len(rows) else None

    def chosen(self) -> tuple[NodesRow, ...]:
        """Return the row under the cursor, if a plan can be made of it."""
        return () if self.row is None or not self.row.change else (self.row,)

    def show_nodes(self, nodes: NodeMap) -> None:
        """Show the nodes, as finely as before where that can be."""
        self._map, self.is_old = nodes, False
        self.cursor = min(self.cursor, max(len(self.rows) - 1, 0))
        self.repaint()

    def show_old(self) -> None:
        """Dim all rows: the plan is another one."""
        self.is_old = True
        self.repaint()

    def refine(self, offset: int) -> None:
        """Let rows stand for less, or for more."""
        if self._map is None:
            return
        levels = self._map.levels
        place = levels.index(self._shown_level) - offset
        self._level, self.cursor = levels[max(0, min(place, len(levels) - 1))], 0
        self.repaint()

    def about(self) -> tuple[str, str]:
        """Return the row under the cursor and what is known of it."""
        if self.row is None:
            return "", ""
        told = (self.row.counts, self.row.hardware, *self.row.notes)
        return self.row.name, ". ".join(text for text in told if text)

    def item_count(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def edge(self) -> str:
        """Return what a row stands for."""
        return "" if self._map is None else f"by {'kind' if self._shown_level == 'all' else self._shown_level}"

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Draw the rows below what the cells mean."""
        if self._map is None:
            return [line(Span(f" {self.message}", "dim"))], None
        rows = self.rows
        names = min(max(cell_len(row.name) for row in rows), _LONGEST_NAME)
        counts = max(cell_len(row.counts) for row in rows)
        lines = [fit(self._legend(self._map.source), width)]
        for index, row in enumerate(rows):
            at_cursor = index == self.cursor
            tone = "dim" if self.is_old else "best" if index == 0 else "value"
            told = "  ".join(text for text in (row.hardware, *row.notes) if text)
            spans = (
                Span("▌" if at_cursor else " ", "accent"),
                Span(f"{left(row.name, names)}  {left(row.counts, counts)}  ", tone),
                *self._cells(row.cells),
                Span(f"  {told}" if told else "", "dim" if self.is_old else "warn" if row.notes else "label"),
            )
            lines.append(fit(line(*spans, selected=at_cursor), width))
        return lines, range(self.cursor if self.cursor else 0, self.cursor + 2)

    def _cells(self, cells: tuple[DeviceState, ...]) -> list[Span]:
        drawn = [
            Span(GLYPHS[state] * len(list(alike)), "dim" if self.is_old else _ROLES[state])
            for state, alike in groupby(cells)
        ]
        return [Span("[", "dim"), *drawn, Span("]", "dim")]

    def _legend(self, source: str) -> Line:
        told = [(Span(f" {glyph}", _ROLES[state]), Span(f" {state} ", "label")) for state, glyph in GLYPHS.items()]
        return line(*chain.from_iterable(told), Span(f" {source}", "dim"))

    @property
    def _shown_level(self) -> str:
        """What a row stands for: what was asked for where there is that, else what is read at a glance."""
        if self._map is None:
            return ""
        return self._level if self._level in self._map.levels else self._map.usual
