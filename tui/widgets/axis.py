"""Texts below or beside a picture, where they have room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from capacity_tui.tui.terminal.text import Line, Span


class Tick(NamedTuple):
    """One text of an axis.

    Attributes:
        share: where it stands, 0 at the start and 1 at the end.
        text: the text.
        is_here: whether it stands there in any case, and stands out.
    """

    share: float
    text: str
    is_here: bool = False


def axis_line(ticks: Sequence[Tick], width: int) -> Line:
    """Return texts in one line, each below its place; of those that would touch, the first, or the one that is here."""
    taken: list[tuple[int, Tick]] = []
    for tick in sorted(ticks, key=lambda each: not each.is_here):
        middle = round(tick.share * (width - 1))
        size = cell_len(tick.text)
        left = max(0, min(middle - size // 2, width - size))
        if all(left + size < start or left > start + cell_len(other.text) for start, other in taken):
            taken.append((left, tick))
    spans: list[Span] = []
    at = 0
    for left, tick in sorted(taken):
        spans += [Span(" " * (left - at)), Span(tick.text, "key" if tick.is_here else "dim")]
        at = left + cell_len(tick.text)
    return Line((*spans, Span(" " * (width - at))))


def beside(parts: Sequence[Line], gap: int) -> Line:
    """Return lines as one, with a gap between two."""
    spans = list(parts[0].spans)
    for part in parts[1:]:
        spans += [Span(" " * gap), *part.spans]
    return Line(tuple(spans))
