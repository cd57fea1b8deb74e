"""The values around that of a field, each with what the plan would be with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from capacity_tui.tui.shown.tried import Tried, short_value, time_beside
from capacity_tui.tui.terminal.text import Line, Span, line
from capacity_tui.tui.widgets.verdicts import mark_of

_INDENT = 2
_IMPOSSIBLE = "–"


def sweep_lines(
    values: Sequence[str], current: str, tried: Mapping[str, Tried], width: int, figures: bool = True
) -> list[Line]:
    """Return values in a line, with a verdict each, and below them memory and time where they have room.

    The lines are there before anything is known, so that nothing moves when it is.

    Args:
        values: what the field may be, in order.
        current: what it is.
        tried: what the plan would be, by value.
        width: cells from left to right.
        figures: whether there is room for more than the values.
    """
    marked = [(value, *_marked(value, value == current, tried.get(value))) for value in values]
    widest = max((cell_len(text) for _, text, _ in marked), default=0) + 1
    # Those around the current value stay where there is no room for all.
    while len(marked) > 1 and widest * len(marked) > width - _INDENT:
        at = next((index for index, entry in enumerate(marked) if entry[0] == current), 0)
        marked.pop(0 if at > len(marked) - 1 - at else -1)
    cell = (width - _INDENT) // max(len(marked), 1)
    first = line(" " * _INDENT, *(Span(text.ljust(cell), role) for _, text, role in marked))
    if not figures:
        return [first]
    known = [tried.get(value) for value, _, _ in marked]
    shares = ["" if each is None or each.share is None else f"{each.share:.0%}".replace("%", " %") for each in known]
    start = tried.get(current)
    times = ["" if each is None else each.time for each in known]
    if any(cell_len(time) >= cell for time in times):
        times = ["" if each is None else time_beside(each, start) for each in known]
    rows = [texts if all(cell_len(text) < cell for text in texts) else [] for texts in (shares, times)]
    lines = [line(" " * _INDENT, Span("".join(f" {text}"[:cell].ljust(cell) for text in row), "dim")) for row in rows]
    return [first, *lines]


def _marked(value: str, is_current: bool, tried: Tried | None) -> tuple[str, str]:
    """Return a value with its verdict, and the role of its colour."""
    mark = Span(" ", "dim") if tried is None else mark_of(tried.verdict)
    text = f"{short_value(value)}{mark.text}"
    return (f"[{text}]" if is_current else f" {text}"), mark.role
