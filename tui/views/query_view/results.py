"""The table of results: filtered by words, sorted by a column."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.units import parse_quantity
from capacity_tui.tui.shown.results import ResultRow, Results, TableColumn
from capacity_tui.tui.text import Line, Span, line, marked, wrap
from capacity_tui.tui.widgets.head import mark_of
from capacity_tui.tui.widgets.lines import GAP, fitted, joined, narrowed, widest
from capacity_tui.tui.widgets.panel import HeadedPanel

_MARKS = 6  # Cells in front of the first column: cursor, mark, verdict, front
_NARROWEST, _NAME = 8, 24


class ResultTable(HeadedPanel):
    """Rows that answer the question; keeps its cursor on a row while others come in."""

    NUMBER = 2
    TITLE = "Found"
    KEYS = "{found.take} apply · {found.pin} pin"

    def __init__(self) -> None:
        super().__init__()
        self.results: Results | None = None  # the last answer
        self.sorted_by: int | None = None  # index of a column, None for the goal
        self.is_reversed = False  # whether the worst come first
        self.filter = ""  # words that rows must have
        self.marked: set[tuple[tuple[str, str], ...]] = set()  # keys of rows that were marked
        self.taken: tuple[tuple[str, str], ...] = ()  # key of the row that was taken over last
        self._shown: tuple[int, ...] = ()
        self._widths: tuple[int, ...] = ()
        self._wanted: tuple[tuple[str, str], ...] = ()

    @property
    def row(self) -> ResultRow | None:
        if self.results is None or self.cursor >= len(self._shown):
            return None
        return self.results.rows[self._shown[self.cursor]]

    @property
    def shown(self) -> tuple[int, ...]:
        return self._shown

    @property
    def order(self) -> str:
        if self.results is None or self.sorted_by is None:
            return self.results.order if self.results else ""
        return self.results.columns[self.sorted_by].title

    def chosen(self) -> tuple[ResultRow, ...]:
        rows = () if self.results is None else tuple(row for row in self.results.rows if row.key in self.marked)
        return rows or ((self.row,) if self.row else ())

    def show_results(self, results: Results, message: str = "nothing found yet") -> None:
        """Show an answer; the cursor stays on its row if it was moved there."""
        if self.results is None or [one.title for one in self.results.columns] != [
            one.title for one in results.columns
        ]:
            self.sorted_by, self._widths = None, ()
        before = self.row
        self.results, self.is_old, self.message = results, False, message
        self._arrange(before)

    def show_old(self) -> None:
        self._widths = ()
        super().show_old()

    def show_message(self, message: str) -> None:
        self.results, self.message, self._shown = None, message, ()
        self.repaint()

    def narrow(self, text: str) -> None:
        self.filter = text.strip()
        self._start_over()

    def sort(self) -> None:
        """Sort by the next column; behind the last one is the goal."""
        if self.results is not None:
            after = 0 if self.sorted_by is None else self.sorted_by + 1
            self.sorted_by = after if after < len(self.results.columns) else None
            self.is_reversed = False
            self._start_over()

    def reverse(self) -> None:
        self.is_reversed = not self.is_reversed
        self._start_over()

    def mark(self) -> None:
        """Mark the row under the cursor or take its mark away, and go on to the next."""
        if self.row is not None:
            self.marked ^= {self.row.key}
            self.move(1)
            self.repaint()

    def move_to(self, index: int) -> None:
        """Put the cursor on a row, and keep it there while others come in; on the first it stays on the best."""
        super().move_to(index)
        self._wanted = self.row.key if self.row and self.cursor else ()

    def item_count(self) -> int:
        return len(self._shown)

    def edge(self) -> str:
        count, height = len(self._shown), self.size.height - 1
        return f"{self.top}–{min(self.top + height - 1, count)} of {count}" if count > height else ""

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the rows out under their heads, in the columns that there is room for."""
        results = self.results
        if results is None or not self._shown:
            nothing = f"no row matches {self.filter!r}" if results and results.rows else self.with_keys(self.message)
            return [line(Span(f" {row}", "dim")) for row in wrap(nothing, width - 2)], None
        self._widths = self._wide_enough(results)
        columns = results.columns
        # Names give way to numbers before a column is left out.
        least = [size if one.is_number else min(size, _NAME) for size, one in zip(self._widths, columns, strict=True)]
        indices = fitted(least, [column.rank for column in columns], width - _MARKS)
        widths = self._cut(indices, columns, width - _MARKS)
        right = [columns[number].is_number for number in indices]
        heads = joined([self._head(columns[number].title, number) for number in indices], widths, right)
        lines = [line(" " * _MARKS, Span("".join(heads), "heading"))]
        for position, index in enumerate(self._shown):
            row = results.rows[index]
            cells = joined([row.cells[number].text for number in indices], widths, right)
            lines.append(self._line(row, cells, is_front=index in results.front, at_cursor=position == self.cursor))
        return lines, self.around_cursor

    def _wide_enough(self, results: Results) -> tuple[int, ...]:
        """Return how wide the columns are; while rows come in they only get wider."""
        before = self._widths or (0,) * len(results.columns)
        return tuple(
            max(widest([row.cells[at].text for row in results.rows]), len(column.title) + 1, before[at])
            for at, column in enumerate(results.columns)
        )

    def _cut(self, indices: tuple[int, ...], columns: Sequence[TableColumn], room: int) -> tuple[int, ...]:
        """Return the widths of the columns that are shown, words cut where there is no room for all of them."""
        words = [number for number in indices if not columns[number].is_number]
        taken = sum(self._widths[number] + GAP for number in indices if number not in words)
        cut = narrowed([self._widths[number] for number in words], room - taken, _NARROWEST)
        by_index = dict(zip(words, cut, strict=True))
        return tuple(by_index.get(number, self._widths[number]) for number in indices)

    def _head(self, title: str, number: int) -> str:
        if number != self.sorted_by:
            return title
        return f"{title}{'▴' if self.is_reversed else '▾'}"

    def _line(self, row: ResultRow, cells: tuple[str, ...], *, is_front: bool, at_cursor: bool) -> Line:
        mark = mark_of(row.verdict)
        return marked(
            at_cursor,
            Span("▸" if row.key in self.marked else " ", "accent"),
            Span(mark.text, self.toned(mark.role)),
            Span(" ● " if is_front else "   ", self.toned("accent")),
            Span("".join(cells), self.toned("best" if row.key == self.taken else "value")),
        )

    def _start_over(self) -> None:
        before, self.cursor, self._wanted = self.row, 0, ()
        self._arrange(before)

    def _arrange(self, before: ResultRow | None) -> None:
        """Filter and sort; put the cursor back on the row that was under it, as soon as it is there."""
        if self.results is None:
            return
        columns, rows = self.results.columns, self.results.rows
        words = self.filter.casefold().split()
        kept = [index for index, row in enumerate(rows) if matches(row, columns, words, index in self.results.front)]
        self._shown = tuple(in_order(kept, rows, columns, self.sorted_by, self.is_reversed))
        position = next(
            (position for position, index in enumerate(self._shown) if rows[index].key == self._wanted), None
        )
        self.cursor = position if position is not None else max(0, min(self.cursor, len(self._shown) - 1))
        self.repaint()
        if self.row is not before:
            self.post_message(self.CursorMoved(self))


