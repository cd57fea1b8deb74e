"""What one step up or down makes of a value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

AUTO: Final = "auto"
ROUND: Final = "one-two-five"
"""The kind of numbers that are stepped through 1, 2, 5, 10, 20, 50 and so on; a big step is a factor of ten."""
_ROUND_DIGITS = (1, 2, 5)
_SAME = 1e-9  # Numbers that differ by no more than this share of them are the same
BIG_DOUBLINGS = 3
BIG_STEPS = 10
MOST_AROUND = 6  # So many values are listed at most
_STEPS_A_SIDE = 2


class Start(Protocol):
    """What an automatic value starts from: text and number."""

    @property
    def text(self) -> str:
        """The value in words."""

    @property
    def value(self) -> float | None:
        """The value as a number, where it is one."""


class Scale(Protocol):
    """What a field's metadata say of the steps of a number."""

    @property
    def kind(self) -> str:
        """How it moves: ``power-of-two``, ``one-two-five``, ``integer``, ``number``; others have no such step."""

    @property
    def minimum(self) -> float | None:
        """Smallest value allowed."""

    @property
    def maximum(self) -> float | None:
        """Largest value allowed."""

    @property
    def step(self) -> float:
        """One step of an integer or number."""


class Steppable(Start, Scale, Protocol):
    """What a step needs of a field: its value, and what the field's metadata say of steps; it may be a ``choice``."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of a choice."""

    @property
    def can_be_auto(self) -> bool:
        """Whether the modes may choose the value."""

    @property
    def is_auto(self) -> bool:
        """Whether they do."""


def stepped(
    field: Steppable, direction: int, big: bool = False, chosen: Start | None = None, sizes: Sequence[int] = ()
) -> str | None:
    """Return the text of the value one step further.

    Args:
        direction: 1 for up, -1 for down.
        chosen: where an automatic value starts from.
        sizes: the values a step may land on, in order; none for any.

    Returns:
        The text to give to the plan, or None where there is no step.
    """
    if field.kind == "choice":
        return _next_choice(field, direction, chosen)
    value = field.value
    if value is None and chosen is not None:
        value = chosen.value
    if value is None:
        return None if field.minimum is None else _number(field.minimum)
    return _stepped_from(field, value, direction, big, sizes)


def around(
    field: Steppable, chosen: Start | None = None, sizes: Sequence[int] = (), steps_a_side: int = _STEPS_A_SIDE
) -> tuple[str, ...]:
    """Return the values that steps lead to from a field's own, in order, its own among them.

    Args:
        chosen: where an automatic value starts from.
        sizes: the values a step may land on, in order; none for any.
        steps_a_side: steps down and up; where there are fewer one way, there are more the other.

    Returns:
        The texts to give to the plan, of many choices those around its own; none where there is no step.
    """
    if field.kind == "choice":
        here = field.choices.index(field.text) if field.text in field.choices else 0
        start = min(max(here - MOST_AROUND // 2, 0), max(len(field.choices) - MOST_AROUND, 0))
        return field.choices[start : start + MOST_AROUND]
    value = field.value if field.value is not None else chosen.value if chosen else None
    if value is None:
        return ()
    below, above = (list(_walked(field, value, direction, sizes, 2 * steps_a_side)) for direction in (-1, 1))
    more = 2 * steps_a_side - min(len(above), steps_a_side), 2 * steps_a_side - min(len(below), steps_a_side)
    walked = (*reversed(below[: more[0]]), _number(value), *above[: more[1]])
    return walked if len(walked) > 1 else ()


def _walked(field: Steppable, value: float, direction: int, sizes: Sequence[int], most: int) -> Iterator[str]:
    """Yield the values of the next steps in one direction, as long as they lead anywhere."""
    for _ in range(most):
        text = _stepped_from(field, value, direction, False, sizes)
        if text is None or float(text) == value:
            return
        yield text
        value = float(text)


def _stepped_from(field: Steppable, value: float, direction: int, big: bool, sizes: Sequence[int]) -> str | None:
    if sizes:
        return _next_size(value, direction * (BIG_DOUBLINGS if big else 1), sizes)
    after = next_number(field, value, direction, big)
    return None if after is None else _number(after)


def next_number(scale: Scale, value: float, direction: int, big: bool = False) -> float | None:
    """Return the number one step further, the end of the range at most; None where numbers have no step.

    Args:
        scale: what is known of the field's steps.
        direction: 1 for up, -1 for down.
    """
    if scale.kind == "power-of-two":
        after = doubled(value, direction * (BIG_DOUBLINGS if big else 1))
    elif scale.kind == ROUND:
        after = value
        for _ in range(len(_ROUND_DIGITS) if big else 1):
            after = _next_round(after, direction)
    elif scale.kind in {"integer", "number"}:
        after = value + direction * scale.step * (BIG_STEPS if big else 1)
    else:
        return None
    lowest = -math.inf if scale.minimum is None else scale.minimum
    highest = math.inf if scale.maximum is None else scale.maximum
    return min(max(after, lowest), highest)


def share_of_range(field: Steppable, chosen: Start | None = None) -> float | None:
    """Return where the value lies between the ends of its range, 0 to 1, None if it has no range."""
    value = field.value if field.value is not None else chosen.value if chosen else None
    if value is None or field.minimum is None or field.maximum is None or field.maximum <= field.minimum:
        return None
    low, high = field.minimum, field.maximum
    if field.kind in {"power-of-two", ROUND}:
        low, high, value = (math.log2(max(number, 1)) for number in (low, high, value))
    return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else None


def _next_choice(field: Steppable, direction: int, chosen: Start | None) -> str | None:
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


def doubled(value: float, doublings: int) -> float:
    """Return the power of two that many doublings away, counted from the nearest one on the way."""
    if value < 1:
        return 1
    exponent = math.log2(value)
    start = math.floor(exponent) if doublings > 0 else math.ceil(exponent)
    return float(2 ** max(start + doublings, 0))


def _next_round(value: float, direction: int) -> float:
    """Return the nearest of 1, 2, 5, 10, 20, 50 and so on above or below a number."""
    if value <= 0:
        return 1.0
    power = math.floor(math.log10(value))
    numbers = [digit * 10.0**exponent for exponent in range(power - 1, power + 2) for digit in _ROUND_DIGITS]
    if direction > 0:
        return min(number for number in numbers if number > value * (1 + _SAME))
    return max(number for number in numbers if number < value * (1 - _SAME))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"
