"""Figures of an estimate as cells of a table: how they are written there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity_tui.engine.present import column_head, column_text
from capacity_tui.tui.shown.found import FoundCell

if TYPE_CHECKING:
    from capacity_tui.engine.uncertainty import Interval


def range_text(key: str, value: Interval) -> str:
    """Return the range of a figure behind its head."""
    return f"{column_head(key)} {column_text(key, float(value.low))} – {column_text(key, float(value.high))}"


def figure_cell(key: str, value: Interval | None) -> FoundCell:
    """Return the cell of a figure; ``n/a`` where it is not known."""
    if value is None:
        return FoundCell("n/a")
    return FoundCell(column_text(key, float(value.value)), float(value.value))