_FRONT = "front"  # A word that every row of the Pareto front has
_LAST = float("inf")
_LIMIT = re.compile(r"(?P<column>[^<>=]+)(?P<sign><=|>=|<|>|=)(?P<value>[^<>=]+)")

_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}


def matches(row: ResultRow, columns: Sequence[TableColumn], words: Iterable[str], is_front: bool) -> bool:
    """Return whether a row has all words, in lower case, in its cells, its verdict or what it sets.

    A word such as ``$/h<20`` limits the numbers of a column; ``risk=low`` says what is in it.
    """
    text = " ".join((*(cell.text for cell in row.cells), *row.about, row.verdict.words, _FRONT if is_front else ""))
    return all(_keeps(row, columns, word) or word in text.casefold() for word in words)


def _keeps(row: ResultRow, columns: Sequence[TableColumn], word: str) -> bool:
    """Return whether a word is a limit, and the row keeps it."""
    limit = _LIMIT.fullmatch(word)
    if limit is None:
        return False
    wanted, value = limit["column"], limit["value"]
    titles = [column.title.casefold().replace(" ", "") for column in columns]
    number = next((number for number, title in enumerate(titles) if title.startswith(wanted)), None)
    if number is None:
        return False
    cell = row.cells[number]
    try:
        wanted_number = parse_quantity(value, columns[number].unit)
    except CapacityError:
        return limit["sign"] == "=" and cell.text.casefold().startswith(value)
    return cell.number is not None and _SIGNS[limit["sign"]](cell.number, wanted_number)


def in_order(
    kept: Sequence[int],
    rows: Sequence[ResultRow],
    columns: Sequence[TableColumn],
    sorted_by: int | None,
    is_reversed: bool,
) -> list[int]:
    """Return indices of rows in order: as they were found, or by a column with the better ones first.

    What is not known stands last either way.
    """
    if sorted_by is None:
        order = list(kept)
        return order[::-1] if is_reversed else order
    sign = -1.0 if (columns[sorted_by].better > 0) != is_reversed else 1.0

    def by(index: int) -> tuple[bool, float]:
        number = rows[index].cells[sorted_by].number
        return number is None, _LAST if number is None else sign * number

    if columns[sorted_by].is_number or any(rows[index].cells[sorted_by].number is not None for index in kept):
        return sorted(kept, key=by)
    return sorted(kept, key=lambda index: rows[index].cells[sorted_by].text, reverse=is_reversed)
