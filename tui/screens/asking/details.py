"""Below the rows: what there is to say of the one under the cursor, or of a part of the question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity_tui.tui.terminal.text import Line, Span, line, wrap
from capacity_tui.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from capacity_tui.tui.shown.found import Found, FoundRow
    from capacity_tui.tui.view import Field


class Details(Lines):
    """A few lines, as many as there is room for."""

    def __init__(self) -> None:
        super().__init__(id="details")
        self._texts: tuple[tuple[str, str], ...] = ()

    def show_row(self, row: FoundRow | None, found: Found | None) -> None:
        """Say all that a row sets, its ranges, and what surpasses it."""
        texts = [] if row is None else [(text, "value" if not place else "dim") for place, text in enumerate(row.about)]
        if row is not None and found is not None and row.surpassed is not None:
            texts.insert(0, (_surpassed(row.surpassed, found), "warn"))
        if row is None and found is not None:
            texts = [(remark, "dim") for remark in found.remarks]
        self._show(texts)

    def show_field(self, field: Field | None) -> None:
        """Say what a part of the question means."""
        self._show([] if field is None else [(f"{field.label}: {field.help}", "value")])

    def on_resize(self) -> None:
        """Lay the lines out for the new width."""
        self._repaint()

    def _show(self, texts: list[tuple[str, str]]) -> None:
        self._texts = tuple(texts)
        self._repaint()

    def _repaint(self) -> None:
        if self.is_mounted and self.size:
            self.show([part for text, role in self._texts for part in self._lines_of(text, role)])

    def _lines_of(self, text: str, role: str) -> list[Line]:
        return [line(Span(f" {piece}", role)) for piece in wrap(text, max(self.size.width - 1, 1))]


def _surpassed(index: int, found: Found) -> str:
    """Return which row is no worse in all that was weighed."""
    other = found.rows[index]
    words = [cell.text for cell, column in zip(other.cells, found.columns, strict=True) if not column.is_number]
    figures = [f"{found.columns[place].title} {other.cells[place].text}" for place in found.weighed or ()]
    return f"surpassed by {' '.join(word for word in words if word)}: {', '.join(figures)}"
