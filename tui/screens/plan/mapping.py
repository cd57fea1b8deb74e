"""What the map's key does: two fields to begin with, and one edit for the pair that is taken."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.keys import Key
from capacity_tui.engine.schema import around
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.screens.map.map_dialog import MapDialog
from capacity_tui.tui.session import Session
from capacity_tui.tui.view import Field, Kind

_NUMBERS = (Kind.INTEGER, Kind.POWER_OF_TWO, Kind.NUMBER)
_USUAL = (
    *(
        Key.TRAINING_MICRO_BATCH,
        Key.INFERENCE_BATCH,
        Key.INFERENCE_CONCURRENCY,
        Key.INFERENCE_REQUEST_RATE,
        "model.spec.n",
    ),
    *(Key.TRAINING_SEQ_LEN, Key.INFERENCE_PROMPT_TOKENS, "model.spec.image_size", "model.spec.p"),
    *(Key.TRAINING_GLOBAL_BATCH, Key.HARDWARE_DEVICES),
)
"""Fields that a map begins with, where the plan has them: the first two."""
_LEAST = 2


class FieldMap:
    """Opens the map of two fields.

    Args:
        session: what every screen works with.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._store = session.store
        self.commands: Commands = {"map.show": self.show}

    def show(self) -> None:
        """Show the map of the usual two fields."""
        document = self._store.document
        if document is None or self._store.mode_column is None or self._store.is_stale:
            self._session.say("there are no numbers of this plan yet", "warn")
            return
        fields = [field for field in document.fields() if not field.idle and field.kind in _NUMBERS]
        fields = [field for field in fields if self._values(field, 1)[0]]
        usual = [key for key in _USUAL if any(field.key == key for field in fields)]
        keys = list(dict.fromkeys((*usual, *(field.key for field in fields))))
        if len(keys) < _LEAST:
            self._session.say("this plan has no two numbers to make a map of")
            return
        dialog = MapDialog(self._session, fields, (keys[0], keys[1]), self._values, document.tried_pairs)
        self._session.app.push_screen(dialog, self._take)

    def _take(self, change: Mapping[str, object] | None) -> None:
        """Change both fields in one edit."""
        if change is None:
            return
        refusal = self._session.apply(change)
        fields = () if self._store.document is None else self._store.document.fields()
        words = ", ".join(f"{field.label} {change[field.key]}" for field in fields if field.key in change)
        self._session.say(refusal or f"{words}: u undoes it", "bad" if refusal else "good")

    def _values(self, field: Field, each_way: int) -> tuple[tuple[str, ...], int]:
        """Return the values around that of a field, and which is its own; none where it has none."""
        document, column = self._store.document, self._store.mode_column
        chosen = column.chosen.get(field.key) if column else None
        start = field.value if field.value is not None else chosen.value if chosen else None
        if document is None or start is None:
            return (), 0
        values = around(field, chosen, document.sizes(field.key), each_way)
        return values, next((at for at, value in enumerate(values) if float(value) == start), 0)
