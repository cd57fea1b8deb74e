"""Panels of the scale view: levels of patterns, charts, storage and remarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, zip_longest
from math import log2
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from rich.cells import cell_len

from capacity_tui.engine.units import format_number, format_quantity
from capacity_tui.tui.text import Glyphs, Line, Span, clip, left, line, marked, right, wrap
from capacity_tui.tui.widgets.head import gauge
from capacity_tui.tui.widgets.lines import GAP, DrawnLines, Painted, TableLayout
from capacity_tui.tui.widgets.panel import Panel
from capacity_tui.tui.widgets.plots import FRONT, HERE, Dots, Tick, axis_line, log_plane, side_by_side, spans_of

if TYPE_CHECKING:
    from capacity_tui.tui.shown.comparison import Row
    from capacity_tui.tui.shown.scale import LogChart, ScaledPlan, ScaledRow, StoredLevel, StoredPatterns

_BAR = 12
_MARK = 1  # Cells in front of the first column


class Levels(Panel):
    """Levels from the lowest, last all of them; those of another corpus stay, dimmed, until others come."""

    NUMBER = 4
    TITLE = "Levels"
    KEYS = "{scale.pictures} pictures · {scale.command} command"

    def __init__(self) -> None:
        super().__init__()
        self.patterns: StoredPatterns | None = None  # what is shown
        self.message = "waiting for the plan…"
        self._items: list[int | None] = []

    @property
    def level(self) -> StoredLevel | None:
        levels = self.patterns.levels if self.patterns else ()
        return levels[self.cursor] if self.cursor < len(levels) else None

    def show_patterns(self, patterns: StoredPatterns) -> None:
        self.patterns, self.is_old = patterns, False
        self.keep_cursor()
        self.repaint()
        self.post_message(self.CursorMoved(self))

    def show_old(self, message: str = "") -> None:
        """Dim all levels: the corpus is another one; a message stands where there is no level."""
        self.message = message or self.message
        super().show_old()

    def about(self) -> tuple[str, str]:
        return (self.level.name, self.level.about) if self.level else ("", "")

    def item_count(self) -> int:
        return len(self.patterns.levels) + len(self.patterns.remarks) if self.patterns else 0

    def pinned(self) -> int:
        return 1 if self.item_count() else 0

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the levels out under their heads, in the columns that there is room for, remarks below."""
        patterns = self.patterns
        if patterns is None:
            return self.lines_of_message()
        levels = patterns.levels
        bar = _BAR if width >= 4 * _BAR else 0
        room = width - _MARK - (bar + GAP if bar else 0)
        layout = TableLayout.of(patterns.columns, [level.cells for level in levels], room)
        lines, items = [line(" " * _MARK, Span(layout.heads, "heading"))], list[int | None]([None])
        for index, level in enumerate(levels):
            drawn = " " * GAP + gauge(level.share, bar) if bar and not level.is_total else ""
            tone = self.toned("best" if level.is_total else "value")
            spans = Span(layout.text(level.cells), tone), Span(drawn, self.toned("graph-1"))
            lines.append(marked(index == self.cursor and self.is_current, *spans))
            items.append(index)
        for index, remark in enumerate(patterns.remarks, start=len(levels)):
            texts = wrap(remark, width - 2, "  ")
            here = index == self.cursor and self.is_current
            lines += [marked(here, Span(text, self.toned("label"))) for text in texts]
            items += [index] * len(texts)
        self._items = items
        places = [place for place, item in enumerate(items) if item == self.cursor]
        return lines, range(places[0] if self.cursor else 0, places[-1] + 1) if places else None


_GAP = 3
_NARROWEST = 33  # Cells below which one picture stands alone
_LEAST_HEIGHT = 4
_KILO = 1024
_PACE, _COST = 1, 5  # Columns of the table that are drawn
_UPRIGHT, _CURVE = "┊", "•"


