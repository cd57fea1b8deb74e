"""Changing the plan: stepping, typing, picking, undoing, choosing columns."""

from __future__ import annotations

from pathlib import Path

from textual.timer import Timer

from capacity_tui.engine.api import CapacityError
from capacity_tui.tui.messages import Failed
from capacity_tui.tui.screens.dialogs.picker import COUNTED, PATH, Picker
from capacity_tui.tui.screens.plan.comparison import ComparisonTable
from capacity_tui.tui.screens.plan.field_list import FieldList
from capacity_tui.tui.screens.plan.why import Why
from capacity_tui.tui.screens.plan.workers import HARDWARE_KEY, EngineRoom, PlanWorkers
from capacity_tui.tui.settings import FASTEST_SECONDS, SLOWEST_SECONDS, Settings
from capacity_tui.tui.stepping import stepped
from capacity_tui.tui.store import OPENED, Store
from capacity_tui.tui.terminal.glyphs import Glyphs
from capacity_tui.tui.view import AUTO, Choice, Field, Kind
from capacity_tui.tui.widgets.bars import Footer, Header
from capacity_tui.tui.widgets.panel import Panel
from capacity_tui.tui.widgets.prompt import Answer, Prompt

DETECTED = "detected"
DEVICES_KEY = "hardware.devices"
_LONGEST_CYCLE = 6
"""With more choices than this a list is shown instead of stepping through them."""


_PATIENCE_SECONDS = 0.1
"""A second frame could only follow the first after two ticks of the screen, some 30 ms."""
_REST_SECONDS = 0.2
"""An edit is kept on disk when no other has followed it for this long."""


