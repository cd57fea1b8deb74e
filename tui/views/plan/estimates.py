"""Estimates of the plan, and of values around that of a field; what the keys of an explanation do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from textual.dom import DOMNode
from textual.timer import Timer

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.present import ExplanationText, followed
from capacity_tui.engine.schema import stepped
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.requests import Fault, Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.comparison import Comparison, Trial
from capacity_tui.tui.shown.results import Choice, SizedModel
from capacity_tui.tui.view import Document
from capacity_tui.tui.views.dialogs.picker import Picker
from capacity_tui.tui.views.plan.comparison import ComparisonTable
from capacity_tui.tui.views.plan.field_list import FieldList
from capacity_tui.tui.views.plan.hardware import Hardware
from capacity_tui.tui.views.plan.why import Why, explain_lines
from capacity_tui.tui.views.view_screen import ShowText

if TYPE_CHECKING:
    from capacity_tui.engine.solve.modes import FieldLimit

SWEEP_AFTER_SECONDS = 0.15


def swept(
    values: Sequence[str], attempt: Callable[[str], Trial], request: Request[dict[str, Trial]]
) -> dict[str, Trial] | None:
    """Return what comes of each value, tried once the keys rest; None where nobody waits for it any more."""
    if not values or request.cancelled.wait(SWEEP_AFTER_SECONDS):
        return None
    trials: dict[str, Trial] = {}
    for value in values:
        if request.cancelled.is_set():
            return None
        trials[value] = attempt(value)
    return trials


class Sweeping:
    """Has the plan tried with other values of a field, once the cursor rests on it."""

    def __init__(self, session: Session, screen: DOMNode, fields: FieldList) -> None:
        self._session = session
        self._store = session.store
        self._screen = screen
        self._fields = fields
        self._requested: tuple[int, str, tuple[str, ...]] | None = None
        self.commands: Commands = {"value.limit": self.to_the_limit}
        fields.sizes = self._sizes
        session.answers.subscribe(screen, lambda _: self.follow())

    def follow(self) -> None:
        """Try the values around that of the field under the cursor, unless they are known, and its next steps ahead."""
        document, field = self._store.document, self._fields.field
        if document is None or field is None or self._store.is_stale:
            return
        values = self._fields.values_around()
        requested = (self._store.generation, field.key, values)
        if requested == self._requested:
            return
        self._requested = requested
        chosen, sizes = self._fields.chosen, document.sizes(field.key)
        steps = [stepped(field, direction, chosen=chosen, sizes=sizes) for direction in (1, -1)]

        def work(request: Request[dict[str, Trial]]) -> None:
            trials = swept(values, partial(document.trial, field.key), request)
            if trials is None:
                return
            request.answer(trials)
            for text in steps:
                if text is None or request.cancelled.is_set():
                    continue
                with suppress(CapacityError):
                    document.foresee({field.key: text})

        self._session.ask(self._screen, "sweep", work, self._fields.show_trials)

    def to_the_limit(self) -> None:
        """Have the largest value of the field under the cursor found with which the plan fits."""
        # The fields are those of the plan itself, also while a pinned one is chosen.
        document, field, column = self._store.document, self._fields.field, self._store.mode_column
        if document is None or field is None or column is None:
            return
        if field.key == Key.MODEL_NAME:
            self._show_ladder(document)
            return
        self._session.say(f"looking for the limit of {field.label}…")
        take = partial(self._take_limit, self._store.generation, field.key)
        self._session.ask(self._screen, "limit", lambda _: document.limit(column.mode, field.key), take)

    def _show_ladder(self, document: Document) -> None:
        """Show the largest models that the plan's hardware tunes and runs, and take the one that is picked."""
        rungs: list[SizedModel] = []

        def read() -> tuple[Choice, ...]:
            rungs[:] = document.ladder()
            return tuple(Choice(str(number), one.way, _rung_text(one)) for number, one in enumerate(rungs))

        def picked(number: str | None) -> None:
            if number is not None:
                rung = rungs[int(number)]
                refusal = self._session.apply(rung.change)
                text = refusal or f"{rung.way} {rung.model}, {rung.room}: {{edit.undo}} undoes it"
                self._session.say(text, "bad" if refusal else "good")

        self._session.app.push_screen(Picker(self._session, _LADDER, read), picked)

    def _take_limit(self, generation: int, key: str, limit: FieldLimit) -> None:
        """Take the value that was found, unless the plan has changed meanwhile."""
        fields = () if self._store.document is None else self._store.document.fields()
        field = next((field for field in fields if field.key == key), None)
        if generation != self._store.generation or field is None:
            return
        if limit.value is None:
            self._session.say(f"no value of {field.label} makes it fit", "warn")
            return
        refusal = self._session.change(key, str(limit.value))
        beyond = "the end of its range" if limit.beyond is None else f"{limit.beyond} breaks a limit"
        tight = ", tight" if limit.verdict is Verdict.TIGHT else ""
        self._session.say(refusal or f"{field.label} {limit.value}{tight}: {beyond}", "bad" if refusal else "good")

    def _sizes(self, key: str) -> tuple[int, ...]:
        return () if self._store.document is None else self._store.document.sizes(key)