class ScaledPictures(DrawnLines):
    """Time and cost over devices side by side, or time alone."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="growth")
        self._glyphs = glyphs
        self._plan: ScaledPlan | None = None
        self._here: int | None = None

    def show_plan(self, plan: ScaledPlan | None, here: int | None) -> None:
        """Draw what is known."""
        self._plan, self._here = plan, here
        self.repaint()

    def draw(self, width: int) -> list[Line]:
        """Draw time and cost over devices, side by side where there is room."""
        rows = self._plan.rows if self._plan else ()
        if len(rows) < 2 or self.size.height < _LEAST_HEIGHT:
            return []
        both = width >= 2 * _NARROWEST + _GAP
        size = (width - _GAP) // 2 if both else width
        drawn = [self._picture(_PACE, [row.pace for row in rows], size, self.size.height, "graph-1")]
        if both:
            drawn.append(self._picture(_COST, [row.usd for row in rows], size, self.size.height, "graph-2"))
        return [side_by_side(lines, _GAP) for lines in zip(*drawn, strict=True)]

    def drawings(self) -> Iterator[tuple[str, str]]:
        """Yield time and cost over devices as SVG files, as far as they are known."""
        from capacity_tui.engine.present.pictures import Axis, Plane, plane_file

        plan = self._plan
        rows = [row for row in plan.rows if row.verdict.holds is not False] if plan else []
        marks = tuple((float(row.devices), words) for row, words in self._marks(tuple(rows)))
        for column, value in ((_PACE, attrgetter("pace")), (_COST, attrgetter("usd"))):
            curve = tuple((float(row.devices), float(value(row))) for row in rows if value(row))
            if plan is None or len(curve) < 2:
                continue
            named = plan.columns[column].title
            unit = {"time": "s", "cost": "USD"}.get(named, "")
            up = Axis(named, partial(format_quantity, unit=unit))
            here = next((place for place in curve if place[0] == self._here), None)
            across = Axis("devices", format_number)
            plane = Plane(f"{named} over devices", across, up, ((named, curve),), here=here, uprights=marks)
            yield plane.title, plane_file(plane)

    def _picture(self, column: int, values: Sequence[float | None], width: int, height: int, role: str) -> list[Line]:
        """Return a curve over both logarithmic axes, under its title and above the counts of devices.

        It has the rows that fit. Upright lines say where the knee is, and from where on the price is of another list.
        """
        plan = self._plan
        scaled = zip(plan.rows if plan else (), values, strict=True)
        known = [(row, value) for row, value in scaled if value and row.verdict.holds is not False]
        if plan is None or len(known) < 2:
            return [line(Span(left("", width)))] * height
        highest, lowest = (ends(known, key=itemgetter(1)) for ends in (max, min))
        texts = {0: highest[0].cells[column], height - 3: lowest[0].cells[column]}
        gutter = max(map(cell_len, texts.values())) + 1
        room, rows = width - gutter, height - 2
        dots = Dots(room, rows, self._glyphs)
        start, extent = log2(known[0][0].devices), log2(known[-1][0].devices / known[0][0].devices) or 1.0
        bottom, span = log2(lowest[1]), log2(highest[1] / lowest[1]) or 1.0

        def place(row: ScaledRow, value: float) -> tuple[int, int]:
            across, up = (log2(row.devices) - start) / extent, (log2(value) - bottom) / span
            return round(across * (dots.across - 1)), round((1 - up) * (dots.down - 1))

        for before, after in pairwise(known):
            dots.connect(place(*before), place(*after))
        cells: dict[tuple[int, int], tuple[str, str]] = {}
        shown = tuple(row for row, _ in known)
        marks = [(round((log2(row.devices) - start) / extent * (room - 1)), words) for row, words in self._marks(shown)]
        cells |= {(y, at): (_UPRIGHT, "dim") for y in range(rows) for at, _ in marks}
        for number, (at, words) in enumerate(marks):
            begin = at + 1 if at + 1 + cell_len(words) <= room else at - cell_len(words)
            cells |= {(number, begin + index): (letter, "label") for index, letter in enumerate(words) if begin >= 0}
        cells |= {cell: (drawn, role) for cell, drawn in dots.drawn(_CURVE)}
        for row, value in known:
            if row.devices == self._here or row.is_own:
                cells[dots.cell(*place(row, value))] = (HERE, "key") if row.devices == self._here else (FRONT, "accent")
        return [
            line(Span(left(f"{plan.columns[column].title} over devices", width), "label")),
            *(
                Line((Span(right(texts.get(y, ""), gutter - 1) + " ", "dim"), *spans_of(cells, y, room)))
                for y in range(rows)
            ),
            Line((Span(" " * gutter), *self._axis(shown, room).spans)),
        ]

    @staticmethod
    def _marks(rows: Sequence[ScaledRow]) -> Iterator[tuple[ScaledRow, str]]:
        for before, after in pairwise(rows):
            if after.is_knee:
                yield after, "knee"
            elif after.price_source and before.price_source and after.price_source != before.price_source:
                yield after, "other prices"

    def _axis(self, rows: Sequence[ScaledRow], width: int) -> Line:
        """Return the counts below the curve, that of the cursor in any case."""
        places = [log2(row.devices) for row in rows]
        start, extent = places[0], places[-1] - places[0] or 1.0
        ticks = [
            Tick((place - start) / extent, _short(row.devices), row.devices == self._here)
            for place, row in zip(places, rows, strict=True)
        ]
        return axis_line(ticks, width)


def _short(devices: int) -> str:
    return f"{devices // _KILO}k" if devices >= _KILO and devices % _KILO == 0 else str(devices)


_LABEL, _STORAGE_BAR = 15, 6


class Storage(Panel):
    """Data and checkpoints of the plan, a figure a line; those of another plan stay, dimmed, until others come."""

    NUMBER = 2
    TITLE = "Storage"

    def __init__(self) -> None:
        super().__init__()
        self.message = "waiting for the plan's numbers…"
        self._rows: tuple[Row, ...] | None = None

    def show_rows(self, rows: tuple[Row, ...]) -> None:
        self._rows, self.is_old = rows, False
        self.keep_cursor()
        self.message = "nothing is read or saved while this runs"
        self.repaint()

    def about(self) -> tuple[str, str]:
        rows = self._rows or ()
        return (rows[self.cursor].label, rows[self.cursor].help) if self.cursor < len(rows) else ("", "")

    def item_count(self) -> int:
        return len(self._rows or ())

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the figures out, each with a bar where it is a share, and what goes with it behind."""
        if not self._rows:
            return self.lines_of_message()
        lines = [self._line(row, index == self.cursor, width) for index, row in enumerate(self._rows)]
        return lines, range(self.cursor, self.cursor + 1)

    def _line(self, row: Row, at_cursor: bool, width: int) -> Line:
        bar = "" if row.share is None else f"{gauge(row.share, _STORAGE_BAR)} "
        room = max(width - _LABEL - 1, 0)
        text = clip(f"{bar}{row.text}", room)
        more = clip(f"  {row.interval}" if row.interval else "", max(room - len(text), 0))
        tone = self.toned("warn" if row.share is not None and row.share > 1 else "value")
        label = Span(left(" " * row.indent + row.label, _LABEL), "label")
        return marked(at_cursor and self.is_current, label, Span(text, tone), Span(more, "dim"))


