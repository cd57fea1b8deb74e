"""Figures as columns of a table of alternatives: which of them there are, and what stands over them."""

from __future__ import annotations

from collections.abc import Collection

from capacity_tui.engine.estimate import METRICS, usual_words
from capacity_tui.engine.units import format_quantity


def column_figures(known: Collection[str]) -> tuple[str, ...]:
    """Return the keys of the figures that have a column, in their order.

    Args:
        known: the figures that any of the alternatives has.
    """
    found: dict[str, str] = {}
    for key, metric in METRICS.items():
        if metric.column and key in known:
            found.setdefault(metric.column, key)
    return tuple(found.values())


def column_head(key: str) -> str:
    """Return what stands over a figure, whatever the run."""
    metric = METRICS[key]
    return usual_words(metric.head or metric.brief or metric.label).replace("tokens", "tok")


def column_unit(key: str) -> str:
    """Return the unit of a figure below its head."""
    return usual_words(METRICS[key].unit).replace("tokens", "tok")


def column_text(key: str, value: float) -> str:
    """Return a figure as it stands below its head, without a unit that stands there."""
    return format_quantity(value, column_unit(key)).removesuffix(f" {column_head(key)}")