class Editing(PlanWorkers):
    """The plan screen's actions on the plan.

    Args:
        room: where the engine is.
        store: the plan that is edited.
        settings: the user's settings.
        glyphs: what graphs are drawn with.
        source: the plan to open first, None to propose one.
        accelerator: hardware to plan for instead of the plan's own.
    """

    current: Panel

    def __init__(
        self,
        room: EngineRoom,
        store: Store,
        *,
        settings: Settings,
        glyphs: Glyphs,
        source: Path | str | None,
        accelerator: str | None,
    ) -> None:
        super().__init__(room, store)
        self.settings = settings
        self.glyphs = glyphs
        self.source = source
        self.accelerator = accelerator
        self.live_seconds = settings.live_seconds
        self.is_paused = False
        self.failure: Failed | None = None
        self.footer = Footer(settings.keys)
        self._sought = ""
        self._late_fields: Timer | None = None
        self._late_keeping: Timer | None = None

    def set_live_seconds(self, seconds: float) -> None:
        """Change the interval of the samples, within what is sensible."""
        self.live_seconds = min(max(seconds, FASTEST_SECONDS), SLOWEST_SECONDS)

    def say(self, text: str, role: str = "value") -> None:
        """Say something at the bottom, until the next key."""
        self.footer.say(text, role)

    def ask(self, question: str, value: str, answer: Answer) -> None:
        """Ask for a text at the bottom."""
        self.query_one(Prompt).ask(question, value, answer)

    # Showing the store

    def plan_changed(self) -> None:
        """Have a changed plan estimated; fields and numbers are shown in one frame unless that takes long."""
        document = self.store.document
        if document is None:
            return
        if self._late_fields is not None:
            self._late_fields.stop()
        self._late_fields = self.set_timer(_PATIENCE_SECONDS, self._show_unestimated)
        self.compare(document, self.store.generation)
        self.keep_unsaved()

    def keep_unsaved(self) -> None:
        """Have what no file holds written where it outlives the program, once the keys rest."""
        if self._late_keeping is not None:
            self._late_keeping.stop()
        self._late_keeping = self.set_timer(_REST_SECONDS, self._keep_unsaved_now)

    def _keep_unsaved_now(self) -> None:
        self.keep_in_swap(self.requests.new("keep").number, self.store.unsaved)

    def _show_unestimated(self) -> None:
        if self.store.is_stale or self.store.comparison is None:
            self.show_fields()
            self.show_columns()

    def show_fields(self) -> None:
        """Show the fields of the plan, with what the chosen mode took for the automatic ones."""
        document, column = self.store.document, self.store.column
        if document is None:
            return
        fields = document.fields()
        before = self.store.changed(fields)
        self.query_one(FieldList).show_fields(fields, column.chosen if column else {}, before)
        comparison = self.store.comparison
        title, simulated = (comparison.title, comparison.simulated) if comparison else (document.name, "")
        self.query_one(Header).show_plan(title, simulated, len(before))

    def show_columns(self) -> None:
        """Show the comparison."""
        store = self.store
        self.query_one(ComparisonTable).show_comparison(store.comparison, store.column, store.baseline, store.is_stale)

    def ask_why(self) -> None:
        """Have the number under the cursor explained."""
        store, key = self.store, self.query_one(ComparisonTable).row_key
        if store.document is None or store.column is None or not key or store.is_stale:
            self.query_one(Why).show_explanation(None)
            return
        self.explain(store.document, store.column.mode, key)

    # Values

    def change(self, key: str, text: str) -> str:
        """Change a field; return why that was refused, or an empty text."""
        try:
            changed = self.store.edit(key, text)
        except CapacityError as error:
            allowed = error.hint or error.detail
            return f"{error.title} ({allowed})" if allowed else error.title
        self.query_one(FieldList).show_error("", "")
        if changed:
            self.plan_changed()
        return ""

    def _field(self) -> Field | None:
        """Return the field under the cursor as the plan has it, which may be ahead of what is shown."""
        document, shown = self.store.document, self.query_one(FieldList).field
        if document is None or shown is None:
            return None
        return next((field for field in document.fields() if field.key == shown.key), None)

    def action_step(self, direction: int, big: bool = False) -> None:
        """Step the field under the cursor."""
        fields, field = self.query_one(FieldList), self._field()
        if field is None:
            return
        if field.catalogue or len(field.choices) > _LONGEST_CYCLE:
            self._pick(field)
            return
        sizes = self.store.document.sizes(field.key) if self.store.document else ()
        text = stepped(field, direction, big, fields.chosen, sizes)
        if text is not None:
            fields.show_error(field.key, self.change(field.key, text))

    def action_type_value(self) -> None:
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
        self.ask(f"{field.label}{unit}", value, lambda text: self.change(field.key, text) if text else "")

    def action_automatic(self) -> None:
        """Let the modes choose the field under the cursor."""
        field = self._field()
        if field is None:
            return
        if field.key == HARDWARE_KEY:
            self.action_simulate_back()
        elif refusal := self.change(field.key, AUTO):
            self.say(refusal, "bad")

    def action_undo(self) -> None:
        """Take back the last edit."""
        self._travelled(self.store.undo(), "nothing to undo")

    def action_redo(self) -> None:
        """Do again what was taken back."""
        self._travelled(self.store.redo(), "nothing to redo")

    def _travelled(self, key: str | None, otherwise: str) -> None:
        if key is None:
            self.say(otherwise)
            return
        fields = self.query_one(FieldList)
        fields.show_error("", "")
        if key == OPENED and self.store.document is not None:
            self.say(f"back to {self.store.document.name}")
        fields.select(key)
        self.plan_changed()

    def _pick(self, field: Field) -> None:
        def read() -> tuple[Choice, ...]:
            if field.catalogue:
                return self.room.engine().catalogue(field.catalogue)
            automatic = (AUTO,) if field.can_be_auto else ()
            return tuple(Choice(choice, choice, field.words.get(choice, "")) for choice in (*automatic, *field.choices))

        def picked(choice: str | None) -> None:
            if choice is None:
                return
            refusal = self.change(field.key, choice)
            self.query_one(FieldList).show_error(field.key, refusal)
            if field.key == HARDWARE_KEY and not refusal:
                self._say_count(choice)

        typed = {"model": PATH, "accelerator": COUNTED}.get(field.catalogue)
        self.app.push_screen(Picker(field.label, read, field.text, typed), picked)

    # Hardware

    def _say_count(self, choice: str) -> None:
        """Say how many devices there are now, where that was not part of the choice."""
        fields = self.store.document.fields() if self.store.document is not None else ()
        count = next((field.value for field in fields if field.key == DEVICES_KEY), None)
        if count is not None and count > 1 and not COUNTED.matches(choice):
            self.say(f"{count:.0f} devices, as before; 1x{choice} would be one")

    def action_simulate(self) -> None:
        """Plan for other hardware than this machine's."""
        document = self.store.document
        if document is not None:
            field = next((field for field in document.fields() if field.key == HARDWARE_KEY), None)
            if field is not None:
                self._pick(field)

    def action_simulate_back(self) -> None:
        """Plan for this machine again; from there, for other hardware."""
        comparison = self.store.comparison
        if comparison is not None and not comparison.simulated:
            self.action_simulate()
        elif refusal := self.change(HARDWARE_KEY, DETECTED):
            self.say(refusal, "bad")

    # Columns

    def action_choose_column(self, offset: int) -> None:
        """Choose the column beside the chosen one."""
        self.store.choose_beside(offset)
        self.show_columns()
        self.ask_why()
        self.show_fields()

    def action_baseline_column(self) -> None:
        """Count deltas from the chosen column, or no longer."""
        self.store.toggle_column_baseline()
        mode = self.store.baseline.mode
        self.say(f"deltas count from {mode}" if mode else "deltas count from nothing")
        self.show_columns()

    def action_baseline_pin(self) -> None:
        """Count deltas from the numbers as they are, or no longer."""
        self.store.toggle_pinned_baseline()
        pinned = self.store.baseline.pinned is not None
        self.say("deltas count from the numbers as they are now" if pinned else "deltas count from nothing")
        self.show_columns()

    # Finding

    def action_find(self) -> None:
        """Ask for a part of a name."""
        self.ask("Find a field or a row", self._sought, self._seek)

    def action_find_next(self, direction: int) -> None:
        """Go to the next line that was sought."""
        if not self._sought:
            self.action_find()
            return
        panel = self._searchable()
        labels = [label.lower() for label in panel.labels()]
        count = len(labels)
        order = [(panel.cursor + direction * step) % count for step in range(1, count + 1)]
        for index in order:
            if self._sought in labels[index]:
                panel.move_to(index)
                return
        self.say(f"nothing called {self._sought} in {panel.TITLE}")

    def _seek(self, text: str) -> str:
        self._sought = text.lower()
        if self._sought:
            self.action_find_next(1)
        return ""

    def _searchable(self) -> FieldList | ComparisonTable:
        table = self.query_one(ComparisonTable)
        return table if self.current is table else self.query_one(FieldList)
