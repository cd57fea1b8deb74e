"""Figures of an estimate as cells of a table: what stands over them, and how they are written there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity_tui.engine.api import FIGURES, written_figure
from capacity_tui.tui.shown.found import FoundCell

if TYPE_CHECKING:
    from capacity_tui.engine.api import Interval

_MEMORY = "memory.utilization_percent"
_HEADS = {
    _MEMORY: "memory",
    "cost.usd_per_hour": "$/h",
    "cost.usd_per_million_tokens": "$/M tok",
    "computation.step_seconds": "step",
    "computation.infer.output_tokens_per_second": "tok/s",
}
"""Heads that differ from what a figure is called elsewhere, for want of room."""
_WORDS = {"counted": "tok", "iteration": "step", "job": "job", "unit": "token"}


def head_of(key: str) -> str:
    """Return what stands over a figure."""
    return _HEADS.get(key) or (FIGURES[key].brief or FIGURES[key].label).format(**_WORDS)


def range_text(key: str, value: Interval) -> str:
    """Return the range of a figure behind its head."""
    return f"{head_of(key)} {text_of(key, float(value.low))} – {text_of(key, float(value.high))}"


def text_of(key: str, value: float) -> str:
    """Return a figure as it stands below its head, without a unit that stands there."""
    return written_figure(value, FIGURES[key].unit.format(**_WORDS)).removesuffix(f" {head_of(key)}")


def figure_cell(key: str, value: Interval | None) -> FoundCell:
    """Return the cell of a figure; ``n/a`` where it is not known."""
    if value is None:
        return FoundCell("n/a")
    return FoundCell(text_of(key, float(value.value)), float(value.value))
