"""Figures of an estimate as cells of a table: what stands over them, and how they are written there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from capacity_tui.engine.api import FIGURES, Verdict, written_figure
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
_FULL = 100.0


def head_of(key: str) -> str:
    """Return what stands over a figure."""
    return _HEADS.get(key) or (FIGURES[key].brief or FIGURES[key].label).format(**_WORDS)


def verdict_of(fits: bool | None, figures: Mapping[str, Interval]) -> Verdict:
    """Return the verdict of the memory's range, as an estimate has it."""
    share = figures.get(_MEMORY)
    if fits is False:
        return Verdict.DOES_NOT_FIT
    if fits is None or share is None:
        return Verdict.UNKNOWN
    return Verdict.TIGHT if share.high > _FULL else Verdict.FITS


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
