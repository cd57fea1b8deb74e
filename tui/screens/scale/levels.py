"""Panel 4 of the view of scaling: what the patterns of each level take, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.terminal.text import Line, Span, line, wrap
from capacity_tui.tui.widgets.gauge import gauge
from capacity_tui.tui.widgets.panel import Panel
from capacity_tui.tui.widgets.table import GAP, fitted, joined, widest

if TYPE_CHECKING:
    from capacity_tui.tui.shown.stored import StoredLevel, StoredPatterns

_BAR = 12
_MARK = 1
"""Cells in front of the first column."""


class Levels(Panel):
    """Levels from the lowest, last all of them; those of another corpus stay, dimmed, until others come.

    Attributes:
        patterns: what is shown.
        message: what stands here in place of levels.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("levels")
    NUMBER = 4
    TITLE = "Levels"
    KEYS: ClassVar[str] = "v pictures · y command"

    def __init__(self) -> None:
        super().__init__()
        self.patterns: StoredPatterns | None = None
        self.message = "waiting for the plan…"
        self._is_old = False
        self._items: list[int | None] = []

    @property
    def level(self) -> StoredLevel | None:
        """The level under the cursor."""
        levels = self.patterns.levels if self.patterns else ()
        return levels[self.cursor] if self.cursor < len(levels) else None

    def show_patterns(self, patterns: StoredPatterns) -> None:
        """Show what the levels take."""
        self.patterns, self._is_old = patterns, False
        self.cursor = min(self.cursor, max(self.item_count() - 1, 0))
        self.repaint()
        self.post_message(self.CursorMoved(self))

    def show_old(self, message: str = "") -> None:
        """Dim all levels: the corpus is another one.

        Args:
            message: what stands here where there is no level to dim.
        """
        self._is_old, self.message = True, message or self.message
        self.repaint()

    def about(self) -> tuple[str, str]:
        """Return the level under the cursor and what it is."""
        return (self.level.name, self.level.about) if self.level else ("", "")

    def item_count(self) -> int:
        """Return the number of levels and remarks."""
        return len(self.patterns.levels) + len(self.patterns.remarks) if self.patterns else 0

    def item_at(self, index: int) -> int | None:
        """Return the level or remark to which a line belongs."""
        return self._items[index] if index < len(self._items) else None

    def pinned(self) -> int:
        """Return that the head stays in sight."""
        return 1 if self.item_count() else 0

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the levels out under their heads, in the columns that there is room for, remarks below."""
        patterns = self.patterns
        if patterns is None:
            return [line(Span(f" {self.message}", "dim"))], None
        columns, levels = patterns.columns, patterns.levels
        bar = _BAR if width >= 4 * _BAR else 0
        cells = [level.cells for level in levels]
        widths = [
            max(widest([each[place] for each in cells]), len(column.title)) for place, column in enumerate(columns)
        ]
        room = width - _MARK - (bar + GAP if bar else 0)
        places = fitted(widths, [column.rank for column in columns], room)
        sizes, right = [widths[place] for place in places], [columns[place].is_number for place in places]
        heads = "".join(joined([columns[place].title for place in places], sizes, right))
        lines, items = [line(" " * _MARK, Span(heads, "heading"))], list[int | None]([None])
        for index, level in enumerate(levels):
            shown = "".join(joined([level.cells[place] for place in places], sizes, right))
            drawn = " " * GAP + gauge(level.share, bar) if bar and not level.is_total else ""
            tone = "dim" if self._is_old else "best" if level.is_total else "value"
            spans = Span(shown, tone), Span(drawn, "dim" if self._is_old else "graph-1")
            lines.append(self._marked(index, *spans))
            items.append(index)
        for index, remark in enumerate(patterns.remarks, start=len(levels)):
            texts = wrap(remark, width - 2, "  ")
            lines += [self._marked(index, Span(text, "dim" if self._is_old else "label")) for text in texts]
            items += [index] * len(texts)
        self._items = items
        here = [place for place, item in enumerate(items) if item == self.cursor]
        return lines, range(here[0] if self.cursor else 0, here[-1] + 1) if here else None

    def _marked(self, index: int, *spans: Span) -> Line:
        """Return a line of an item, marked where the cursor is."""
        is_marked = index == self.cursor and self.is_current
        return line(Span("▌" if is_marked else " ", "accent"), *spans, selected=is_marked)
