"""Panel 1 of the view that searches: the question, its parts side by side in as few lines as they take."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.terminal.text import Line, Span, clip, line
from capacity_tui.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from capacity_tui.tui.view import Field

_GAP = 2
_MOST_TEXT = 40
_ROOM_FOR_ALL = 96
_NOTHING = "–"


class QuestionForm(Panel):
    """Goal, limits and what is free; the part under the cursor can be said otherwise."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("question")
    NUMBER = 1
    TITLE = "Question"
    KEYS = "enter says it otherwise · + - step · tab rows"

    def __init__(self) -> None:
        super().__init__()
        self._fields: tuple[Field, ...] = ()
        self._said: frozenset[str] = frozenset()
        self._places: dict[int, tuple[int, int]] = {}
        self.commands = {
            **self.commands,
            "cursor.up": partial(self._move_line, -1),
            "cursor.down": partial(self._move_line, 1),
        }

    @property
    def field(self) -> Field | None:
        """The part under the cursor."""
        return self._fields[self.cursor] if self.cursor < len(self._fields) else None

    def show_fields(self, fields: tuple[Field, ...], said: frozenset[str]) -> None:
        """Show a question.

        Args:
            fields: its parts.
            said: keys of those that the user said.
        """
        key = self.field.key if self.field else ""
        self._fields, self._said = fields, said
        self.cursor = next((index for index, field in enumerate(fields) if field.key == key), 0)
        self.repaint()

    def item_count(self) -> int:
        """Return the number of parts."""
        return len(self._fields)

    def item_at(self, index: int) -> int | None:
        """Return the first part of a line."""
        return next((item for item, (row, _) in self._places.items() if row == index), None)

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the parts out one after the other, and take as many lines as they need."""
        if not self._fields:
            self._take_height(1)
            return [line(Span(" reading the plan…", "dim"))], None
        lines: list[list[Span]] = [[]]
        used, self._places = 0, {}
        # On a small terminal, what says nothing is shown while one is at it.
        is_short = width < _ROOM_FOR_ALL and not self.is_current
        for index, field in enumerate(self._fields):
            if is_short and not field.text:
                continue
            text = clip(field.text or _NOTHING, min(_MOST_TEXT, max(width - cell_len(field.label) - 4, 4)))
            size = cell_len(field.label) + cell_len(text) + 2
            if used and used + size > width:
                lines.append([])
                used = 0
            at_cursor = index == self.cursor and self.is_current
            self._places[index] = len(lines) - 1, used
            role = "best" if field.key in self._said else "value" if field.text else "dim"
            lines[-1] += [
                Span("▌" if at_cursor else " ", "accent"),
                Span(f"{field.label} ", "key" if at_cursor else "label"),
                Span(text, "key" if at_cursor else role),
                Span(" " * _GAP),
            ]
            used += size + _GAP
        self._take_height(len(lines))
        row = self._places.get(self.cursor, (0, 0))[0]
        return [Line(tuple(spans)) for spans in lines], range(row, row + 1)

    def _take_height(self, lines: int) -> None:
        frame = self.outer_size.height - self.size.height
        wanted = lines + max(frame, 0)
        if self.styles.height is None or self.styles.height.value != wanted:
            self.styles.height = wanted

    def _move_line(self, offset: int) -> None:
        """Go to the part above or below."""
        row, column = self._places.get(self.cursor, (0, 0))
        beside = [(abs(x - column), index) for index, (y, x) in self._places.items() if y == row + offset]
        if beside:
            self.move_to(min(beside)[1])
