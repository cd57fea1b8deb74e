"""Plain Rich tables: aligned columns, lists that lose columns where room is short, and names beside values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from capacity_tui.engine.api import Part, TextPart

_STYLES = {"plain": "", "strong": "bold", "quiet": "dim"}
# What the table leaves between two columns.
_GAP = 2


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> Table:
    """Return a plain table; the columns whose numbers are in ``right`` are flush right."""
    found = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    flush = set(right)
    for number, head in enumerate(heads):
        found.add_column(
            Text(head),
            justify="right" if number in flush else "left",
            no_wrap=number in flush or (number == 0 and len(heads) > 1),
            overflow="fold",
        )
    for row in rows:
        found.add_row(*(Text(cell) for cell in row))
    return found


@dataclass(frozen=True)
class Listing:
    """Many rows of short cells: where not all columns have room, those on the right are left out, and it says so.

    Attributes:
        heads: names of the columns.
        rows: their cells.
        right: numbers of the columns that are flush right.
        kept: numbers of the columns that always stay.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int]
    kept: frozenset[int]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the columns that have room, and the names of the others."""
        shown = self._shown(options.max_width)
        right = (place for place, column in enumerate(shown) if column in self.right)
        yield table([self.heads[column] for column in shown], self._cells(shown), right)
        missing = [head for column, head in enumerate(self.heads) if column not in shown]
        if missing:
            yield Text(f"no room for: {', '.join(missing)}", style="dim")

    def _shown(self, width: int) -> list[int]:
        columns = list(range(len(self.heads)))
        sizes = [max(map(len, (head, *(row[place] for row in self.rows)))) for place, head in enumerate(self.heads)]
        optional = [column for column in columns if column not in self.kept]
        while optional and sum(sizes[column] + _GAP for column in columns) > width:
            columns.remove(optional.pop())
        return columns

    def _cells(self, shown: Sequence[int]) -> Iterable[Sequence[str]]:
        return ([row[column] for column in shown] for row in self.rows)


def pairs(entries: Iterable[tuple[str, str]]) -> Table:
    """Return names and values, one pair a line."""
    found = Table(box=None, show_header=False, pad_edge=False)
    found.add_column(no_wrap=True)
    found.add_column(overflow="fold")
    for name, value in entries:
        found.add_row(Text(name, style="bold"), Text(value))
    return found


def rich_parts(parts: Iterable[Part]) -> Iterator[RenderableType]:
    """Yield the parts of a report as tables and styled lines."""
    for part in parts:
        if isinstance(part, TextPart):
            yield Text(part.text, style=_STYLES[part.tone])
        elif part.kept:
            yield Listing(part.heads, part.rows, frozenset(part.right), frozenset(part.kept))
        else:
            yield table(part.heads, part.rows, part.right)
