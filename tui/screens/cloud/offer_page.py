"""All there is to say of one offer, as a page whose figures open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import price_age
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.present import ExplanationText, FormulaInput, column_head, column_text
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_bytes, format_money, format_seconds

if TYPE_CHECKING:
    from capacity_tui.engine.fleet.migration import Alternative

_HOUR = 3600.0
_OF_THE_JOB = (
    Figure.MEMORY_RESERVED_BYTES,
    Figure.STEP_SECONDS,
    Figure.TOKENS_PER_SECOND,
    Figure.ESTIMATED_TRAIN_TIME_SECONDS,
    Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS,
    Figure.OUTPUT_TOKENS_PER_SECOND,
    Figure.COST_USD,
    Figure.COST_USD_PER_MILLION_TOKENS,
)
"""Figures of the estimate that are shown of an offer, where they are known."""


def page_of(offer: Alternative, *, is_current: bool) -> ExplanationText:
    """Return the page of an offer.

    Args:
        offer: the offer.
        is_current: whether it is the machine of the plan.
    """
    saving = offer.saving_percent
    return ExplanationText(
        key=offer.instance,
        title=f"{offer.count} × {offer.instance}",
        formula=_in_words(offer, is_current=is_current),
        result="" if is_current or saving is None else f"saves {_percent(float(saving.value))}",
        interval="" if is_current or saving is None else _percent_range(saving),
        inputs=tuple(_inputs(offer)),
        remarks=tuple(_remarks(offer)),
        assumptions=offer.warnings,
        sources=tuple(_sources(offer)),
    )


def _in_words(offer: Alternative, *, is_current: bool) -> str:
    where = "where the plan runs now; " if is_current else ""
    devices = f"{offer.devices} device{'s' if offer.devices > 1 else ''}"
    short = f"{format_bytes(offer.short_bytes)} short on one of them"
    held = short if offer.short_bytes else ": ".join(filter(None, (offer.verdict.words, offer.reason)))
    return f"{where}{devices}; {held}; risk {offer.risk.level}, change {offer.complexity.level}"


def _inputs(offer: Alternative) -> Iterator[FormulaInput]:
    """Yield the figures, each with its range or where it is from."""
    paid = "spot" if offer.is_spot else "on demand or committed to"
    yield _money("usd_per_hour", "$/h", offer.usd_per_hour, offer.price_source or offer.absence)
    yield _money("usd_month", "month", offer.usd_month, "all instances for the hours of the month")
    yield _spread("usd_month_spot", "month on spot", offer.usd_month_spot, offer.absence)
    yield _spread("usd_same_work", "same work", offer.usd_same_work, f"paid {paid}")
    yield _spread("saving_usd", "saving", offer.saving_usd, "of a month's work, against now")
    if offer.performance_percent is not None:
        speed = offer.performance_percent
        ends = _percent_range(speed).strip("()")
        yield FormulaInput("speed", _percent(float(speed.value)), ends, key="performance_percent")
    for part in offer.move:
        yield FormulaInput(part.name, _usd(part.usd), f"{format_seconds(part.hours * _HOUR)}, {part.detail}")
    if offer.move:
        took = format_seconds(offer.move_hours * _HOUR)
        yield FormulaInput("move", _usd(offer.move_usd), f"once, {took}", key="move_usd")
    if offer.break_even_hours is not None:
        paid_after = format_seconds(offer.break_even_hours * _HOUR)
        yield FormulaInput("pays in", paid_after, "of running where it is now", key="break_even_hours")
    for key in _OF_THE_JOB:
        if key in offer.figures:
            value = offer.figures[key]
            ends = f"{column_text(key, float(value.low))} – {column_text(key, float(value.high))}"
            yield FormulaInput(column_head(key), column_text(key, float(value.value)), ends, key=key)


def _remarks(offer: Alternative) -> Iterator[str]:
    yield f"risk {offer.risk.level}: {'; '.join(offer.risk.reasons) or 'nothing speaks against it'}"
    yield f"change {offer.complexity.level}: {'; '.join(offer.complexity.reasons) or 'nothing but the machine'}"
    for remedy in offer.remedies:
        left = f", {format_bytes(remedy.short_bytes)} short even then" if remedy.short_bytes else ""
        yield f"it would fit with {remedy.words}{left}" if not left else f"{remedy.words}{left}"


def _sources(offer: Alternative) -> Iterator[str]:
    if offer.price_source:
        age = price_age(offer.price_date).words
        yield ", ".join((f"price: {offer.price_source}", *([age] if age and age not in offer.price_source else ())))


def _money(key: str, name: str, usd: float | None, source: str) -> FormulaInput:
    return FormulaInput(name, _usd(usd), source, key=key if usd is not None else "")


def _spread(key: str, name: str, value: Interval | None, source: str) -> FormulaInput:
    if value is None:
        return FormulaInput(name, "n/a", source)
    low, high = float(value.low), float(value.high)
    ends = f"{_usd(low)} – {_usd(high)}" if low < high else ""
    told = ", ".join(part for part in (ends, source) if part)
    return FormulaInput(name, _usd(float(value.value)), told, key=key)


def _usd(usd: float | None) -> str:
    return format_money(usd)


def _percent_range(value: Interval) -> str:
    low, high = float(value.low), float(value.high)
    return f"({_percent(low)} – {_percent(high)})" if low < high else ""


def _percent(value: float) -> str:
    return f"{value:+.0f} %"
