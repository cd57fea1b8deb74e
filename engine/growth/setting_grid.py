"""Grids of settings as people type them, for commands that take any names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.growth.measuring import Measuring, Setting

DEFAULT_GRID = ("depth=3..10", "chunk=5..25:5", "samples=100,300,1000")
"""What a hierarchy of patterns is tried with where nobody says: levels, tokens of a chunk, and short runs."""
MOST_SETTINGS = 10_000
_BETWEEN = ".."
_EXAMPLE = "write KEY=V1,V2 or KEY=LO..HI or KEY=LO..HI:STEP, such as depth=3..10"


def parse_grid(texts: Sequence[str], measuring: Measuring) -> tuple[Setting, ...]:
    """Return every setting of a grid, the last key changing first.

    Args:
        texts: a key with its values each; without any those of the default grid that the command takes.
        measuring: the command, in which each key has its place.

    Raises:
        CapacityError: a text is no key with values, a key is given twice, nothing in the command takes it, or there are
            too many settings.
    """
    axes = dict(map(_axis, texts or DEFAULT_GRID))
    if len(axes) < len(texts):
        raise CapacityError("a key is given twice", hint="give all of its values at once, with commas")
    unused = measuring.missing(tuple(axes))
    if not texts:
        axes = {key: values for key, values in axes.items() if key not in unused}
    elif unused:
        missing = " and ".join(f"{{{key}}}" for key in unused)
        raise CapacityError(f"nothing in the command takes {missing}", hint=f"write {missing} where its value goes")
    if not axes:
        raise CapacityError(
            "nothing in the command changes", hint="write {depth} where a value goes, and --grid depth=3..10"
        )
    if math.prod(map(len, axes.values())) > MOST_SETTINGS:
        raise CapacityError("too many settings", hint=f"{MOST_SETTINGS:,} at most: take fewer values")
    return tuple(dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))


def _axis(text: str) -> tuple[str, tuple[str, ...]]:
    key, equals, written = text.partition("=")
    values = tuple(dict.fromkeys(itertools.chain.from_iterable(_values(part.strip()) for part in written.split(","))))
    if not equals or not key.strip() or not values:
        raise CapacityError(f"{text!r:.60} is no key with values", hint=_EXAMPLE)
    return key.strip(), values


def _values(text: str) -> Iterator[str]:
    """Yield one value, or those of a range, both ends among them where the step meets them."""
    if _BETWEEN not in text:
        yield from [text] if text else []
        return
    ends, _, step_text = text.partition(":")
    try:
        low, high = (float(end) for end in ends.split(_BETWEEN, 1))
        step = float(step_text or 1)
    except ValueError:
        raise CapacityError(f"{text!r:.60} is no range", hint=_EXAMPLE) from None
    if not (step > 0 and low <= high and math.isfinite(high - low) and (high - low) / step < MOST_SETTINGS):
        raise CapacityError(f"{text!r:.60} is no range", hint=_EXAMPLE)
    for number in range(math.floor((high - low) / step + 1e-9) + 1):
        yield f"{low + number * step:.12g}"
