"""Panel 3: the plans side by side; rows are quantities, columns are plans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from capacity_tui.tui.store import Baseline
from capacity_tui.tui.text import MOVED, Line, Span, clip, left, line, right, wrap
from capacity_tui.tui.widgets.head import gauge, worded
from capacity_tui.tui.widgets.panel import Findable, Panel

if TYPE_CHECKING:
    from capacity_tui.tui.shown.comparison import Column, Comparison, Row

_DELTA, _MARK = 6, 2  # Cells of a difference, and of a mark, with a blank before them
_LONGEST_VALUE = 14
_NARROWEST = 9
_LONGEST_LABEL = 24
_SHORTEST_LABEL = 13
_GAUGE = 10
_SHORTEST_GAUGE = 4
_LEAST_PERCENT, _MOST_PERCENT, _TWICE = 0.5, 1000, 100
"""Differences below the first are not worth a number, from the second on nobody reads one."""
_COUNTED = ("/s", " tok", " requests", " GPU-h", " device-h")  # Units that labels name too
_LONG_TIME = re.compile(r"(\d{2,} (?:y|d|h|min)) \d+ (?:d|h|min|s)")  # A time whose smaller unit says little
_LEAST_COMPARED = 2  # Columns that can be compared with one another
_HEAD = 2  # Lines above the quantities: the names of the plans and their verdicts


class ComparisonTable(Panel):
    """The table of plans."""

    NUMBER = 3
    TITLE = "Plans"
    KEYS = "{plans.enter} explain · {baseline.column} baseline · {pin.toggle} pin · {plans.sort} sort"

    def __init__(self) -> None:
        super().__init__()
        self._comparison: Comparison | None = None
        self._mode = ""
        self._baseline = Baseline()

    @property
    def row(self) -> Row | None:
        rows = self._rows()
        return rows[self.cursor] if self.cursor < len(rows) else None

    @property
    def row_key(self) -> str:
        """The key of the quantity under the cursor, empty if there is none."""
        return self.row.key if self.row else ""

    def show_comparison(
        self, comparison: Comparison | None, column: Column | None, baseline: Baseline, stale: bool
    ) -> None:
        key = self.row_key
        self._comparison, self._baseline, self.is_old = comparison, baseline, stale
        self._mode = column.mode if column else ""
        rows = self._rows()
        self.cursor = next((index for index, row in enumerate(rows) if row.key == key), 0)
        self.repaint()

    def select(self, key: str) -> None:
        self.move_to(next((index for index, row in enumerate(self._rows()) if row.key == key), self.cursor))

    def about(self) -> tuple[str, str]:
        return (self.row.label, self.row.help) if self.row else ("", "")

    def findable(self) -> Sequence[Findable]:
        return [Findable(row.label, (row.key, row.brief), row.help) for row in self._rows()]

    def item_count(self) -> int:
        return len(self._rows())

    def item_at(self, index: int) -> int | None:
        item = index - _HEAD
        return item if 0 <= item < self.item_count() else None

    def pinned(self) -> int:
        return _HEAD

    def build(self, width: int) -> tuple[list[Line], range | None]:
        if self._comparison is None or not self._comparison.columns:
            return [line(Span("estimating…", "dim"))], None
        columns = self._columns_shown(width)
        label, cell = self._widths(width, columns)
        lines = [self._names(columns, label, cell), self._verdicts(columns, label, cell)]
        here = len(lines) + self.cursor
        rows = self._rows()
        for index, row in enumerate(rows):
            selected = index == self.cursor and self.is_current
            lines.append(self._row_line(row, columns, label, cell, selected))
        lines += self._note_lines(width)
        # What stands below the last quantity can only be reached with it.
        last = len(lines) if self.cursor == len(rows) - 1 else here + 1
        return lines, range(here, last)

    def summary(self) -> Line:
        column = self._chosen()
        if column is None:
            return line()
        first = f"  {column.rows[0].label} {column.rows[0].text}" if column.rows else ""
        return line(
            Span(f"{column.mode} ", "label"), worded(column.verdict, column.verdict_words), Span(first, "value")
        )

    def keys(self) -> str:
        chosen = self._chosen()
        is_pinned = chosen is not None and chosen.is_pinned
        return "{plans.enter} load · {pin.rename} rename · {pin.toggle} unpin" if is_pinned else self.KEYS

    def edge(self) -> str:
        remarks = self._comparison.remarks if self._comparison else ()
        if len(self._comparison.columns if self._comparison else ()) < _LEAST_COMPARED:
            return " · ".join(remarks)
        columns = self._columns_shown(self.size.width)
        if not _has_deltas(self._widths(self.size.width, columns)[1]):
            return ""
        if self._baseline.is_edit:
            return "▲▼ since the last edit"
        if self._baseline.pinned:
            return "deltas from the pinned numbers"
        return f"deltas from {self._baseline.mode}" if self._baseline.mode else ""

    def as_text(self) -> str:
        if self._comparison is None:
            return ""
        columns = self._comparison.columns
        cell = 2 + max((cell_len(row.text) for column in columns for row in column.rows), default=_LONGEST_VALUE)
        cell = max(cell, 2 + max(cell_len(worded(column.verdict, column.verdict_words).text) for column in columns))
        label = 2 + max(2 * row.indent + cell_len(row.label) for row in self._rows())
        names = " " * label + "".join(right(column.mode, cell) for column in columns)
        verdicts = left("verdict", label) + "".join(
            right(worded(column.verdict, column.verdict_words).text, cell) for column in columns
        )
        body = [
            left("  " * row.indent + row.label, label)
            + "".join(right(_text_of(column.row(row.key)), cell) for column in columns)
            for row in self._rows()
        ]
        return "\n".join([self._comparison.title, "", names, verdicts, *body]) + "\n"

    def _rows(self) -> list[Row]:
        if self._comparison is None:
            return []
        rows: dict[str, Row] = {}
        for column in self._comparison.columns:
            for row in column.rows:
                rows.setdefault(row.key, row)
        return list(rows.values())

    def _chosen(self) -> Column | None:
        columns = self._comparison.columns if self._comparison else ()
        return next((column for column in columns if column.mode == self._mode), None)

    def _columns_shown(self, width: int) -> tuple[Column, ...]:
        """Return all columns, or as many around the chosen one as have room side by side."""
        columns = self._comparison.columns if self._comparison else ()
        chosen = self._chosen()
        # The change that an edit made is worth more than the columns beside the chosen one.
        narrowest = self._needed(columns) if self._baseline.is_edit else _NARROWEST
        room = max((width - _SHORTEST_LABEL) // narrowest, 1)
        if chosen is None or len(columns) <= room:
            return columns
        first = min(max(columns.index(chosen) - room // 2, 0), len(columns) - room)
        return columns[first : first + room]

    def _widths(self, width: int, columns: tuple[Column, ...]) -> tuple[int, int]:
        """Return the widths of labels and cells: what they hold, or less of each where there is less room."""
        rows = self._rows()
        longest = max((2 * row.indent + cell_len(row.label) for row in rows), default=0) + 1
        briefest = max((2 * row.indent + cell_len(row.brief or row.label) for row in rows), default=0) + 1
        value = max((cell_len(row.text) for column in columns for row in column.rows), default=0) + 1
        cell = min(value, _LONGEST_VALUE) + _DELTA
        label = max(min(longest, _LONGEST_LABEL), _SHORTEST_LABEL)
        if label + cell * len(columns) > width:
            label = max(min(label, briefest, width // 3, width - self._needed(columns) * len(columns)), _SHORTEST_LABEL)
            cell = min(cell, (width - label) // max(len(columns), 1))
        return label, cell

    def _needed(self, columns: tuple[Column, ...]) -> int:
        """Return the cells that numbers take, with the change beside them that was made since, while that is shown."""
        rows = (row for column in columns for row in column.rows if row.value is not None)
        texts = (row.text.rpartition(" ")[0] if row.text.endswith(_COUNTED) else row.text for row in rows)
        return max(map(cell_len, texts), default=0) + 1 + (_DELTA if self._baseline.pinned else 0)

    def _names(self, columns: tuple[Column, ...], label: int, cell: int) -> Line:
        spans = [self._corner(columns, label)]
        for column in columns:
            chosen = column.mode == self._mode
            names = [f"[{name}]" if chosen else name for name in (column.head, column.mode, column.brief) if name]
            name = next((name for name in names if cell_len(name) < cell), names[-1])
            spans.append(Span(_placed(clip(name, cell - 1), cell), "accent" if chosen else "label"))
        return Line(tuple(spans))

    def _corner(self, columns: tuple[Column, ...], label: int) -> Span:
        """Return what stands before the names: that numbers are old, or which columns have no room."""
        every = self._comparison.columns if self._comparison else ()
        if self.is_old:
            return Span(left("updating…", label), "warn")
        if len(columns) == len(every):
            return Span(" " * label, "label")
        first = every.index(columns[0]) + 1
        return Span(left(f"{first}–{first + len(columns) - 1} of {len(every)}", label), "dim")

    def _verdicts(self, columns: tuple[Column, ...], label: int, cell: int) -> Line:
        spans = [Span(left("verdict", label), "label")]
        for column in columns:
            wordings = (column.verdict_words, column.verdict_brief or column.verdict.brief, column.verdict.brief)
            verdicts = [worded(column.verdict, words) for words in wordings]
            shown = next((verdict for verdict in verdicts if cell_len(verdict.text) < cell), verdicts[-1])
            spans.append(Span(_placed(shown.text, cell), self.toned(shown.role)))
        return Line(tuple(spans))

    def _note_lines(self, width: int) -> list[Line]:
        """Return what the chosen plan is short of, what to know before relying on it, and what would help it."""
        column = self._chosen()
        if column is None:
            return []
        why = worded(column.verdict, f"{column.mode}: {column.reason}")
        notes = [(why.text, why.role)] if column.reason else []
        remarks = self._comparison.remarks if self._comparison else ()
        notes += [(text, "label") for text in (*remarks, *column.about)]
        for note in column.notes:
            parts = (note.title, note.saves or note.detail)
            notes.append(("! " + ": ".join(part for part in parts if part), "warn"))
        return [line(Span(text, role)) for note, role in notes for text in wrap(note, width, "  ")]

    def _row_line(self, row: Row, columns: tuple[Column, ...], label: int, cell: int, selected: bool) -> Line:
        shown_rows = [column.row(row.key) for column in columns]
        deltas = [self._delta(row, column) for row, column in zip(shown_rows, columns, strict=True)]
        # A value is never cut for the difference beside it.
        values = (_short(_text_of(row), cell, is_short=True) for row in shown_rows)
        if not _has_deltas(cell) or any(cell_len(value) > cell - _DELTA - 1 for value in values):
            deltas = [("", "")] * len(columns)
        has_differences = any(delta for delta, _ in deltas)
        delta_width = _DELTA if _has_deltas(cell) else 0
        ends = [delta_width if row.share is not None else _after(delta) for delta, _ in deltas]
        rooms = [cell - end - 1 for end in ends]
        # Where a unit has no room in one column none has it, and the short label names it.
        is_short = any(cell_len(_text_of(row)) > room for row, room in zip(shown_rows, rooms, strict=True))
        has_no_room = is_short or 2 * row.indent + cell_len(row.label) >= label
        name = row.brief if has_no_room and row.brief else row.label
        spans = [Span(left("  " * row.indent + name, label), "label")]
        best = self._best(row.key)
        for one, (delta, tone), room in zip(shown_rows, deltas, rooms, strict=True):
            is_best = one is not None and best is not None and one.value == best
            text = _gauged(one, room) if one and one.share is not None else _short(_text_of(one), room, is_short)
            role = self.toned((one.role if one else "") or ("best" if is_best else "value"))
            if delta:
                # A mark stands where differences begin, or behind a text that goes on beyond that.
                size = cell - _DELTA if delta != MOVED else min(max(cell - _DELTA, cell_len(text) + 1), cell - _MARK)
                spans.append(Span(right(text, size), role))
                spans.append(Span(left(f" {delta}", cell - size), self.toned(tone)))
            else:
                # What is blank takes the style of its neighbour, which saves its own on the wire.
                spans.append(Span(_placed(text, cell, apart=has_differences), role))
        return Line(tuple(spans), selected)

    def _delta(self, row: Row | None, column: Column) -> tuple[str, str]:
        """Return the difference to the baseline in percent, and whether it is good; by an edit with an arrow."""
        against = self._baseline.column_for(column, self._comparison) if self._comparison else None
        other = against.row(row.key) if against and row else None
        if row is None or other is None or (row.value, row.text) == (other.value, other.text):
            return "", ""
        is_edit = self._baseline.is_edit
        share = row.share_above(other)
        if share is None:
            return (MOVED, "accent") if is_edit and row.text != other.text else ("", "")
        percent = 100 * share
        if abs(percent) < _LEAST_PERCENT and not (is_edit and row.text != other.text):
            return "", ""
        role = "dim" if not row.better else "good" if percent * row.better > 0 else "bad"
        size = "≥×10" if percent >= _MOST_PERCENT else f"{percent:+.0f}%" if abs(percent) >= _LEAST_PERCENT else "<1%"
        if not is_edit:
            return size, role
        if _TWICE <= percent < _MOST_PERCENT:
            size = f"×{1 + share:.1f}"
        # Beside an arrow all that is gone needs no sign, for which there is no room.
        return f"{'▲' if percent > 0 else '▼'}{size.replace('-100', '100')}", role

    def _best(self, key: str) -> float | None:
        """Return the best value of a row, None where the columns do not differ."""
        columns = self._comparison.columns if self._comparison else ()
        rows = [row for row in (column.row(key) for column in columns) if row and row.value is not None]
        values = {row.value for row in rows if row.value is not None}
        if len(values) < 2 or not rows[0].better:
            return None
        return max(values) if rows[0].better > 0 else min(values)


def _after(delta: str) -> int:
    """Return the cells behind a value that a text cannot go on into."""
    return _MARK if delta == MOVED else _DELTA if delta else 0


def _has_deltas(cell: int) -> bool:
    """Return whether there is room for a value with the difference before it."""
    return cell >= _NARROWEST + _DELTA


def _text_of(row: Row | None) -> str:
    return row.text if row else "–"


def _placed(text: str, cell: int, *, apart: bool = True) -> str:
    """Return a text at the left of the room for differences; what is longer goes on into that.

    Args:
        apart: whether a blank stands before a text that fills the room, as a difference may end there.
    """
    room = cell - _DELTA if _has_deltas(cell) else cell
    size = room if cell_len(text) < room + (not apart) else min(cell_len(text) + 1, cell)
    return left(right(text, size), cell)


def _gauged(row: Row, width: int) -> str:
    """Return the value with a bar before it, where there is room for one."""
    room = min(width - cell_len(row.text) - 1, _GAUGE)
    return f"{gauge(row.share or 0.0, room)} {row.text}" if room >= _SHORTEST_GAUGE else row.text


def _short(text: str, width: int, is_short: bool) -> str:
    """Return the text, without the reason of a missing value, a unit or hours of many days where these have no room."""
    if is_short and text.endswith(_COUNTED):
        text = text.rpartition(" ")[0]
    if is_short and (time := _LONG_TIME.fullmatch(text)) is not None:
        text = time[1]
    return "n/a" if text.startswith("n/a") and cell_len(text) > width else clip(text, width)