_LADDER = f"Largest models here: {Verdict.FITS.sign} with room to spare, {Verdict.TIGHT.sign} on the edge"


def _rung_text(rung: SizedModel) -> str:
    """Return model, share of the memory and speed in columns; the sign says whether there is room to spare."""
    sign = (Verdict.FITS if rung.is_comfortable else Verdict.TIGHT).sign
    return f"{sign} {rung.model:<22} {rung.share:>5} {rung.speed:>13}"


EXPLAIN_AFTER_SECONDS = 0.1
_PATIENCE_SECONDS = 0.1  # A second frame could only follow the first after two ticks of the screen, some 30 ms


class Estimates:
    """Shows what the store holds, and has it estimated and explained."""

    def __init__(
        self,
        session: Session,
        screen: DOMNode,
        *,
        hardware: Hardware,
        fields: FieldList,
        table: ComparisonTable,
        why: Why,
    ) -> None:
        self._session = session
        self._store = session.store
        self._screen = screen
        self._hardware = hardware
        self._fields = fields
        self._table = table
        self._why = why
        self._late_fields: Timer | None = None
        self.commands: Commands = {
            "column.next": partial(self.choose_column, 1),
            "baseline.column": self.baseline_column,
            "baseline.pin": self.baseline_pin,
            "plans.sort": self.sort,
        }

    def estimate(self) -> None:
        """Have a changed plan estimated; fields and numbers are shown in one frame unless that takes long."""
        self._fields.show_error("", "")
        if self._late_fields is not None:
            self._late_fields.stop()
        self._late_fields = self._screen.set_timer(_PATIENCE_SECONDS, self._show_unestimated)
        self._session.compare(self._screen, partial(self._take, self._store.generation), self._show_failure)

    def _take(self, generation: int, comparison: Comparison) -> None:
        """Show new numbers, unless they answer for an earlier plan."""
        if self._store.accept(generation, comparison):
            self._session.trouble = None
            self._hardware.rows = comparison.hardware
            self.show_columns()
            self.show_fields()
            self.explain()

    def _show_failure(self, fault: Fault) -> None:
        """Say why there are no new numbers; the old ones stay."""
        self._session.last_failure = fault
        self.show_columns()
        self._session.show_trouble(fault)

    def show_fields(self) -> None:
        """Show the fields of the plan, with what the chosen mode took for the automatic ones."""
        document, column = self._store.document, self._store.mode_column
        if document is None:
            return
        fields = document.fields()
        chosen, store = column.chosen if column else {}, self._store
        self._fields.show_fields(fields, chosen, store.changed(fields), store.moved_along)

    def show_columns(self) -> None:
        store = self._store
        self._table.show_comparison(store.comparison, store.column, store.deltas_from, store.is_stale)
        self._session.answers.publish(None)

    def explain(self) -> None:
        """Have the number under the cursor explained, once the keys rest: it takes several estimates."""
        answered, key = self._store.answered, self._table.row_key
        if answered is None or not key:
            self._why.show_explanation(None)
            return
        document, column = answered

        def work(request: Request[ExplanationText]) -> ExplanationText | None:
            if request.cancelled.wait(EXPLAIN_AFTER_SECONDS):
                return None
            return request.while_wanted(lambda: document.explain(column.mode, key))

        self._session.ask(self._screen, "explain", work, self._show_explanation)

    def explainer(self) -> Callable[[str], ExplanationText] | None:
        """Return what explains figures of the chosen column; None while there are no numbers."""
        answered = self._store.answered
        return None if answered is None else partial(answered[0].explain, answered[1].mode)

    def _show_explanation(self, explanation: ExplanationText) -> None:
        if not self._store.is_stale:
            self._why.show_explanation(explanation)

    def has_column(self, offset: int) -> bool:
        """Return whether there is a column that many places beside the chosen one."""
        columns = self._store.comparison.columns if self._store.comparison else ()
        chosen = self._store.column
        return chosen is not None and 0 <= columns.index(chosen) + offset < len(columns)

    def choose_column(self, offset: int) -> None:
        self._store.choose_next(offset)
        self.show_columns()
        self.explain()
        self.show_fields()

    def baseline_column(self) -> None:
        self._store.toggle_column_baseline()
        mode = self._store.baseline.mode
        self._session.say(f"baseline: {mode}" if mode else "no baseline")
        self._show_deltas()

    def baseline_pin(self) -> None:
        self._store.toggle_pinned_baseline()
        pinned = self._store.baseline.pinned is not None
        self._session.say("baseline: the current numbers" if pinned else "no baseline")
        self._show_deltas()

    def sort(self) -> None:
        """Sort the columns by the quantity under the cursor, or no longer."""
        row = self._table.row
        if row is None:
            return
        if row.value is None:
            self._session.say(f"{row.label} cannot be sorted by; {{file.save}} saves")
            return
        order = f"sorted by {row.label}, best first" if self._store.sort(row.key) else "plans unsorted"
        self._session.say(f"{order}; {{file.save}} saves" if self._store.is_changed else order)
        self.show_columns()

    def forget_edit(self) -> bool:
        """Count deltas from the baseline again instead of from before the last edit; return whether they did."""
        forgets = self._store.deltas_from.is_edit
        if forgets:
            self._store.forget_edit()
            self._show_deltas()
        return forgets

    def _show_deltas(self) -> None:
        self.show_columns()
        self.show_fields()

    def _show_unestimated(self) -> None:
        if self._store.is_stale or self._store.comparison is None:
            self.show_fields()
            self.show_columns()


