"""Panel 3: the plans side by side; rows are quantities, columns are plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from capacity_tui.engine.api import Verdict
from capacity_tui.tui.actions import bindings
from capacity_tui.tui.store import Baseline
from capacity_tui.tui.terminal.text import Line, Span, clip, left, line, right
from capacity_tui.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from capacity_tui.tui.view import Column, Comparison, Row

_VERDICTS = {
    Verdict.FITS: ("✓ fits", "✓ fits", "good"),
    Verdict.TIGHT: ("! tight", "! tight", "warn"),
    Verdict.OVER: ("✗ does not fit", "✗ no fit", "bad"),
    Verdict.UNKNOWN: ("? memory unknown", "? no limit", "dim"),
}
_DELTA = 7
_WIDE_CELL = 9 + _DELTA
_NARROW_CELL = 9
_LONGEST_LABEL = 20
_SHORTEST_LABEL = 13


class ComparisonTable(Panel):
    """The table of plans."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("plans")
    NUMBER = 3
    TITLE = "Plans"
    KEYS = "enter explain · x baseline · y copy"

    def __init__(self) -> None:
        super().__init__()
        self._comparison: Comparison | None = None
        self._mode = ""
        self._baseline = Baseline()
        self._stale = False
        self._trouble: tuple[str, str] = ("", "")

    @property
    def row_key(self) -> str:
        """The quantity under the cursor, empty if there is none."""
        rows = self._rows()
        return rows[self.cursor].key if self.cursor < len(rows) else ""

    def show_comparison(
        self, comparison: Comparison | None, column: Column | None, baseline: Baseline, stale: bool
    ) -> None:
        """Show a comparison.

        Args:
            comparison: what to show.
            column: the column that is chosen.
            baseline: what deltas are counted from.
            stale: whether the numbers belong to an earlier plan.
        """
        key = self.row_key
        self._comparison, self._baseline, self._stale = comparison, baseline, stale
        self._mode = column.mode if column else ""
        if comparison is not None and not stale:
            self._trouble = ("", "")
        rows = self._rows()
        self.cursor = next((index for index, row in enumerate(rows) if row.key == key), 0)
        self.repaint()

    def show_trouble(self, title: str, hint: str) -> None:
        """Say above the old numbers why there are no new ones."""
        self._trouble = (title, hint)
        self.repaint()

    def labels(self) -> list[str]:
        """Return what can be found."""
        return [f"{row.label} {row.key}" for row in self._rows()]

    def item_count(self) -> int:
        """Return the number of quantities."""
        return len(self._rows())

    def item_at(self, index: int) -> int | None:
        """Return the quantity in a line."""
        item = index - self._head_height()
        return item if 0 <= item < self.item_count() else None

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the table out for a width."""
        head = self._trouble_lines(width)
        if self._comparison is None or not self._comparison.columns:
            return head or [line(Span("estimating…", "dim"))], None
        columns = self._columns_shown(width)
        cell = self._cell_width(width, len(columns))
        label = width - cell * len(columns)
        notes = self._note_lines(width)
        # The gravest stands above, in sight however low the panel is.
        lines = [*head, self._names(columns, label, cell), self._verdicts(columns, label, cell), *notes[:1]]
        here = len(lines) + self.cursor
        for index, row in enumerate(self._rows()):
            selected = index == self.cursor and self.is_current
            lines.append(self._row_line(row, columns, label, cell, selected))
        lines += notes[1:]
        return lines, range(0 if self.cursor == 0 else here, here + 1)

    def summary(self) -> Line:
        """Return the verdict and the first quantity of the chosen plan."""
        column = self._chosen()
        if column is None:
            return line()
        text, _, role = _VERDICTS[column.verdict]
        first = f"  {column.rows[0].label} {column.rows[0].text}" if column.rows else ""
        return line(Span(f"{column.mode} ", "label"), Span(text, role), Span(first, "value"))

    def edge(self) -> str:
        """Return what deltas are counted from."""
        if self._baseline.pinned:
            return "deltas from the pinned numbers"
        return f"deltas from {self._baseline.mode}" if self._baseline.mode else ""

    def as_text(self) -> str:
        """Return the table with all its columns as plain text."""
        if self._comparison is None:
            return ""
        columns = self._comparison.columns
        cell = 2 + max((cell_len(row.text) for column in columns for row in column.rows), default=_WIDE_CELL)
        cell = max(cell, 2 + max(cell_len(_VERDICTS[column.verdict][0]) for column in columns))
        label = 2 + max(2 * row.indent + cell_len(row.label) for row in self._rows())
        names = " " * label + "".join(right(column.mode, cell) for column in columns)
        verdicts = left("verdict", label) + "".join(right(_VERDICTS[c.verdict][0], cell) for c in columns)
        body = [
            left("  " * row.indent + row.label, label)
            + "".join(right(_text_of(column.row(row.key)), cell) for column in columns)
            for row in self._rows()
        ]
        return "\n".join([self._comparison.title, "", names, verdicts, *body]) + "\n"

    def _rows(self) -> list[Row]:
        """Return the quantities of all columns in order, each once."""
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
        """Return all columns, or only the chosen one where they do not fit side by side."""
        columns = self._comparison.columns if self._comparison else ()
        chosen = self._chosen()
        if chosen is None or width >= _SHORTEST_LABEL + _NARROW_CELL * len(columns):
            return columns
        return (chosen,)

    def _cell_width(self, width: int, count: int) -> int:
        labels = max((2 * row.indent + cell_len(row.label) for row in self._rows()), default=0)
        label = min(max(labels + 1, _SHORTEST_LABEL), _LONGEST_LABEL)
        if width - label < _WIDE_CELL * count:
            label = min(label, max(_SHORTEST_LABEL, width - _WIDE_CELL * count, width // 3))
        return min((width - label) // max(count, 1), 26)

    def _head_height(self) -> int:
        width = self.size.width
        return len(self._trouble_lines(width)) + 2 + len(self._note_lines(width)[:1])

    def _trouble_lines(self, width: int) -> list[Line]:
        title, hint = self._trouble
        if not title:
            return []
        lines = [line(Span(clip(f"✗ {title}", width), "bad"))]
        return lines + ([line(Span(clip(f"  {hint}", width), "dim"))] if hint else [])

    def _names(self, columns: tuple[Column, ...], label: int, cell: int) -> Line:
        start = Span(left("old numbers…" if self._stale else "", label), "warn")
        spans = [start]
        for column in columns:
            chosen = column.mode == self._mode
            name = f"[{column.mode}]" if chosen and cell_len(column.mode) + 2 <= cell else column.mode
            spans.append(Span(right(name, cell), "accent" if chosen else "label"))
        return Line(tuple(spans))

    def _verdicts(self, columns: tuple[Column, ...], label: int, cell: int) -> Line:
        spans = [Span(left("verdict", label), "label")]
        for column in columns:
            full, short, role = _VERDICTS[column.verdict]
            spans.append(Span(right(full if cell_len(full) < cell else short, cell), self._role(role)))
        return Line(tuple(spans))

    def _note_lines(self, width: int) -> list[Line]:
        """Return what the chosen plan is short of, what to know before relying on it, and what would help it."""
        column = self._chosen()
        if column is None:
            return []
        full, _, role = _VERDICTS[column.verdict]
        about = f"{full.split()[0]} {column.mode}: {column.reason}"
        lines = [line(Span(clip(about, width), role))] if column.reason else []
        for note in column.notes:
            parts = (note.title, note.saves or note.detail)
            lines.append(line(Span(clip("! " + ": ".join(part for part in parts if part), width), "warn")))
        return lines

    def _row_line(self, row: Row, columns: tuple[Column, ...], label: int, cell: int, selected: bool) -> Line:
        # A short label names the unit that a narrow cell has no room for.
        is_narrow = cell < _WIDE_CELL or 2 * row.indent + cell_len(row.label) >= label
        name = row.brief if is_narrow and row.brief else row.label
        spans = [Span(left("  " * row.indent + name, label), "label")]
        best = self._best(row.key)
        for column in columns:
            found = column.row(row.key)
            spans += self._cell(found, column, cell, found is not None and best is not None and found.value == best)
        return Line(tuple(spans), selected)

    def _cell(self, row: Row | None, column: Column, cell: int, is_best: bool) -> list[Span]:
        text = _text_of(row)
        if cell < _WIDE_CELL:
            return [Span(right(_short(text, cell), cell), self._role("best" if is_best else "value"))]
        delta, role = self._delta(row, column)
        value = _short(text, cell - _DELTA if delta else cell - 1)
        # Without a delta to make room for, a long value may run into its place.
        width = max(cell - _DELTA, min(cell_len(value) + 1, cell - cell_len(delta)))
        shown = Span(right(value, width), self._role("best" if is_best else "value"))
        after = right(delta, cell - width)
        return [shown, Span(after, self._role(role))] if delta else [Span(shown.text + after, shown.role)]

    def _delta(self, row: Row | None, column: Column) -> tuple[str, str]:
        """Return the difference to the baseline in percent, and whether it is good."""
        if row is None or row.value is None or self._comparison is None:
            return "", ""
        against = self._baseline.column_for(column, self._comparison)
        other = against.row(row.key) if against else None
        if other is None or not other.value or other.value == row.value:
            return "", ""
        percent = 100 * (row.value - other.value) / abs(other.value)
        if abs(percent) < 0.5:
            return "", ""
        role = "dim" if not row.better else "good" if percent * row.better > 0 else "bad"
        return f"{percent:+.0f} %" if abs(percent) < 1000 else "≥×10" if percent > 0 else "", role

    def _best(self, key: str) -> float | None:
        """Return the best value of a row, None where the columns do not differ."""
        columns = self._comparison.columns if self._comparison else ()
        rows = [row for row in (column.row(key) for column in columns) if row and row.value is not None]
        values = {row.value for row in rows if row.value is not None}
        if len(values) < 2 or not rows[0].better:
            return None
        return max(values) if rows[0].better > 0 else min(values)

    def _role(self, role: str) -> str:
        return "dim" if self._stale else role


def _text_of(row: Row | None) -> str:
    return row.text if row else "–"


def _short(text: str, width: int) -> str:
    """Return the text, without the reason of a missing value or the unit of a rate where those have no room."""
    if cell_len(text) < width:
        return text
    if text.startswith("n/a"):
        return "n/a"
    return clip(text.rpartition(" ")[0] if text.endswith("/s") else text, width)
