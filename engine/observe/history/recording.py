"""Keeps an entry in passing, without making whatever is recorded wait or stop."""

from __future__ import annotations

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.observe.history.places import Where, history_place
from capacity_tui.engine.observe.history.records import RunRecord
from capacity_tui.engine.observe.history.waiting import append, reason_of

MOST_WAITING = 4 * 2**20
"""Bytes of estimates that wait until the command of the one that comes on top stores them all."""


def record_run(entry: RunRecord, where: Where = None) -> str:
    """Keep an entry where entries are kept by themselves, and return a note for the user; mostly none.

    Never raises for a history that cannot be written. An estimate is put down to be stored when the history is next
    read: its command should not wait for a database.

    Args:
        where: a place, a file, a MongoDB URI, or ``off``; by default as the environment says.
    """
    place = history_place(where)
    if not place.is_on:
        return ""
    is_estimate = entry.kind == "estimate"
    try:
        if append(place.waiting, entry, lasting=not is_estimate) < MOST_WAITING and is_estimate:
            return ""
    except (CapacityError, OSError) as error:
        return f"not kept in the history: {reason_of(error)}"
    from capacity_tui.engine.observe.history.history import History  # noqa: PLC0415 - most estimates need no database

    history = History(place)
    history.take_in()
    return "; ".join(history.notes)
