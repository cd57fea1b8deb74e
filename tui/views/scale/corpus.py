"""The corpus panel: its fields, their edits, and what the patterns would take with other values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.dom import DOMNode

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.schema import stepped
from capacity_tui.tui.actions import Commands, bindings
from capacity_tui.tui.requests import Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.comparison import Tried
from capacity_tui.tui.shown.results import AUTO
from capacity_tui.tui.shown.scale import SAMPLES, Corpus
from capacity_tui.tui.views.plan import sweep
from capacity_tui.tui.views.plan.field_list import FieldEdits, FieldList
from capacity_tui.tui.widgets.prompt import Ask

if TYPE_CHECKING:
    from capacity_tui.tui.shown.results import Field


class CorpusFields(FieldList):
    """The fields of the corpus; what is automatic follows the plan, or what is usual."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("levels")
    NUMBER = 3
    TITLE = "Corpus"
    SCOPE = "config"
    KEYS = "enter edit · backspace auto"


Given = Mapping[str, str]


class CorpusEdits(FieldEdits):
    """Holds what is said of the corpus, and changes the field under the cursor.

    Args:
        session: what every screen works with.
        fields: the panel whose cursor says which field is meant.
        ask: asks for a text at the bottom.
        changed: called when something else is said.
    """

    def __init__(self, session: Session, fields: CorpusFields, ask: Ask, changed: Callable[[], object]) -> None:
        self.corpus: Corpus | None = None  # the corpus; None before anything is known of it
        # samples whose patterns the disk has room for; None where that is not known
        self.most_samples: float | None = None
        self._session, self._fields, self._ask, self._changed = session, fields, ask, changed
        self._undone: list[Given] = []
        self._done: list[Given] = []
        self.commands: Commands = {**self.value_commands, "value.limit": self.fill_disk}

    @property
    def given(self) -> Given:
        """What is said of the corpus."""
        return {} if self.corpus is None else self.corpus.given

    def show(self, corpus: Corpus) -> None:
        """Show a corpus."""
        self.corpus = corpus
        self._fields.show_error("", "")
        self._fields.show_fields(corpus.fields(), corpus.chosen(), dict.fromkeys(corpus.given, AUTO), {})

    def step(self, direction: int, big: bool = False) -> None:
        """Step the field under the cursor."""
        field = self._fields.field
        if field is not None:
            text = stepped(field, direction, big, self._fields.chosen)
            if text is not None:
                self._change(field, text)

    def type_value(self) -> None:
        """Type the value of the field under the cursor."""
        field = self._fields.field
        if field is not None:
            unit = f" in {field.unit}" if field.unit else ""
            self._ask(f"{field.label}{unit}", "" if field.is_auto else field.text, partial(self._change, field))

    def automatic(self) -> None:
        """Say nothing of the field under the cursor any more."""
        if self._fields.field is not None:
            self._change(self._fields.field, "")

    def fill_disk(self) -> None:
        """Take as many samples as the disk has room for."""
        field = self._fields.field
        if field is None or field.key != SAMPLES:
            self._session.say("only the samples have a limit: the free disk space")
        elif self.most_samples is None:
            self._session.say("the free disk space is not known", "warn")
        else:
            self._change(field, f"{self.most_samples:.0f}")

    def undo(self) -> bool:
        """Take the last edit of the corpus back; return whether there was one."""
        return self._travel(self._done, self._undone)

    def redo(self) -> bool:
        """Do again what was taken back; return whether there was anything."""
        return self._travel(self._undone, self._done)

    def _change(self, field: Field, text: str) -> str:
        """Say a field otherwise; return why that was refused, or an empty text."""
        if self.corpus is None:
            return ""
        try:
            after = self.corpus.edited(field.key, text)
        except CapacityError as error:
            refusal = ": ".join(part for part in (error.title, error.hint or error.detail) if part)
            self._fields.show_error(field.key, refusal)
            return refusal
        if after.given != self.given:
            self._done.append(self.given)
            self._undone.clear()
            self.show(after)
            self._changed()
        return ""

    def _travel(self, back: list[Given], forth: list[Given]) -> bool:
        if not back or self.corpus is None:
            return False
        forth.append(self.given)
        after, wanted = self.corpus, back.pop()
        for key in {**after.given, **wanted}:
            after = after.edited(key, wanted.get(key, ""))
        self.show(after)
        self._changed()
        return True


class CorpusSweep:
    """Has the values around that of the field under the cursor tried, once the keys rest.

    Args:
        session: what every screen works with.
        screen: the screen that the answers go to.
        fields: the panel whose cursor says which field is meant.
    """

    SUBJECT = "sweep"

    def __init__(self, session: Session, screen: DOMNode, fields: CorpusFields) -> None:
        self._session, self._screen, self._fields = session, screen, fields
        self._asked: tuple[Corpus, str] | None = None

    def follow(self, corpus: Corpus | None) -> None:
        """Try the values around that of the field under the cursor, unless they are known."""
        field = self._fields.field
        if corpus is None or field is None or self._asked == (corpus, field.key):
            return
        self._asked = corpus, field.key
        values = self._fields.values_around()

        def work(request: Request[dict[str, Tried]]) -> dict[str, Tried] | None:
            if not values or request.cancelled.wait(sweep.SWEEP_AFTER_SECONDS):
                return None
            tried: dict[str, Tried] = {}
            for value in values:
                if request.cancelled.is_set():
                    return None
                tried[value] = corpus.tried(field.key, value)
            return tried

        self._session.ask(self._screen, self.SUBJECT, work, self._fields.show_tried)
