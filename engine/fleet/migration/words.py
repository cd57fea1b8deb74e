"""Money, shares and machines in sentences about moving."""

from __future__ import annotations

from capacity_tui.engine.fleet.migration.alternative import Alternative
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_number, format_quantity

# Ratios from here on are written without decimals.
_WHOLE = 10.0


def money(usd: Number) -> str:
    """Return a sum of money, without cents where it is large."""
    return format_quantity(mean(usd), "USD")


def percent(share: Interval) -> str:
    """Return a figure that is in percent, with its range where it has one."""
    value, low, high = (f"{mean(end):.0f}" for end in (share.value, share.low, share.high))
    return f"{value} %" if low == high else f"{value} % ({low} to {high} %)"


def times(ratio: Interval) -> str:
    """Return how many times as much something is, with its range."""
    value, low, high = (_ratio(mean(end)) for end in (ratio.value, ratio.low, ratio.high))
    return value if low == high else f"{value} ({low} to {high})"


def ends(ratio: Interval) -> str:
    """Return the ends of such a range."""
    return f"{_ratio(mean(ratio.low))} to {_ratio(mean(ratio.high))}"


def machines(each: Alternative) -> str:
    """Return which machines are meant, and that they are spot capacity."""
    return f"{each.count} x {each.instance}{' on spot capacity' if each.is_spot else ''}"


def _ratio(value: float) -> str:
    return format_number(round(value)) if value >= _WHOLE else f"{value:.2g}"
