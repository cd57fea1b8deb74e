"""The parts of a question, and editing them: stepping, typing, picking, taking back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.actions import Commands, bindings
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.results import Choice, Field, Kind
from capacity_tui.tui.terminal.text import Line, Span, clip, line
from capacity_tui.tui.views.dialogs.picker import Picker, Typed
from capacity_tui.tui.widgets.panel import Panel
from capacity_tui.tui.widgets.prompt import Ask

_GAP = 2
_MOST_TEXT = 40
_ROOM_FOR_ALL = 96
_NOTHING = "–"


class QuestionForm(Panel):
    """Goal, limits and what is free; the part under the cursor can be said otherwise."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("question")
    NUMBER = 1
    TITLE = "Question"
    KEYS = "enter edit · + - step · tab rows"

    def __init__(self) -> None:
        super().__init__()
        self._fields: tuple[Field, ...] = ()
        self._given: frozenset[str] = frozenset()
        self._places: dict[int, tuple[int, int]] = {}
        self.commands = {
            **self.commands,
            "cursor.up": partial(self._move_line, -1),
            "cursor.down": partial(self._move_line, 1),
        }

    @property
    def field(self) -> Field | None:
        return self._fields[self.cursor] if self.cursor < len(self._fields) else None

    def show_fields(self, fields: tuple[Field, ...], given: frozenset[str]) -> None:
        """Show a question, and which of its fields the user said."""
        key = self.field.key if self.field else ""
        self._fields, self._given = fields, given
        self.cursor = next((index for index, field in enumerate(fields) if field.key == key), 0)
        self.repaint()

    def item_count(self) -> int:
        return len(self._fields)

    def item_at(self, index: int) -> int | None:
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
            role = "best" if field.key in self._given else "value" if field.text else "dim"
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
        candidates = [(abs(x - column), index) for index, (y, x) in self._places.items() if y == row + offset]
        if candidates:
            self.move_to(min(candidates)[1])


class QuestionEdits:
    """Changes the part of the question under the cursor.

    Args:
        form: the panel whose cursor says which part is meant.
        edit: asks otherwise; raises where that makes no sense.
        ask: asks for a text at the bottom.
    """

    def __init__(self, session: Session, form: QuestionForm, edit: Callable[[str, str], None], ask: Ask) -> None:
        self._session = session
        self._form = form
        self._edit = edit
        self._ask = ask
        self.commands: Commands = {
            "question.more": partial(self.step, 1),
            "question.less": partial(self.step, -1),
            "question.type": self.type_value,
            "question.clear": self.clear,
        }

    def step(self, direction: int) -> None:
        """Say the next of the choices, or the one before."""
        field = self._form.field
        if field is None:
            return
        if not field.choices:
            self.type_value()
            return
        here = field.choices.index(field.text) if field.text in field.choices else -1
        after = max(0, min(here + direction, len(field.choices) - 1))
        self._tell(self.change(field.key, field.choices[after]))

    def type_value(self) -> None:
        field = self._form.field
        if field is None:
            return
        if field.catalogue or field.kind is Kind.CHOICE:
            self._pick(field)
            return
        hint = f" ({field.unit})" if field.unit else ""
        self._ask(f"{field.label}{hint}", field.text, partial(self.change, field.key))

    def clear(self) -> None:
        if self._form.field is not None:
            self._tell(self.change(self._form.field.key, ""))

    def change(self, key: str, text: str) -> str:
        """Say a part otherwise; return why that was refused, or an empty text."""
        try:
            self._edit(key, text)
        except CapacityError as error:
            return error.in_place()
        return ""

    def _tell(self, refusal: str) -> None:
        if refusal:
            self._session.say(refusal, "bad")

    def _pick(self, field: Field) -> None:
        def picked(choice: str | None) -> None:
            if choice is not None:
                self._tell(self.change(field.key, choice))

        def choices() -> tuple[Choice, ...]:
            offered = tuple(Choice(name, name, field.words.get(name, "")) for name in field.choices)
            return offered + (self._session.engine.catalogue(field.catalogue) if field.catalogue else ())

        typed = None if field.kind is Kind.CHOICE else Typed(field.unit, bool)
        self._session.app.push_screen(Picker(self._session, field.label, choices, field.text, typed), picked)
