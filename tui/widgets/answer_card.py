"""The answer in every view: verdict, time, cost, speed, what limits it, and the memory of a device as a bar."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from rich.cells import cell_len

from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.actions import FIGURE
from capacity_tui.tui.session import Session
from capacity_tui.tui.text import Line, Span, fit, line, spread
from capacity_tui.tui.widgets.head import gauge, worded
from capacity_tui.tui.widgets.lines import ClickedLines

if TYPE_CHECKING:
    from capacity_tui.tui.shown.comparison import Column, Headline, MemoryPart, Usage

_GAUGE = 10
# The order in which parts of the answer give way; what the figures say themselves is a ``rank`` of ``Headline``.
_RANGE, _CHANGES, _BAR, _MEMORY = 10, 4, 3, 2


class AnswerCard(ClickedLines):
    """What the plan comes to: verdict, time, cost, speed and what limits it; below that its memory as a bar.

    Each figure is explained where it is clicked, each limit that is missed shows what would hold it.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(id="answer")
        self._session = session

    def on_mount(self) -> None:
        self._session.answers.subscribe(self, lambda _: self.repaint())

    def draw(self, width: int) -> list[Line]:
        store = self._session.store
        column = store.column
        if column is None:
            return [line(Span(" estimating…" if store.document else " no plan yet", "dim"))]
        has_bar = self.size.height > 1 and column.usage is not None and bool(column.usage.parts)
        lines = [self._toned(answer_line(column, width, has_bar, len(store.changes)))]
        if has_bar and column.usage is not None:
            bar = memory_bar(column.usage, width)
            explain = _figure(column.usage)
            lines.append(self._toned(Line(tuple(span._replace(action=explain) for span in bar.spans))))
        return lines

    def _toned(self, answer: Line) -> Line:
        if not self._session.store.is_stale:
            return answer
        return Line(tuple(span._replace(role="dim") for span in answer.spans))


def answer_line(column: Column, width: int, has_bar: bool, changes: int = 0) -> Line:
    """Lay out what fits: what says least gives way first; verdict, time and a known cost never do."""
    counted = f"{changes} change{'' if changes == 1 else 's'} " if changes else ""
    ranks = {_RANGE, _CHANGES, _BAR, _MEMORY, *(headline.rank for headline in column.headlines)}
    answer = Line()
    for short in (False, True):
        for limit in (max(ranks) + 1, *sorted(ranks, reverse=True)):
            end = line(Span(counted, "accent")) if limit > _CHANGES else line()
            answer = Line(tuple(_spans(column, limit, short, has_bar)))
            if cell_len(answer.plain) + cell_len(end.plain) + bool(end.plain) <= width:
                return spread(answer, end, width) if end.plain else answer
    return fit(answer, width)


def _spans(column: Column, limit: int, short: bool, has_bar: bool) -> Iterator[Span]:
    if column.is_pinned:
        yield Span(f" {column.mode}:", "accent")
    yield from _chips(column, short)
    if column.usage is not None and limit > _MEMORY:
        explain = _figure(column.usage)
        yield Span(f" {column.usage.text}", "value", explain)
        if column.usage.share is not None:
            if limit > _BAR and not has_bar:
                yield Span(f" {gauge(column.usage.share, _GAUGE)}", column.verdict.tone, explain)
            yield Span(f" {column.usage.share:.0%}".replace("%", " %"), "value", explain)
    for headline in column.headlines:
        if not headline.rank or headline.rank < limit:
            explain = _figure(headline)
            yield Span(" · ", "dim")
            yield Span(headline.text, "value" if headline.rank else "best", explain)
            if headline.interval and limit > _RANGE:
                yield Span(f" ({headline.interval})", "dim", explain)


