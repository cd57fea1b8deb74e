"""What is wrong with a file, as plain data."""

from __future__ import annotations

from capacity_tui.engine.errors import CapacityError, Place


def place_data(place: Place) -> dict[str, object]:
    """Return where something stands."""
    return {"file": place.file, "line": place.line, "field": place.field}


def fault_data(fault: CapacityError) -> dict[str, object]:
    """Return what is wrong, where, and what to do about it."""
    return {**place_data(fault.place), "title": fault.title, "detail": fault.detail, "hint": fault.hint}
