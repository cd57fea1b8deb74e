"""Axes of a search as people type them: a field with values, or with a range that the field's metadata fill."""

from __future__ import annotations

import math
from collections.abc import Iterator

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.choose.space.grid import Axis
from capacity_tui.engine.choose.space.open_axes import choices_of
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.plan import all_fields, field_path, field_value
from capacity_tui.engine.schema import AUTO, Knob

MOST_VALUES = 100_000
"""Values of one axis: more are a slip of the pen."""
ANY = "any"
_BETWEEN = ".."
_EXAMPLE = "write KEY=V1,V2 or KEY=LO..HI or KEY=LO..HI:STEP, such as training.micro_batch=1..8"


def parse_axis(text: str, catalog: Catalog | None = None) -> Axis:
    """Return the axis that a text says: ``KEY=V1,V2``, ``KEY=LO..HI`` or ``KEY=LO..HI:STEP``, ``KEY=any`` for a choice.

    A range steps as the field does: by doubling, through whole numbers, or through its choices. ``KEY`` is a plan key,
    or the end of one where no other ends so.

    Raises:
        PlanError: it is no axis, there is no such field, or it does not take a value.
    """
    facts = catalog or load_catalog()
    name, equals, written = text.partition("=")
    if not equals or not name.strip() or not written.strip():
        raise PlanError("not an axis", repr(text)[:80], _EXAMPLE)
    path = field_path(name.strip())
    values = tuple(dict.fromkeys(_values(path, written.strip(), facts)))
    if not values:
        raise PlanError("no values", repr(written)[:80], _EXAMPLE, Place(field=path))
    if AUTO in values:
        raise PlanError("auto is no value to try", hint="leave the field out of what varies", place=Place(field=path))
    return Axis(path, values)


def _values(path: str, written: str, catalog: Catalog) -> Iterator[object]:
    """Yield the values of an axis, each as a plan would hold it."""
    choices = choices_of(path, catalog)
    for part in written.split(","):
        one = part.strip()
        if one == ANY and choices:
            yield from choices
        elif _BETWEEN in one:
            yield from _between(path, one, catalog)
        elif one:
            yield field_value(path, one, catalog)


def _between(path: str, written: str, catalog: Catalog) -> Iterator[object]:
    """Yield the values of a range, both ends among them."""
    ends, colon, step_text = written.partition(":")
    low, high = (field_value(path, end.strip(), catalog) for end in ends.split(_BETWEEN, 1))
    known = all_fields().get(path)
    choices = choices_of(path, catalog)
    if low in choices and high in choices and not colon:
        first, last = choices.index(low), choices.index(high)
        if first > last:
            raise PlanError("the range ends before it begins", written, _EXAMPLE, Place(field=path))
        yield from choices[first : last + 1]
        return
    if not isinstance(low, int | float) or not isinstance(high, int | float) or isinstance(low, bool):
        raise PlanError("no range of words", repr(written)[:80], "name the values, as KEY=V1,V2", Place(field=path))
    if low > high:
        raise PlanError("the range ends before it begins", written, _EXAMPLE, Place(field=path))
    whole = isinstance(low, int) and isinstance(high, int)
    knob = None if known is None else known.knob
    if not colon and knob is not None and knob.kind == "power-of-two":
        yield from _doubling(low, high)
        return
    yield from _stepping(path, written, (low, high), step_text if colon else None, knob, whole)


def _doubling(low: float, high: float) -> Iterator[object]:
    """Yield the lower end, its double and so on, and the upper end."""
    value = low
    while value < high:
        yield value
        value = 2 * value if value > 0 else 1
    yield high


def _stepping(
    path: str, written: str, ends: tuple[float, float], step_text: str | None, knob: Knob | None, whole: bool
) -> Iterator[object]:
    """Yield the values from one end to the other by a step: as typed, else as the field steps."""
    low, high = ends
    step = knob.step if knob is not None else 1.0
    if step_text is not None:
        try:
            step = float(step_text)
        except ValueError:
            raise PlanError("not a step", repr(step_text)[:40], _EXAMPLE, Place(field=path)) from None
    if not (math.isfinite(step) and step > 0):
        raise PlanError("not a step", repr(step_text)[:40], "give a number above 0", Place(field=path))
    if (high - low) / step >= MOST_VALUES:
        allowed = f"{MOST_VALUES:,} at most: take a larger step"
        raise PlanError("too many values", written, allowed, Place(field=path))
    for number in range(math.floor((high - low) / step + 1e-9) + 1):
        value = low + number * step
        yield round(value) if whole and float(value).is_integer() else float(f"{value:.12g}")
