"""Parts of reports as Rich tables and styled lines: lists that fit the width, and names beside values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from capacity_tui.engine.present import CodePart, Part, SectionsPart, TablePart, TextPart
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.verdict import Verdict

_STYLES = {
    "plain": "",
    "item": "",
    "strong": "bold",
    "quiet": "dim",
    "good": "bold green",
    "warn": "bold yellow",
    "bad": "bold red",
    "dim": "yellow",
}
_VERDICTS = {verdict.words: _STYLES[verdict.tone] for verdict in Verdict}  # Styles of cells that are a verdict
_GAP = 2  # What the table leaves between two columns
_LONGEST_WORD = 16  # Characters of a word that are kept together if that is possible
_INDENT = 4
_NARROWEST_NAME = 24  # Cells below which names of figures do not fold further
_RANGE = re.compile(r"\d.* to .*\d")


@dataclass(frozen=True)
class Listing:
    """Rows of cells: columns that have no room stand by their names on a line below each row.

    Those on the right give way first, but none that is to stay. Where none is said to, all but the first and numbers
    fold their words before. Lists that are looked through keep one line a row: theirs are left out, and it says so.
    """

    part: TablePart

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the columns that have room, and the others below each row or by their names."""
        shown = self._shown(options.max_width)
        part = self.part
        below = [column for column in range(len(part.heads)) if column not in shown and column not in part.spare]
        if not below or part.is_list:
            yield self._grid(shown, part.rows)
        else:
            yield from self._stacked(shown, below, options.max_width)
        if below and part.is_list:
            yield Text(f"no room for: {', '.join(part.heads[column] for column in below)}", style="dim")

    def _stacked(self, shown: Sequence[int], below: Sequence[int], width: int) -> RenderResult:
        """Yield the rows, each with the cells of other columns below it."""
        widths = self._widths(shown, width)
        yield self._grid(shown, (), widths)
        for row in self.part.rows:
            yield self._grid(shown, (row,), widths, has_heads=False)
            others = (f"{self.part.heads[column]} {row[column]}".strip() for column in below if row[column].strip())
            if text := ", ".join(others):
                yield Padding(Text(text, style="dim"), (0, 0, 0, _INDENT))

    def _shown(self, width: int) -> list[int]:
        columns = list(range(len(self.part.heads)))
        sizes, spare = self._sizes(columns), self.part.spare
        leaving = [*sorted(spare, reverse=True)]
        kept = self.part.kept or (0, 1)
        leaving += [column for column in reversed(columns) if column not in kept and column not in spare]
        for column in leaving:
            if sum(sizes[shown] + _GAP for shown in columns) <= width:
                break
            columns.remove(column)
        return columns

    def _sizes(self, columns: Sequence[int]) -> list[int]:
        """Return the cells that each column needs at least."""
        return [max(map(self._least if self._may_fold(column) else len, self._texts(column))) for column in columns]

    def _widths(self, shown: Sequence[int], width: int) -> dict[int, int]:
        """Return how wide columns are: what is left of the width goes to those whose words fold, from the left."""
        widths = dict(zip(shown, self._sizes(shown), strict=True))
        left = width - sum(size + _GAP for size in widths.values())
        for column in shown:
            more = max(min(max(map(len, self._texts(column))) - widths[column], left), 0)
            widths[column] += more
            left -= more
        return widths

    def _texts(self, column: int) -> Iterable[str]:
        return (self.part.heads[column], *(row[column] for row in self.part.rows))

    def _may_fold(self, column: int) -> bool:
        return not self.part.kept and column not in self.part.right and (column > 0 or len(self.part.heads) == 1)

    @staticmethod
    def _least(text: str) -> int:
        """Return the width of the longest word, which folds too where it is very long."""
        return min(max(map(len, text.split()), default=0), _LONGEST_WORD)

    def _grid(
        self,
        shown: Sequence[int],
        rows: Iterable[Sequence[str]],
        widths: Mapping[int, int] | None = None,
        *,
        has_heads: bool = True,
    ) -> Table:
        grid = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), show_header=has_heads)
        for column in shown:
            grid.add_column(
                Text(self.part.heads[column]),
                justify="right" if column in self.part.right else "left",
                no_wrap=column in self.part.right or (column == 0 and len(self.part.heads) > 1),
                overflow="ellipsis" if column in self.part.right else "fold",
                width=None if widths is None else widths[column],
            )
        for row in rows:
            grid.add_row(*(Text(row[column]) for column in shown))
        return grid


def pairs(entries: Iterable[tuple[str, str]]) -> Table:
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in entries:
        grid.add_row(Text(name, style="bold"), Text(value))
    return grid


def rich_parts(parts: Iterable[Part]) -> Iterator[RenderableType]:
    """Yield the parts of a report as tables and styled lines; pictures are for pages."""
    for part in parts:
        if isinstance(part, TextPart):
            yield _line(part)
        elif isinstance(part, SectionsPart):
            yield _Figures(part) if part.has_aside else _columns(part)
        elif isinstance(part, CodePart):
            yield Text(part.text)
        elif isinstance(part, TablePart):
            yield Listing(part)


def _line(part: TextPart) -> Text:
    text = Text(f"  - {part.text}" if part.tone == "item" else part.text, style=_STYLES[part.tone])
    return Text.assemble((part.subject, "bold"), ": ", text) if part.subject else text


@dataclass(frozen=True)
class _Figures:
    """Figures under titles, each with its aside in brackets; what has but an aside is left to pages.

    Ranges stay whole: where there is no room for all, long names fold before them.
    """

    part: SectionsPart

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the figures in columns as wide as there is room for."""
        rows = [row for section in self.part.sections for row in section.rows if row[1]]
        names, values = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
        ranges = max((len(aside) + 2 for *_, aside in rows if _RANGE.search(aside)), default=0)
        room = options.max_width - values - ranges - 2 * _GAP - _INDENT // 2
        grid = Table(box=None, show_header=False, pad_edge=False)
        grid.add_column(width=min(names, max(room, _NARROWEST_NAME)) + _INDENT // 2, overflow="fold")
        grid.add_column(no_wrap=True, justify="right", min_width=values)
        grid.add_column(style="dim", overflow="fold")
        for section in self.part.sections:
            if section.title:
                grid.add_row(Text(section.title, style="bold"))
            for label, value, aside in section.rows:
                if value:
                    name = label.lstrip()
                    indent = _INDENT // 2 + len(label) - len(name)
                    grid.add_row(
                        Padding(Text(name), (0, 0, 0, indent)), Text(value), Text(f"({aside})" if aside else "")
                    )
        yield grid


def _columns(part: SectionsPart) -> Table:
    """Return rows under titles in columns, a name above each."""
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    grid.add_column("", overflow="fold")
    for head in part.heads:
        # A folded figure reads as two.
        grid.add_column(Text(head), justify="right", no_wrap=True)
    for section in part.sections:
        if section.title:
            grid.add_row(Text(section.title, style="bold"))
        indent = "  " if section.title else ""
        for label, *cells in section.rows:
            grid.add_row(Text(f"{indent}{label}"), *(Text(cell, style=_VERDICTS.get(cell, "")) for cell in cells))
    return grid
