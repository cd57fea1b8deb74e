"""Values of a plan as they are shown."""

from __future__ import annotations

from capacity_tui.engine.units import format_count, format_number, parse_count

SWITCH = ("off", "on")
"""What a switch says, off first."""
_SHORT_FROM = 10**6
"""Whole numbers from here on are shortened where nothing is lost by it: 2M, but 2,000,001."""


def plan_value_text(value: object) -> str:
    """Return a value of a plan as it is shown; empty where the plan gives none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return SWITCH[value]
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        short = format_count(value)
        is_exact = value >= _SHORT_FROM and parse_count(short) == value
        return short if is_exact else format_number(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
