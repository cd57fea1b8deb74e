"""Tables made for the command line, as lines of the screen."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from rich.console import Console, RenderableType
from rich.style import Style

from capacity_tui.tui.terminal.text import Line, Span

_LEAST_WIDTH = 20
"""Tables lay themselves out badly below this; lines are cut instead."""


def rich_lines(parts: Iterable[RenderableType], width: int) -> list[Line]:
    """Return tables and texts laid out for a width: bold as headings, dim as dim, the rest as values."""
    nowhere = StringIO()
    console = Console(file=nowhere, width=max(width, _LEAST_WIDTH), markup=False, highlight=False, emoji=False)
    return [
        Line(tuple(Span(segment.text, _role(segment.style)) for segment in segments))
        for part in parts
        for segments in console.render_lines(part, pad=False)
    ]


def _role(style: Style | None) -> str:
    if style is None:
        return "value"
    return "heading" if style.bold else "dim" if style.dim else "value"