def _chips(column: Column, short: bool) -> Iterator[Span]:
    """Yield the verdict, and each other limit that is missed."""
    words = column.verdict_brief if short else column.verdict_words
    opens = "panel.advice" if column.verdict.holds is False else _figure(column.usage)
    yield Span(f" {worded(column.verdict, words).text} ", f"{column.verdict.tone}-verdict", opens)
    for missed in () if short else column.missed:
        yield Span(" ")
        yield Span(f" {Verdict.MISSES_LIMIT.sign} {missed} ", "bad-verdict", "panel.advice")


def _figure(shown: Headline | Usage | None) -> str:
    """Return what a click on a figure of the card does."""
    return f"{FIGURE}{shown.key}" if shown is not None and shown.key else ""


_PART_GLYPHS, _PART_ROLES = "▇▓▒", ("graph-1", "graph-2", "graph-3", "graph-4")
_LIKELY, _FREE, _LIMIT = "░", "·", "│"
_LEAST_BAR = 24
_REST, _ALL = "other", "used"


def memory_bar(usage: Usage, width: int) -> Line:
    """Return what takes the memory of a device as one bar: its parts, what the range may take, what is free.

    Parts are told apart by their names and glyphs as well as by colour; the limit of the device is a line across.

    Args:
        usage: memory of the fullest device.
    """
    used = sum(part.size for part in usage.parts)
    extent = max(used, usage.capacity or 0.0)
    if not extent:
        return line()
    likely = f"likely {usage.interval}" if usage.interval else ""
    room = width - 2 - bool(usage.capacity)
    texts = (f"{usage.capacity_text}  {likely}".rstrip(), usage.capacity_text)
    ends = [text for text in texts if room - cell_len(text) >= _LEAST_BAR] or [""]
    # The range is drawn as well: its text gives way to names of the two largest parts.
    wanted = min(len(usage.parts), 2)
    end = next((text for text in ends if len(_with_room(usage, (room - cell_len(text)) / extent)) >= wanted), ends[-1])
    room -= cell_len(end)
    cells: list[tuple[str, str]] = []
    at = 0.0
    for number, (name, size) in enumerate(_named_parts(usage, room / extent)):
        at += size
        stretch = round(at / extent * room) - len(cells)
        glyph, role = _PART_GLYPHS[number % len(_PART_GLYPHS)], _PART_ROLES[number % len(_PART_ROLES)]
        cells += [(cell, role) for cell in _named_cells(name, glyph, stretch)]
    high = min(usage.high or used, extent)
    cells += [(_LIKELY, "label")] * (round(high / extent * room) - len(cells))
    cells += [(cell, "dim") for cell in _named_cells(f"{usage.free} free", _FREE, room - len(cells))]
    limit = Span(_LIMIT, "label")
    if usage.capacity and usage.capacity < used:
        cells[round(usage.capacity / extent * (room - 1))] = (_LIMIT, "bad")
        limit = Span(" ")
    runs = groupby(cells, key=itemgetter(1))
    spans = (Span("".join(cell for cell, _ in run), role) for role, run in runs)
    return line(" ", *spans, *((limit,) if usage.capacity else ()), Span(end, "label"))


def _with_room(usage: Usage, cells_a_byte: float) -> list[MemoryPart]:
    """Return the parts that have room for their names."""
    return [part for part in usage.parts if part.size * cells_a_byte >= cell_len(part.label) + 1]


def _named_parts(usage: Usage, cells_a_byte: float) -> Iterator[tuple[str, float]]:
    """Yield names and sizes of the parts that have room for their names, and the sum of the others."""
    named = _with_room(usage, cells_a_byte)
    yield from ((part.label, part.size) for part in named)
    if len(named) < len(usage.parts):
        rest = sum(part.size for part in usage.parts) - sum(part.size for part in named)
        yield _REST if named else _ALL, rest


def _named_cells(name: str, glyph: str, size: int) -> str:
    """Return a stretch of a bar with its name in it, where that has room."""
    text = f"{glyph}{name}" if cell_len(name) < size else ""
    return text + glyph * (size - cell_len(text))
