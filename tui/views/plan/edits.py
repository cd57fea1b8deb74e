"""Edits of the plan's fields and pinned columns, and finding a field or a figure by a part of its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.schema import stepped
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.results import AUTO, DEVICES_KEY, HARDWARE_KEY, MODEL_KEY, PINS_KEY, Choice, Field, Kind
from capacity_tui.tui.store import OPENED, TAKEN
from capacity_tui.tui.view import Document
from capacity_tui.tui.views.dialogs.picker import COUNTED, PATH, Picker, TrialPicker
from capacity_tui.tui.views.plan.field_list import FieldList, value_commands
from capacity_tui.tui.widgets.panel import Findable, Panel
from capacity_tui.tui.widgets.prompt import Ask, AskFollowed

DETECTED = "detected"
_LONGEST_CYCLE = 12  # With more choices than this a list is shown instead of stepping through them


class PlanEdits:
    """Changes the fields of the plan.

    Args:
        fields: the panel whose cursor says which field is meant.
        ask: asks for a text at the bottom.
    """

    def __init__(self, session: Session, fields: FieldList, ask: Ask) -> None:
        self._session = session
        self._store = session.store
        self._fields = fields
        self._ask = ask
        self.commands: Commands = {
            **value_commands(self.step, self.type_value, self.automatic),
            "edit.undo": self.undo,
            "edit.redo": self.redo,
            "hardware.simulate": self.simulate,
            "hardware.enter": self.simulate,
            "hardware.back": self.simulate_back,
        }

    def step(self, direction: int, big: bool = False) -> None:
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
        field = self._field()
        if field is None:
            return
        if field.key == HARDWARE_KEY:
            self.simulate_back()
        else:
            self._change(field.key, AUTO)

    def undo(self) -> None:
        self._travelled(self._store.undo(), "nothing to undo")

    def redo(self) -> None:
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
            attempt = partial(document.trial, field.key)
            order = "fit" if field.key == HARDWARE_KEY else ""
            shown = (field.label, self._choices(field), attempt, field.text, typed, order)
            picker: Picker = TrialPicker(self._session, *shown)
        else:
            picker = Picker(self._session, field.label, self._choices(field), field.text, typed)
        self._session.app.push_screen(picker, picked)

    def _choices(self, field: Field) -> Callable[[], tuple[Choice, ...]]:
        if field.catalogue:
            return lambda: self._session.engine.catalogue(field.catalogue)
        names = (*((AUTO,) if field.can_be_auto else ()), *field.choices)
        return lambda: tuple(Choice(name, name, field.words.get(name, "")) for name in names)

    def _say_count(self, choice: str) -> None:
        """Say how many devices there are now, where that was not part of the choice."""
        field = self._field_of(DEVICES_KEY)
        if field is not None and field.value is not None and field.value > 1 and not COUNTED.matches(choice):
            self._session.say(f"{field.value:.0f} devices, unchanged; 1x{choice} would be one")


_NOWHERE = 3
"""Ranks what only its text was found in; by name where the name begins so, has it, or is another word for it."""


class Position(NamedTuple):
    """An item of a panel."""

    panel: int
    item: int


class Finding:
    """Walks through what a text is found in."""

    def __init__(
        self,
        session: Session,
        ask: AskFollowed,
        panels: Sequence[Panel],
        current: Callable[[], Panel],
        show: Callable[[Panel], object],
    ) -> None:
        self._session = session
        self._ask = ask
        self._panels = panels
        self._current = current
        self._show = show
        self._text = ""
        self._start = Position(0, 0)
        self.commands: Commands = {
            "find.start": self.start,
            "find.next": partial(self.next, 1),
            "find.previous": partial(self.next, -1),
        }

    def start(self) -> None:
        """Ask for a part of a name, and go to the best match of what is typed so far."""
        self._start = self._here()
        self._ask("Find", "", self._accept, self._follow)

    def next(self, direction: int) -> None:
        if not self._text:
            self.start()
            return
        places = sorted(self._matches(self._text))
        here = self._here()
        if not places:
            self._session.say(f"no match for {self._text}")
            return
        further = [position for position in places if (position > here if direction > 0 else position < here)]
        # Beyond the last one comes the first.
        position = (further or places)[0 if direction > 0 else -1]
        self._go(position)
        self._panels[position.panel].focus()

    def _follow(self, text: str | None) -> str:
        """Go to what matches best, back to the start where nothing does; return what was found in words."""
        matches = self._matches(text.strip().lower()) if text and text.strip() else {}
        if not matches:
            self._go(self._start)
            return "no match" if text and text.strip() else "label, key, or another word for it"
        # What matches as well is taken in order, from where one stands.
        best = min(matches, key=lambda position: (matches[position], position < self._start, position))
        self._go(best)
        panel = self._panels[best.panel]
        label = panel.findable()[best.item].label or panel.TITLE
        return f"{label} in {panel.TITLE}, one of {len(matches)}"

    def _accept(self, text: str) -> str:
        if not text:
            self.next(1) if self._text else None
            return ""
        self._text = text.lower()
        if not self._matches(self._text):
            self._session.say(f"no match for {text}")
        return ""

    def _matches(self, text: str) -> dict[Position, int]:
        """Return where a text is found, and how well; what things mean counts where nothing is called so."""
        ranks = {
            Position(number, item): _rank(candidate, text)
            for number, panel in enumerate(self._panels)
            for item, candidate in enumerate(panel.findable())
        }
        named = {position: rank for position, rank in ranks.items() if rank < _NOWHERE}
        return named or {position: rank for position, rank in ranks.items() if rank == _NOWHERE}

    def _here(self) -> Position:
        panel = self._current()
        return Position(self._panels.index(panel) if panel in self._panels else 0, panel.cursor)

    def _go(self, position: Position) -> None:
        panel = self._panels[position.panel]
        if panel is not self._current():
            self._show(panel)
        panel.reveal(position.item)


def _rank(candidate: Findable, text: str) -> int:
    """Return how well something is found by a text, 0 the best; more than ``_NOWHERE`` where it is not."""
    label = candidate.label.lower()
    if label.startswith(text):
        return 0
    if text in label:
        return 1
    if any(text in other.lower() for other in candidate.others):
        return 2
    return _NOWHERE if text in candidate.text.lower() else _NOWHERE + 1


class PlanPins:
    """Changes what stands beside the plan; each change is an edit that can be undone."""

    def __init__(self, session: Session, ask: Ask, explain: Callable[[], object]) -> None:
        self._session = session
        self._store = session.store
        self._ask = ask
        self._explain = explain
        self.commands: Commands = {"pin.toggle": self.toggle, "pin.rename": self.rename, "plans.enter": self.enter}

    def toggle(self) -> None:
        """Pin the plan of the chosen column, or take a pinned one away."""
        numbers = self._session.numbers()
        if numbers is None:
            return
        document, column = numbers
        if column.is_pinned:
            message = f"{column.mode} is unpinned; {{edit.undo}} undoes that"
            self._change(lambda: document.unpinned(column.mode), message)
            return
        before = set(document.pins())
        if self._change(lambda: document.pinned(column.mode)) and self._store.document is not None:
            name = next(name for name in self._store.document.pins() if name not in before)
            keys = "{pin.rename} renames it, {pin.toggle} on it unpins it"
            self._session.say(f"{column.head} is pinned as {name}: {keys}")

    def enter(self) -> None:
        """Take a pinned plan over as the plan; go to the explanation of any other."""
        column = self._store.column
        if column is None or not column.is_pinned:
            self._explain()
            return
        numbers = self._session.numbers()
        if numbers is None:
            return
        document, column = numbers
        self._store.choose("")
        self._session.change_to(document.taken(column.mode), TAKEN)
        self._session.say(f"{column.mode} is now the plan: {{edit.undo}} undoes that")

    def rename(self) -> None:
        """Ask for another name of the chosen column; of the newest pin where another kind of column is chosen."""
        numbers = self._session.numbers()
        if numbers is None:
            return
        document, column = numbers
        if not (column.is_pinned or document.pins()):
            self._session.say("only pinned columns can be renamed: {pin.toggle} pins, {column.next} chooses", "warn")
            return
        old = column.mode if column.is_pinned else list(document.pins())[-1]

        def accept(text: str) -> str:
            new = text.strip()
            comparison = self._store.comparison
            if new != old and comparison is not None and comparison.column(new) is not None:
                return "another column has that name"
            try:
                after = document.renamed(old, new)
            except CapacityError as error:
                return f"{error.title} ({error.hint})" if error.hint else error.title
            self._store.choose(new)
            self._session.change_to(after, PINS_KEY)
            return ""

        self._ask("Name of the column", old, accept)

    def _change(self, changed: Callable[[], Document], message: str = "") -> bool:
        try:
            after = changed()
        except CapacityError as error:
            self._session.say(error.in_place(), "bad")
            return False
        self._session.change_to(after, PINS_KEY)
        if message:
            self._session.say(message)
        return True
