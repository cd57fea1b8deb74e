"""Changing the plan: stepping, typing and picking values, undoing, choosing hardware."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from capacity_tui.engine.schema import stepped
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.screens.dialogs.picker import COUNTED, PATH, Picker
from capacity_tui.tui.screens.dialogs.tried_picker import TriedPicker
from capacity_tui.tui.screens.field_edits import FieldEdits
from capacity_tui.tui.screens.plan.field_list import FieldList
from capacity_tui.tui.session import Session
from capacity_tui.tui.store import OPENED
from capacity_tui.tui.view import AUTO, DEVICES_KEY, HARDWARE_KEY, MODEL_KEY, Choice, Field, Kind
from capacity_tui.tui.widgets.prompt import Ask

DETECTED = "detected"
_LONGEST_CYCLE = 6
"""With more choices than this a list is shown instead of stepping through them."""


class PlanEdits(FieldEdits):
    """Changes the fields of the plan.

    Args:
        session: what every screen works with.
        fields: the panel whose cursor says which field is meant.
        ask: asks for a text at the bottom.
    """

    def __init__(self, session: Session, fields: FieldList, ask: Ask) -> None:
        self._session = session
        self._store = session.store
        self._fields = fields
        self._ask = ask
        self.commands: Commands = {
            **self.value_commands,
            "edit.undo": self.undo,
            "edit.redo": self.redo,
            "hardware.simulate": self.simulate,
            "hardware.enter": self.simulate,
            "hardware.back": self.simulate_back,
        }

    def step(self, direction: int, big: bool = False) -> None:
        """Step the field under the cursor."""
        field, document = self._field(), self._store.document
        if field is None or document is None:
            return
        if field.catalogue or len(field.choices) > _LONGEST_CYCLE:
            self._pick(field)
            return
        text = stepped(field, direction, big, self._fields.chosen, document.sizes(field.key))
        if text is not None:
            self._fields.show_error(field.key, self._session.change(field.key, text))

    def type_value(self) -> None:
        """Type the value of the field under the cursor, or pick it from a list."""
        field = self._field()
        if field is None:
            return
        if field.catalogue or field.kind is Kind.CHOICE:
            self._pick(field)
            return
        unit = f" in {field.unit}" if field.unit else ""
        value = field.text if field.value is None else f"{field.value:.15g}"
        value = "" if field.is_auto else value

        def accept(text: str) -> str:
            return self._session.change(field.key, text) if text else ""

        self._ask(f"{field.label}{unit}", value, accept)

    def automatic(self) -> None:
        """Let the modes choose the field under the cursor."""
        field = self._field()
        if field is None:
            return
        if field.key == HARDWARE_KEY:
            self.simulate_back()
        else:
            self._change(field.key, AUTO)

    def undo(self) -> None:
        """Take back the last edit."""
        self._travelled(self._store.undo(), "nothing to undo")

    def redo(self) -> None:
        """Do again what was taken back."""
        self._travelled(self._store.redo(), "nothing to redo")

    def simulate(self) -> None:
        """Plan for other hardware than this machine's."""
        field = self._field_of(HARDWARE_KEY)
        if field is not None:
            self._pick(field)

    def simulate_back(self) -> None:
        """Plan for this machine again; from there, for other hardware."""
        comparison = self._store.comparison
        if comparison is not None and not comparison.simulated:
            self.simulate()
        else:
            self._change(HARDWARE_KEY, DETECTED)

    def _change(self, key: str, text: str) -> None:
        """Change a field, and say why where that is refused."""
        if refusal := self._session.change(key, text):
            self._session.say(refusal, "bad")

    def _field(self) -> Field | None:
        """Return the field under the cursor as the plan has it, which may be ahead of what is shown."""
        shown = self._fields.field
        return None if shown is None else self._field_of(shown.key)

    def _field_of(self, key: str) -> Field | None:
        fields = () if self._store.document is None else self._store.document.fields()
        return next((field for field in fields if field.key == key), None)

    def _travelled(self, key: str | None, otherwise: str) -> None:
        if key is None:
            self._session.say(otherwise)
            return
        if key == OPENED and self._store.document is not None:
            self._session.say(f"back to {self._store.document.name}")
        self._fields.select(key)
        self._session.plan_changed()

    def _pick(self, field: Field) -> None:
        def picked(choice: str | None) -> None:
            if choice is None:
                return
            refusal = self._session.change(field.key, choice)
            self._fields.show_error(field.key, refusal)
            if field.key == HARDWARE_KEY and not refusal:
                self._say_count(choice)

        typed = {"model": PATH, "accelerator": COUNTED}.get(field.catalogue)
        document = self._store.document
        if field.key in (MODEL_KEY, HARDWARE_KEY) and document is not None:
            attempt = partial(document.tried, field.key)
            order = "fit" if field.key == HARDWARE_KEY else ""
            shown = (field.label, self._choices(field), attempt, field.text, typed, order)
            picker: Picker = TriedPicker(self._session, *shown)
        else:
            picker = Picker(self._session, field.label, self._choices(field), field.text, typed)
        self._session.app.push_screen(picker, picked)

    def _choices(self, field: Field) -> Callable[[], tuple[Choice, ...]]:
        """Return what reads the choices of a field; runs in a thread."""
        if field.catalogue:
            return lambda: self._session.engine.catalogue(field.catalogue)
        names = (*((AUTO,) if field.can_be_auto else ()), *field.choices)
        return lambda: tuple(Choice(name, name, field.words.get(name, "")) for name in names)

    def _say_count(self, choice: str) -> None:
        """Say how many devices there are now, where that was not part of the choice."""
        field = self._field_of(DEVICES_KEY)
        if field is not None and field.value is not None and field.value > 1 and not COUNTED.matches(choice):
            self._session.say(f"{field.value:.0f} devices, as before; 1x{choice} would be one")
