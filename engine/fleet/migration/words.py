"""Money and shares in sentences about moving."""

from __future__ import annotations

from capacity_tui.engine.estimate.figures import written
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.uncertainty.intervals import Interval


def money(usd: Number) -> str:
    """Return a sum of money, without cents where it is large."""
    return written(mean(usd), "USD")


def percent(share: Interval) -> str:
    """Return a figure that is in percent, with its range where it has one."""
    value, low, high = (f"{mean(end):.0f}" for end in (share.value, share.low, share.high))
    return f"{value} %" if low == high else f"{value} % ({low} to {high} %)"
