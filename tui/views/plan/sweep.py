"""Values around that of a field, or of two, each with what the plan would be."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from textual.dom import DOMNode

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.schema import around, stepped
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.requests import Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.comparison import Trial
from capacity_tui.tui.shown.results import Choice, Field, Kind, SizedModel
from capacity_tui.tui.view import Document
from capacity_tui.tui.views.dialogs.map import MapDialog
from capacity_tui.tui.views.dialogs.picker import Picker
from capacity_tui.tui.views.plan.field_list import FieldList

if TYPE_CHECKING:
    from capacity_tui.engine.solve.modes import FieldLimit

SWEEP_AFTER_SECONDS = 0.15


class Sweeping:
    """Return the estimate of a plan; raises CapacityError where it has none."""

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
            if not values or request.cancelled.wait(SWEEP_AFTER_SECONDS):
                return
            trials: dict[str, Trial] = {}
            for value in values:
                if request.cancelled.is_set():
                    return
                trials[value] = document.trial(field.key, value)
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
                text = refusal or f"{rung.way} {rung.model}, {rung.room}: u undoes it"
                self._session.say(text, "bad" if refusal else "good")

        self._session.app.push_screen(Picker(self._session, _LADDER, read), picked)

    def _take_limit(self, generation: int, key: str, limit: FieldLimit) -> None:
        """Take the value that was found, unless the plan has changed meanwhile."""
        field = next((field for field in self._described() if field.key == key), None)
        if generation != self._store.generation or field is None:
            return
        if limit.value is None:
            self._session.say(f"no value of {field.label} makes it fit", "warn")
            return
        refusal = self._session.change(key, str(limit.value))
        beyond = "the end of its range" if limit.beyond is None else f"{limit.beyond} breaks a limit"
        tight = ", tight" if limit.verdict is Verdict.TIGHT else ""
        self._session.say(refusal or f"{field.label} {limit.value}{tight}: {beyond}", "bad" if refusal else "good")

    def _described(self) -> tuple[Field, ...]:
        return () if self._store.document is None else self._store.document.fields()

    def _sizes(self, key: str) -> tuple[int, ...]:
        return () if self._store.document is None else self._store.document.sizes(key)


_LADDER = f"Largest models here: {Verdict.FITS.sign} with room to spare, {Verdict.TIGHT.sign} on the edge"


def _rung_text(rung: SizedModel) -> str:
    """Return model, share of the memory and speed in columns; the sign says whether there is room to spare."""
    sign = (Verdict.FITS if rung.is_comfortable else Verdict.TIGHT).sign
    return f"{sign} {rung.model:<22} {rung.share:>5} {rung.speed:>13}"


_NUMBERS = (Kind.INTEGER, Kind.POWER_OF_TWO, Kind.NUMBER)

_USUAL = (
    *(
        Key.TRAINING_MICRO_BATCH,
        Key.INFERENCE_BATCH,
        Key.INFERENCE_CONCURRENCY,
        Key.INFERENCE_REQUEST_RATE,
        f"{Key.MODEL_SPEC}.n",
    ),
    *(Key.TRAINING_SEQ_LEN, Key.INFERENCE_PROMPT_TOKENS, f"{Key.MODEL_SPEC}.image_size", f"{Key.MODEL_SPEC}.p"),
    *(Key.TRAINING_GLOBAL_BATCH, Key.HARDWARE_DEVICES),
)
"""Fields that a map begins with, where the plan has them: the first two."""

_LEAST = 2


class FieldMap:
    """Opens the map of two fields."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._store = session.store
        self.commands: Commands = {"map.show": self.show}

    def show(self) -> None:
        document = self._store.document
        if document is None or self._store.mode_column is None or self._store.is_stale:
            self._session.say("no numbers for this plan yet", "warn")
            return
        fields = [field for field in document.fields() if not field.idle and field.kind in _NUMBERS]
        fields = [field for field in fields if self._values(field, 1)[0]]
        usual = [key for key in _USUAL if any(field.key == key for field in fields)]
        keys = list(dict.fromkeys((*usual, *(field.key for field in fields))))
        if len(keys) < _LEAST:
            self._session.say("this plan has no two numbers to map")
            return
        dialog = MapDialog(self._session, fields, (keys[0], keys[1]), self._values, document.trial_pairs)
        self._session.app.push_screen(dialog, self._take)

    def _take(self, change: Mapping[str, object] | None) -> None:
        if change is None:
            return
        refusal = self._session.apply(change)
        fields = () if self._store.document is None else self._store.document.fields()
        words = ", ".join(f"{field.label} {change[field.key]}" for field in fields if field.key in change)
        self._session.say(refusal or f"{words}: u undoes it", "bad" if refusal else "good")

    def _values(self, field: Field, reach: int) -> tuple[tuple[str, ...], int]:
        """Return the values around that of a field, and which is its own; none where it has none."""
        document, column = self._store.document, self._store.mode_column
        chosen = column.chosen.get(field.key) if column else None
        start = field.value if field.value is not None else chosen.value if chosen else None
        if document is None or start is None:
            return (), 0
        values = around(field, chosen, document.sizes(field.key), reach)
        return values, next((at for at, value in enumerate(values) if float(value) == start), 0)
