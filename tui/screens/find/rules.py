"""What rules excluded from a search, as a text over the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from capacity_tui.tui.screens.asking.progress import spaced
from capacity_tui.tui.terminal.text import Line, Span, line, wrap

if TYPE_CHECKING:
    from capacity_tui.tui.shown.found import ExcludedPlans, Found


def rule_lines(found: Found | None, width: int) -> list[Line]:
    """Return every rule and limit that excluded something, with how much and an example."""
    if found is None or not (found.excluded or found.missed):
        return [line(Span("Nothing was excluded.", "value"))]
    headed = (("Rules of layouts and software exclude", found.excluded), ("Memory and limits exclude", found.missed))
    lines: list[Line] = []
    for heading, excluded in headed:
        if excluded:
            lines += [*([line()] if lines else []), line(Span(heading, "heading")), *_lines(excluded, width)]
    return lines


def nothing_found(found: Found) -> str:
    """Return why there are no rows: what excluded most."""
    most = next(iter((*found.missed, *found.excluded)), None)
    why = f": {spaced(most.count)} times {most.rule}" if most else ""
    return f"nothing found{why}; r tells all"


def _lines(excluded: Sequence[ExcludedPlans], width: int) -> Iterator[Line]:
    size = max(len(spaced(one.count)) for one in excluded)
    room, indent = max(width - size - 2, 1), " " * (size + 2)
    for one in excluded:
        first, *rest = wrap(one.rule, room) or [""]
        yield line(Span(f"{spaced(one.count):>{size}}  ", "best"), Span(first, "value"))
        yield from (line(Span(indent + text, "value")) for text in rest)
        yield from (line(Span(indent + text, "dim")) for text in wrap(f"such as {one.example}", room) if one.example)
