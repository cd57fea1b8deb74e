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
_LONGEST_WORD = 16
"""Characters of a word that are kept together if that is possible."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> Listing:
    """Return a plain table; the columns whose numbers are in ``right`` are flush right and stay whole.

    Other columns but the first fold their words; where that is not enough, columns on the right are left out.
    """
    return Listing(heads, list(rows), frozenset(right), frozenset({0, 1}), folds=True)


@dataclass(frozen=True)
class Listing:
    """Rows of cells: where not all columns have room, those on the right are left out, and it says so.

    Attributes:
        heads: names of the columns.
        rows: their cells.
        right: numbers of the columns that are flush right.
        kept: numbers of the columns that always stay.
        folds: whether words fold within their columns before any is left out.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int]
    kept: frozenset[int]
    folds: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the columns that have room, and the names of the others."""
        shown = self._shown(options.max_width)
        yield self._grid(shown)
        missing = [head for column, head in enumerate(self.heads) if column not in shown]
        if missing:
            yield Text(f"no room for: {', '.join(missing)}", style="dim")

    def _shown(self, width: int) -> list[int]:
        columns = list(range(len(self.heads)))
        sizes = [max(map(self._least if self._may_fold(column) else len, self._texts(column))) for column in columns]
        optional = [column for column in columns if column not in self.kept]
        while optional and sum(sizes[column] + _GAP for column in columns) > width:
            columns.remove(optional.pop())
        return columns

    def _texts(self, column: int) -> Iterable[str]:
        return (self.heads[column], *(row[column] for row in self.rows))

    def _may_fold(self, column: int) -> bool:
        return self.folds and column not in self.right and (column > 0 or len(self.heads) == 1)

    @staticmethod
    def _least(text: str) -> int:
        """Return the width of the longest word, which folds too where it is very long."""
        return min(max(map(len, text.split()), default=0), _LONGEST_WORD)

    def _grid(self, shown: Sequence[int]) -> Table:
        found = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        for column in shown:
            found.add_column(
                Text(self.heads[column]),
                justify="right" if column in self.right else "left",
                no_wrap=column in self.right or (column == 0 and len(self.heads) > 1),
                overflow="ellipsis" if column in self.right else "fold",
            )
        for row in self.rows:
            found.add_row(*(Text(row[column]) for column in shown))
        return found


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
