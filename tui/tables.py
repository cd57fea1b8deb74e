"""Plain Rich tables: aligned columns, and names beside values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> Table:
    """Return a plain table; the columns whose numbers are in ``right`` are flush right."""
    found = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    flush = set(right)
    for number, head in enumerate(heads):
        found.add_column(
            Text(head),
            justify="right" if number in flush else "left",
            no_wrap=number == 0 or number in flush,
            overflow="fold",
        )
    for row in rows:
        found.add_row(*(Text(cell) for cell in row))
    return found


def pairs(entries: Iterable[tuple[str, str]]) -> Table:
    """Return names and values, one pair a line."""
    found = Table(box=None, show_header=False, pad_edge=False)
    found.add_column(no_wrap=True)
    found.add_column(overflow="fold")
    for name, value in entries:
        found.add_row(Text(name, style="bold"), Text(value))
    return found