class Following:
    """Opens what an explanation is made from."""

    def __init__(
        self,
        session: Session,
        screen: DOMNode,
        why: Why,
        show: ShowText,
        leave: Callable[[], object],
        explainer: Callable[[], Callable[[str], ExplanationText] | None],
    ) -> None:
        self._session = session
        self._screen = screen
        self._why = why
        self._show = show
        self._leave = leave
        self._explainer = explainer
        self.commands: Commands = {"why.follow": self.follow, "why.back": self.back}

    def follow(self) -> None:
        """Open the number under the cursor; on any other line the whole explanation."""
        explanation, entry = self._why.explanation, self._why.entry
        if explanation is None:
            return
        if entry is None:
            ascii_only = self._session.app.has_class("-ascii")
            self._show(explanation.title, lambda width: explain_lines(explanation, width, ascii_only))
        elif entry.key:
            self._explain(entry.key)
        else:
            self._why.open(followed(explanation, entry))

    def back(self) -> None:
        """Go back to the number before, or leave the panel."""
        if not self._why.back():
            self._leave()

    def _explain(self, key: str) -> None:
        explain = self._explainer()
        if explain is not None:
            self._session.ask(self._screen, "follow", lambda _: explain(key), self._open)

    def _open(self, explanation: ExplanationText) -> None:
        """Show where a number comes from, unless it is one of an earlier plan."""
        if self._explainer() is not None:
            self._why.open(explanation)
