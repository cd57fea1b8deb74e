"""The view that searches: a question about the plan, the rows that answer it, and a picture of what they weigh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len

from capacity_tui.engine.present.pictures import is_logarithmic
from capacity_tui.engine.units import format_number
from capacity_tui.tui.session import Session
from capacity_tui.tui.text import Glyphs, Line, Span, clip, line, to_ascii, wrap
from capacity_tui.tui.views.query_view.results import ResultTable
from capacity_tui.tui.views.query_view.screen import QueryScreen
from capacity_tui.tui.widgets.lines import DrawnLines
from capacity_tui.tui.widgets.plots import scatter

if TYPE_CHECKING:
    from capacity_tui.engine.solve.search import Rejected
    from capacity_tui.tui.shown.results import Results


class FindScreen(QueryScreen):
    """Finds plans around the current one."""

    VIEW = "find"

    def __init__(self, session: Session) -> None:
        front = Front(session.glyphs)
        super().__init__(session, ResultTable(), front, lambda document, given: document.question(given))
        self._front = front
        self.commands = {**self.commands, "found.rules": self._show_rules}

    def why_nothing(self, results: Results) -> str:
        return why_nothing(results)

    def show_row(self) -> None:
        shown, row = self.table.shown, self.table.row
        results = self.table.results
        self.set_class(results is not None and results.weighed is None, "-unweighed")
        self._front.show_results(results, shown, shown[self.table.cursor] if row is not None else None)

    def drawings(self) -> Iterator[tuple[str, str]]:
        yield from self._front.drawings()

    def _show_rules(self) -> None:
        results = self.table.results
        self.show_text("What was excluded, and why", lambda width: rule_lines(results, width))


_LEAST_POINTS = 2
_NOTHING_WEIGHED = " no trade-off to draw"
_UNITS = {"time": "s", "cost": "USD"}  # Of columns whose numbers are not read as they stand


class Front(DrawnLines):
    """A picture of the rows in the two figures that are weighed against each other."""

    TITLE = "Front"

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="front", classes="aside")
        self._glyphs = glyphs
        self._results: Results | None = None
        self._shown: Sequence[int] = ()
        self._here: int | None = None

    def show_results(self, results: Results | None, shown: Sequence[int], here: int | None) -> None:
        """Draw the rows that the table shows, and the one under its cursor."""
        self._results, self._shown, self._here = results, shown, here
        self.repaint()

    def repaint(self) -> None:
        super().repaint()
        title = to_ascii(self._title()) if self._glyphs is Glyphs.ASCII else self._title()
        if self.is_mounted and self.size and title != str(self.border_title or ""):
            self.border_title = title

    def _title(self) -> str:
        if self._results is None or self._results.weighed is None:
            return self.TITLE
        across, up = (self._results.columns[position].title for position in self._results.weighed)
        return f"{up} over {across}, ● best"

    def drawings(self) -> Iterator[tuple[str, str]]:
        """Yield the same as an SVG file, where there is anything to weigh."""
        from capacity_tui.engine.present.pictures import Axis, Plane, plane_file
        from capacity_tui.engine.units import format_quantity

        results = self._results
        if results is None or results.weighed is None:
            return
        rows = [index for index in self._shown if None not in _numbers(results, index)]
        positions = {index: (x or 0.0, y or 0.0) for index in rows for x, y in (_numbers(results, index),)}
        titles = [results.columns[position].title for position in results.weighed]
        across, up = (Axis(title, partial(format_quantity, unit=_UNITS.get(title, ""))) for title in titles)
        best = frozenset(position for position, index in enumerate(rows) if index in results.front)
        points = tuple((results.rows[index].cells[0].text, positions[index]) for index in rows)
        here = positions.get(self._here) if self._here is not None else None
        title = f"{up.title} over {across.title}"
        yield title, plane_file(Plane(title, across, up, points=points, best=best, here=here))

    def draw(self, width: int, height: int) -> list[Line]:
        results = self._results
        if results is None:
            return []
        if results.weighed is None:
            return [line(Span(_NOTHING_WEIGHED, "dim"))]
        across, up = results.weighed
        rows = [index for index in self._shown if None not in _numbers(results, index)]
        points = [(x, y) for x, y in (_numbers(results, index) for index in rows) if x is not None and y is not None]
        if len(points) < _LEAST_POINTS or height < _LEAST_POINTS:
            return [line(Span(_NOTHING_WEIGHED, "dim"))]
        front = {position for position, index in enumerate(rows) if index in results.front}
        here = rows.index(self._here) if self._here in rows else None
        drawn = scatter(points, front, here, width, height - 1, self._glyphs)
        right, left, high, low = (
            results.rows[rows[_most(points, axis, sign)]].cells[(across, up)[axis]].text
            for axis, sign in ((0, 1), (0, -1), (1, 1), (1, -1))
        )
        drawn[0], drawn[-1] = _over(drawn[0], high), _over(drawn[-1], low)
        return [*drawn, _axis(left, right, is_logarithmic([x for x, _ in points]), width)]


def _numbers(results: Results, index: int) -> tuple[float | None, ...]:
    return tuple(results.rows[index].cells[position].number for position in results.weighed or ())


def _most(points: list[tuple[float, float]], axis: int, sign: int) -> int:
    """Return the index of the point that is most on an axis, or least."""
    return max(range(len(points)), key=lambda position: sign * points[position][axis])


def _over(row: Line, text: str) -> Line:
    """Return a row with a text at its left or its right end, the one that is free."""
    size = cell_len(text)
    for cells in (slice(0, size + 1), slice(len(row.spans) - size - 1, len(row.spans))):
        if not "".join(span.text for span in row.spans[cells]).strip():
            spans = list(row.spans)
            first = 0 if cells.start == 0 else len(spans) - size
            spans[first : first + size] = [Span(letter, "dim") for letter in text]
            return Line(tuple(spans))
    return row


def _axis(low: str, high: str, logarithmic: bool, width: int) -> Line:
    middle = " log " if logarithmic else ""
    gap = width - cell_len(low) - cell_len(high) - len(middle)
    if gap < 1:
        return line(Span(clip(f"{low} – {high}", width), "dim"))
    return line(Span(low + "─" * (gap // 2) + middle + "─" * (gap - gap // 2) + high, "dim"))


def rule_lines(results: Results | None, width: int) -> list[Line]:
    """Return every rule and limit that excluded something, with how much and an example."""
    if results is None or not (results.excluded or results.missed):
        return [line(Span("Nothing was excluded.", "value"))]
    headed = (
        ("Excluded by rules of layouts and software", results.excluded),
        ("Excluded by memory and limits", results.missed),
    )
    lines: list[Line] = []
    for heading, excluded in headed:
        if excluded:
            lines += [*([line()] if lines else []), line(Span(heading, "heading")), *_lines(excluded, width)]
    return lines


def why_nothing(results: Results) -> str:
    """Return why there are no rows: what excluded most."""
    most = next(iter((*results.missed, *results.excluded)), None)
    why = f": {format_number(most.count)} excluded, {most.rule}" if most else ""
    return f"nothing found{why}; {{found.rules}} shows why"


def _lines(excluded: Sequence[Rejected], width: int) -> Iterator[Line]:
    size = max(len(format_number(one.count)) for one in excluded)
    room, indent = max(width - size - 2, 1), " " * (size + 2)
    for one in excluded:
        first, *rest = wrap(one.rule, room) or [""]
        yield line(Span(f"{format_number(one.count):>{size}}  ", "best"), Span(first, "value"))
        yield from (line(Span(indent + text, "value")) for text in rest)
        yield from (line(Span(indent + text, "dim")) for text in wrap(f"such as {one.example}", room) if one.example)
