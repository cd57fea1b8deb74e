"""Figures of a month: what its hours and its work cost on a machine, what moving saves, and when it has paid."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate import equation
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS, PERCENT

PERFORMANCE, PERFORMANCE_PERCENT = "performance_ratio", "performance_percent"


@equation(
    "ratio = work / current",
    unit="",
    source="work a second of both machines as estimated: requests, tokens or samples",
    part=PERFORMANCE,
)
def performance_ratio(work: Number, current: Number) -> Number:
    """How many times the current machine's work another one does.

    Args:
        work: work a second of the other machine.
        current: work a second of the current one.
    """
    return work / current


@equation("percent = (ratio - 1) · 100", unit="%", source="definition", part=PERFORMANCE_PERCENT)
def gain_percent(ratio: Number) -> Number:
    """How much more another machine does.

    Args:
        ratio: its work over that of the current one.
    """
    return (ratio - 1.0) * PERCENT


@equation(
    "usd = hours · usd_per_hour",
    unit="USD",
    source="price of the catalogue, whole instances",
    part="usd_month",
    units={"usd_per_hour": "USD"},
)
def month_usd(hours: Number, usd_per_hour: Number) -> Number:
    """Price of a month.

    Args:
        hours: hours a month that the instances are rented.
        usd_per_hour: price of all instances for an hour, USD.
    """
    return hours * usd_per_hour


@equation(
    "hours = hours / ratio",
    unit="h",
    source="the same work ends earlier on a faster machine",
    part="hours_same_work",
)
def same_work_hours(hours: Number, ratio: Number) -> Number:
    """Hours that the current month's work takes.

    Args:
        hours: hours a month on the current machine.
        ratio: work of the other machine over that of the current one.
    """
    return hours / ratio


@equation(
    "saving = current - other",
    unit="USD",
    source="the same work on both machines",
    part="saving_usd",
    units={"current": "USD", "other": "USD"},
    origins={"current": "job_usd", "other": "job_usd"},
)
def saved_usd(current: Number, other: Number) -> Number:
    """What a month's work costs less on another machine.

    Args:
        current: price of the month on the current machine, USD.
        other: price of the same work on the other one, USD.
    """
    return current - other


@equation(
    "percent = saving / current · 100",
    unit="%",
    source="definition",
    part="saving_percent",
    units={"saving": "USD", "current": "USD"},
    origins={"saving": "saved_usd", "current": "job_usd"},
)
def saved_percent(saving: Number, current: Number) -> Number:
    """Saving as a share of what is paid now.

    Args:
        saving: what the month's work costs less, USD.
        current: price of the month on the current machine, USD.
    """
    return saving / current * PERCENT


@equation(
    "break_even = once / saving · hours",
    unit="h",
    source="hours of running on the current machine whose saving pays for moving",
    part="break_even_hours",
    units={"once": "USD", "saving": "USD"},
    origins={"saving": "saved_usd"},
)
def break_even(once: Number, saving: Number, hours: Number) -> Number:
    """Hours of running after which moving has paid.

    Args:
        once: what moving costs, USD.
        saving: saving of a month, USD.
        hours: hours of the month on the current machine.
    """
    return once / saving * hours


def ratio_range(other: Interval, current: Interval, *, shared_errors: bool) -> Interval:
    """Return the ratio of two estimates with its range.

    Errors of unlike devices are independent, so that their logarithms add up as squares; those of the same device are
    the same for both, and only the wider remains of them what the narrower does not take away.

    Args:
        other: work of one machine.
        current: work of the other.
        shared_errors: whether both are the same device.
    """
    ratio = float(np.asarray(performance_ratio(mean(other.value), mean(current.value))))
    below, above = _log(other.value, other.low), _log(other.high, other.value)
    own_below, own_above = _log(current.value, current.low), _log(current.high, current.value)
    if shared_errors:
        down, up = abs(below - own_below), abs(above - own_above)
    else:
        down, up = float(np.hypot(below, own_above)), float(np.hypot(above, own_below))
    return Interval(ratio, ratio * float(np.exp(-down)), ratio * float(np.exp(up)))


def hours_as_seconds(hours: Interval) -> Interval:
    """Return hours as seconds."""
    return hours.scaled(HOUR_SECONDS)


def _log(high: Number, low: Number) -> float:
    return float(np.log(mean(high) / mean(low)))
