"""Saying parts of the question otherwise: stepping, typing, picking, taking back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.screens.asking.question_form import QuestionForm
from capacity_tui.tui.screens.dialogs.picker import Picker, Typed
from capacity_tui.tui.session import Session
from capacity_tui.tui.view import Choice, Field, Kind
from capacity_tui.tui.widgets.prompt import Ask


class QuestionEdits:
    """Changes the part of the question under the cursor.

    Args:
        session: what every screen works with.
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
        """Type what is wanted, or pick it from a list."""
        field = self._form.field
        if field is None:
            return
        if field.catalogue or field.kind is Kind.CHOICE:
            self._pick(field)
            return
        hint = f" ({field.unit})" if field.unit else ""
        self._ask(f"{field.label}{hint}", field.text, partial(self.change, field.key))

    def clear(self) -> None:
        """Take back what was said."""
        if self._form.field is not None:
            self._tell(self.change(self._form.field.key, ""))

    def change(self, key: str, text: str) -> str:
        """Say a part otherwise; return why that was refused, or an empty text."""
        try:
            self._edit(key, text)
        except CapacityError as error:
            allowed = error.hint or error.detail
            return f"{error.title} ({allowed})" if allowed else error.title
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
