"""What one step up or down makes of a value."""

from __future__ import annotations

import math
from collections.abc import Sequence

from capacity_tui.tui.view import AUTO, Chosen, Field, Kind

BIG_DOUBLINGS = 3
BIG_STEPS = 10


def stepped(
    field: Field,
    direction: int,
    big: bool = False,
    chosen: Chosen | None = None,
    sizes: Sequence[int] = (),
) -> str | None:
    """Return the text of the value one step further.

    Args:
        field: the field to step.
        direction: 1 for up, -1 for down.
        big: whether it is a big step.
        chosen: where an automatic value starts from.
        sizes: the values a step may land on, in order; none for any.

    Returns:
        The text to give to the plan, or None where there is no step.
    """
    if field.kind is Kind.CHOICE:
        return _next_choice(field, direction, chosen)
    value = field.value
    if value is None and chosen is not None:
        value = chosen.value
    if value is None:
        return None if field.minimum is None else _number(field.minimum)
    if sizes:
        return _next_size(value, direction * (BIG_DOUBLINGS if big else 1), sizes)
    if field.kind is Kind.POWER_OF_TWO:
        after = _doubled(value, direction * (BIG_DOUBLINGS if big else 1))
    elif field.kind in {Kind.INTEGER, Kind.NUMBER}:
        after = value + direction * field.step * (BIG_STEPS if big else 1)
    else:
        return None
    lowest = -math.inf if field.minimum is None else field.minimum
    highest = math.inf if field.maximum is None else field.maximum
    return _number(min(max(after, lowest), highest))


def position(field: Field, chosen: Chosen | None = None) -> float | None:
    """Return where the value lies between the ends of its range, 0 to 1, None if it has no range."""
    value = field.value if field.value is not None else chosen.value if chosen else None
    if value is None or field.minimum is None or field.maximum is None or field.maximum <= field.minimum:
        return None
    low, high = field.minimum, field.maximum
    if field.kind is Kind.POWER_OF_TWO:
        low, high, value = (math.log2(max(number, 1)) for number in (low, high, value))
    return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else None


def _next_choice(field: Field, direction: int, chosen: Chosen | None) -> str | None:
    choices = (AUTO, *field.choices) if field.can_be_auto else field.choices
    if not choices:
        return None
    current = AUTO if field.is_auto else field.text
    if current not in choices:
        current = chosen.text if chosen and chosen.text in choices else choices[0]
    return choices[(choices.index(current) + direction) % len(choices)]


def _next_size(value: float, places: int, sizes: Sequence[int]) -> str:
    """Return the size that many places further in a list that need not hold the value itself."""
    before, after = [size for size in sizes if size < value], [size for size in sizes if size > value]
    if places > 0:
        return _number(after[min(places, len(after)) - 1] if after else value)
    return _number(before[max(places, -len(before))] if before else value)


def _doubled(value: float, doublings: int) -> float:
    """Return the power of two that many doublings away, counted from the nearest one on the way."""
    if value < 1:
        return 1
    exponent = math.log2(value)
    start = math.floor(exponent) if doublings > 0 else math.ceil(exponent)
    return float(2 ** max(start + doublings, 0))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"
