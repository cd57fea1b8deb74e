"""Where a figure of an offer comes from: the equations that a comparison of that one machine evaluates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Derivation, recording
from capacity_tui.engine.fleet.migration import Alternative, migrate
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.explanation import ExplanationText, FormulaInput, derived_step
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_quantity

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Catalog
    from capacity_tui.engine.fleet.migration import MigrationQuestion
    from capacity_tui.engine.machine import Machine

TITLES: Mapping[str, tuple[str, str]] = {
    "usd_per_hour": ("price of an hour", "USD"),
    "usd_month": ("price of the month", "USD"),
    "usd_month_spot": ("price of the month on spot capacity", "USD"),
    "usd_same_work": ("price of the same work", "USD"),
    "hours_same_work": ("hours of the same work", "h"),
    "performance_ratio": ("speed beside the current machine", ""),
    "performance_percent": ("gain in speed", "%"),
    "saving_usd": ("saving of a month", "USD"),
    "saving_percent": ("saving", "%"),
    "move_usd": ("price of moving", "USD"),
    "break_even_hours": ("hours until moving has paid", "h"),
}
"""Figures of an offer that are not of its estimate: what they are called, and their units."""
_CURRENT = "current"
_NEARLY = 1e-9


def offer_explanation(
    question: MigrationQuestion, instance: str, key: str, catalog: Catalog, machine: Machine | None = None
) -> ExplanationText:
    """Return where a figure of an offer comes from.

    Args:
        question: what was asked.
        instance: id of the instance that is offered, or of the current machine.
        key: the figure, one of ``TITLES``.
        catalog: facts.
        machine: the detected machine, for a job that runs on it.

    Raises:
        CapacityError: no figure is called that, or there is no such offer.
    """
    if key not in TITLES:
        raise PlanError("an offer has no such figure", repr(key)[:60], f"one of {', '.join(TITLES)}")
    with recording() as record:
        found = migrate(replace(question, instances=(instance,)), catalog, machine)
    offers = (*(each for each in found.alternatives if each.instance == instance), found.current)
    offer = offers[0]
    title, unit = TITLES[key]
    value, interval = _value(offer, key), getattr(offer, key)
    shown = ExplanationText(
        key=key,
        title=title,
        formula="",
        result="n/a" if value is None else format_quantity(value, unit),
        interval=_interval(interval, unit),
        remarks=tuple(text for text in (offer.price_source, offer.absence) if text),
    )
    if key == "move_usd":
        parts = tuple(FormulaInput(part.name, _usd(part.usd), part.detail) for part in offer.move)
        return replace(shown, formula="usd = the sum of its parts", inputs=parts)
    if key == "usd_per_hour" or value is None:
        return replace(shown, formula=f"usd = {offer.count} · price of one instance")
    root = _root(record.derivations, key, value)
    if root is None:
        return replace(shown, remarks=("no formula gives it", *shown.remarks))
    step = derived_step(root)
    inputs = tuple(_linked(*pair, offer, found.current) for pair in zip(step.inputs, root.inputs, strict=True))
    return replace(shown, formula=step.formula, inputs=inputs, sources=(step.source,))


def _root(derivations: Iterable[Derivation], key: str, value: float) -> Derivation | None:
    """Return the equation that gave a value, the figure's own one before others."""
    same = [each for each in derivations if np.size(each.result) == 1 and _is(mean(each.result), value)]
    named = [each for each in same if each.part == key]
    priced = [each for each in same if each.part.startswith("cost.")]
    return next(reversed([*priced, *named]), None)


def _linked(entry: FormulaInput, given: object, offer: Alternative, current: Alternative) -> FormulaInput:
    """Return what was put in, to be opened where it is another figure of the offer."""
    value = getattr(given, "value", None)
    if entry.name == _CURRENT:
        return replace(entry, source=f"{entry.source} ({current.count} × {current.instance})")
    if entry.step is not None or not isinstance(value, int | float):
        return entry
    key = next((key for key in TITLES if (own := _value(offer, key)) is not None and _is(own, float(value))), "")
    return replace(entry, key=key)


def _value(offer: Alternative, key: str) -> float | None:
    value = getattr(offer, key)
    return mean(value.value) if isinstance(value, Interval) else value


def _is(one: float, other: float) -> bool:
    return abs(one - other) <= _NEARLY * max(abs(one), abs(other))


def _interval(value: object, unit: str) -> str:
    if not isinstance(value, Interval) or mean(value.low) == mean(value.high):
        return ""
    return f"({format_quantity(mean(value.low), unit)} to {format_quantity(mean(value.high), unit)})"


def _usd(usd: float | None) -> str:
    return "n/a" if usd is None else format_quantity(usd, "USD")
