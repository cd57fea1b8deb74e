"""Parts of a report as lines of the screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from rich.cells import cell_len

from capacity_tui.engine.present import Part, TablePart, TextPart
from capacity_tui.tui.shown.measured import Load
from capacity_tui.tui.terminal.text import Line, Span, fit, fold, left, line, right
from capacity_tui.tui.widgets.gauge import gauge

_ROLES = {"plain": "value", "strong": "heading", "quiet": "dim"}
_GAP = "  "
_BAR = 30
_HIGH, _FULL = 0.8, 0.95
"""Shares from which a bar warns."""
_NARROWEST = 8
"""A column is not made narrower than this where any other can be."""


def report_lines(parts: Iterable[Part], width: int) -> list[Line]:
    """Return parts laid out for a width: long texts are broken, cells of tables too."""
    lines: list[Line] = []
    for part in parts:
        if isinstance(part, TextPart):
            lines += [line(Span(text, _ROLES[part.tone])) for text in fold(part.text, width)]
        else:
            lines += _table_lines(part, width)
    return lines


def is_heading(shown: Line) -> bool:
    """Return whether a line begins a section; heads of tables do not."""
    return len(shown.spans) == 1 and shown.spans[0].role == _ROLES["strong"] and _GAP not in shown.plain.strip()


def load_lines(load: Iterable[Load], width: int) -> list[Line]:
    """Return how full and busy the machine is, with a bar each."""
    rows = tuple(load)
    label = max((cell_len(row.name) for row in rows), default=0)
    lines = [line(Span("Now:", "heading"))] if rows else []
    for row in rows:
        role = "bad" if row.share >= _FULL else "warn" if row.share >= _HIGH else "good"
        bar = Span(gauge(row.share, min(_BAR, max(width - label - 20, 4))), role)
        parts = (Span(f"  {row.name:<{label}}  ", "label"), bar, Span(f" {row.text}", "value"))
        lines.append(fit(line(*parts), width))
    return lines


def _table_lines(table: TablePart, width: int) -> Iterator[Line]:
    widths = _widths(table, width)
    yield from _row_lines(table.heads, widths, table.right, "heading")
    yield line(Span("─" * min(sum(widths) + len(_GAP) * (len(widths) - 1), width), "value"))
    for row in table.rows:
        yield from _row_lines(row, widths, table.right, "value")


def _widths(table: TablePart, width: int) -> list[int]:
    """Return how wide the columns are: as wide as their cells, the widest ones less where room is short."""
    widths = [max(map(cell_len, column), default=0) for column in zip(table.heads, *table.rows, strict=True)]
    room = max(width - len(_GAP) * (len(widths) - 1), len(widths))
    while sum(widths) > room:
        # First those whose text reads well in several lines, then any.
        broken = [
            place for place, size in enumerate(widths) if place and place not in table.right and size > _NARROWEST
        ]
        widest = max(broken or range(len(widths)), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _row_lines(cells: Sequence[str], widths: Sequence[int], flush_right: Sequence[int], role: str) -> Iterator[Line]:
    folded = [fold(cell, size) for cell, size in zip(cells, widths, strict=True)]
    for pieces in zip_longest(*folded, fillvalue=""):
        placed = ((right if place in flush_right else left)(piece, widths[place]) for place, piece in enumerate(pieces))
        yield line(Span(_GAP.join(placed), role))
