"""What rules excluded from a search, as a text over the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity_tui.tui.screens.find.progress import spaced
from capacity_tui.tui.terminal.text import Line, Span, line, wrap

if TYPE_CHECKING:
    from capacity_tui.tui.found import Found


def rule_lines(found: Found | None, width: int) -> list[Line]:
    """Return every rule that excluded something, with how much and an example."""
    if found is None or not found.excluded:
        return [line(Span("No rule excluded anything.", "value"))]
    size = max(len(spaced(one.count)) for one in found.excluded)
    lines: list[Line] = []
    for one in found.excluded:
        first, *rest = wrap(one.rule, max(width - size - 2, 1)) or [""]
        lines.append(line(Span(f"{spaced(one.count):>{size}}  ", "best"), Span(first, "value")))
        lines += [line(Span(" " * (size + 2) + text, "value")) for text in rest]
        example = wrap(f"such as {one.example}", max(width - size - 2, 1)) if one.example else []
        lines += [line(Span(" " * (size + 2) + text, "dim")) for text in example]
    return lines