class Remarks(DrawnLines):
    """Sentences, as many as there are lines for."""

    def __init__(self) -> None:
        super().__init__(id="remarks")
        self._remarks: tuple[str, ...] = ()

    def show_remarks(self, remarks: tuple[str, ...]) -> None:
        self._remarks = remarks
        self.repaint()

    def draw(self, width: int) -> list[Line]:
        text = " ".join(self._remarks)
        return [line(Span(f" {row}", "label")) for row in wrap(text, width - 2)]


_NARROWEST_CHART, _LOWEST = 34, 8  # Cells and lines below which one picture does without its neighbour


class PatternCharts(DrawnLines):
    """Two pictures side by side, or one above the other, or the first alone."""

    charts: Painted[tuple[LogChart, ...]] = Painted(())

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="charts")
        self._glyphs = glyphs

    def drawings(self) -> Iterator[tuple[str, str]]:
        from capacity_tui.engine.present.pictures import Axis, Plane, plane_file

        for chart in self.charts:
            up, _, across = chart.title.partition(" over ")
            axes = Axis(across, partial(format_quantity, unit="")), Axis(up, partial(format_quantity, unit=chart.up))
            curves = tuple(("bound" if curve.is_bound else up, curve.points) for curve in chart.curves)
            levels = tuple((limit.value, limit.label) for limit in chart.limits)
            plane = Plane(chart.title, *axes, curves=curves, here=chart.here, levels=levels)
            yield chart.title, plane_file(plane)

    def draw(self, width: int) -> list[Line]:
        count, height = max(len(self.charts), 1), self.size.height
        size = (width - _GAP * (count - 1)) // count
        if size >= _NARROWEST_CHART:
            drawn = [log_plane(chart, size, height, self._glyphs) for chart in self.charts]
            return [side_by_side(lines, _GAP) for lines in zip_longest(*drawn, fillvalue=Line())]
        shown = self.charts if height // count >= _LOWEST else self.charts[:1]
        return [line for chart in shown for line in log_plane(chart, width, height // len(shown), self._glyphs)]
