"""Panel 1: the machine that is planned for, and how each fact is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.terminal.text import Line, Span, clip, left, line, wrap
from capacity_tui.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from capacity_tui.tui.shown.compared import HardwareRow

_LABELS = ("GPU", "CPU", "RAM", "Disk")
"""What stands here while the machine is looked at."""
_UNSURE = {"assumed", "simulated"}


class Hardware(Panel):
    """Facts with their origin at the right."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("hardware")
    NUMBER = 1
    TITLE = "Hardware"
    KEYS = "enter simulate · backspace back"

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[HardwareRow, ...] | None = None

    def show_rows(self, rows: tuple[HardwareRow, ...]) -> None:
        """Show what is known about the machine."""
        self._rows = rows
        self.repaint()

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay out label, fact and origin."""
        labels = _LABELS if self._rows is None else [row.label for row in self._rows]
        label_width = min(max(map(cell_len, labels), default=0), width // 3)
        if self._rows is None:
            detecting = clip("detecting…", width - label_width - 1)
            return [
                line(Span(left(label, label_width), "label"), " ", Span(detecting, "dim")) for label in labels
            ], None
        return [told for row in self._rows for told in self._lines_of(row, label_width, width)], None

    def summary(self) -> Line:
        """Return the first fact."""
        if self._rows is None:
            return line(Span(f"{_LABELS[0]} ", "label"), Span("detecting…", "value"))
        label, text = next(((row.label, row.text) for row in self._rows), ("", ""))
        return line(Span(f"{label} ", "label"), Span(text, "value"))

    def _lines_of(self, row: HardwareRow, label_width: int, width: int) -> list[Line]:
        """Return a fact in as many lines as it takes, its origin at the right of the last."""
        room = width - label_width - 1
        role, known = ("value", row.text) if row.text else ("dim", f"n/a ({row.reason})" if row.reason else "n/a")
        texts = [clip(text, room) for text in wrap(known, room)]
        origin = row.origin if cell_len(row.origin) < room - cell_len(texts[-1]) else ""
        gap = " " * max(room - cell_len(texts[-1]) - cell_len(origin), 0)
        labels = (row.label, *[""] * (len(texts) - 1))
        lines = [
            line(Span(left(label, label_width), "label"), " ", Span(text, role))
            for label, text in zip(labels, texts, strict=True)
        ]
        end = (Span(gap), Span(origin, "warn" if row.origin in _UNSURE else "dim"))
        return [*lines[:-1], Line((*lines[-1].spans, *end))]
