"""Charts as lines of text, for terminals and Markdown: a roofline, and memory and time as bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from capacity_tui.engine.estimate import Estimate, Note, bottleneck_text
from capacity_tui.engine.explain import Amount, MemoryTimeline, PhaseTimeline, Point, Roofline, StepTimeline, Stretch
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import (
    format_bandwidth,
    format_bytes,
    format_count,
    format_flops,
    format_number,
    format_percent,
    format_seconds,
)

_BRAILLE = 0x2800
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Dots of a braille cell from the top down, in its left and its right half."""

_RATES = (Figure.TOKENS_PER_SECOND, Figure.SAMPLES_PER_SECOND)
_UP = 4
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MARGIN = 2.0  # Room around what is drawn, as a factor


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters a roofline is drawn with; without those of the roof it is drawn in braille dots."""

    slope: str
    flat: str
    run: str
    axis: str
    floor: str
    corner: str
    ridge: str


UNICODE = Glyphs("", "", "◆", "│", "─", "└", "┴")
ASCII = Glyphs("/", "-", "*", "|", "-", "+", "^")


@dataclass(frozen=True, slots=True)
class Frame:
    """The part of the plane that is drawn; both axes are logarithmic."""

    # left, right: intensities, FLOP/B
    left: float
    right: float
    # bottom, top: rates, FLOP/s
    bottom: float
    top: float

    def across(self, intensity: float) -> float:
        """Return how far right an intensity lies, from 0 to 1."""
        return _share(intensity, self.left, self.right)

    def up(self, rate: float) -> float:
        """Return how far up a rate lies, from 0 to 1."""
        return _share(rate, self.bottom, self.top)


def frame_of(roofline: Roofline) -> Frame:
    """Return a frame that holds the ridge, the run and every kernel."""
    intensities = [roofline.ridge, roofline.intensity, *(point.intensity for point in roofline.points)]
    left, right = min(intensities) / _MARGIN, max(intensities) * _MARGIN
    rates = [roofline.flops_per_second, roofline.roof(left), *(point.flops_per_second for point in roofline.points)]
    positive = [rate for rate in rates if rate > 0]
    return Frame(left, right, min(positive) / _MARGIN, roofline.peak * _MARGIN)


def roofline_lines(roofline: Roofline, width: int = 64, height: int = 14, glyphs: Glyphs = UNICODE) -> tuple[str, ...]:
    """Return a roofline drawn with characters, and below it what the letters stand for."""
    plane = _plane(roofline, width, height, glyphs)
    top = f"{format_flops(roofline.peak, per_second=True)} peak of {roofline.device}"
    ridge = round(frame_of(roofline).across(roofline.ridge) * (width - 1))
    floor = glyphs.floor * ridge + glyphs.ridge + glyphs.floor * (width - 1 - ridge)
    label = f"ridge at {intensity_text(roofline.ridge)}"
    under = f"{' ' * max(0, min(ridge + 1 - len(label) // 2, width - len(label)))}{label}"
    return (
        top,
        *(f"{glyphs.axis}{''.join(row)}".rstrip() for row in plane),
        glyphs.corner + floor,
        under,
        *_legend(roofline, glyphs),
    )


def limit_text(roofline: Roofline, estimate: Estimate) -> str:
    """Return what limits a run and the change that would move it most, in words."""
    bottleneck = estimate.bottleneck
    side = "above" if roofline.intensity >= roofline.ridge else "below"
    result = {
        "compute": "Arithmetic limits",
        "memory_bandwidth": "Memory bandwidth limits",
        "network": "Communication limits",
        "capacity": "Memory capacity limits",
        "input": "Input limits",
        "overhead": "Host-bound: launching kernels",
        "optimizer": "The optimizer limits",
    }[bottleneck.kind]
    reached = format_percent(roofline.flops_per_second / roofline.peak)
    text = (
        f"{result} ({bottleneck_text(bottleneck)}). The run does {intensity_text(roofline.intensity)}, {side} the "
        f"ridge point of {intensity_text(roofline.ridge)}, and reaches {reached} of peak."
    )
    faster = max(estimate.recommendations, key=_gained, default=None)
    if faster is not None and _gained(faster) > 0.0:
        text = f"{text} What moves it most: {faster.title}."
    return text


def _gained(note: Note) -> float:
    """Return by how many tokens or samples a second a recommendation is faster."""
    return max((note.saves or {}).get(key, 0.0) for key in _RATES)


def _plane(roofline: Roofline, width: int, height: int, glyphs: Glyphs) -> list[list[str]]:
    frame = frame_of(roofline)
    plane = [[" "] * width for _ in range(height)]

    def put(intensity: float, rate: float, glyph: str) -> None:
        _put(plane, frame, (intensity, rate), glyph)

    if glyphs.slope:
        for column in range(width):
            intensity = frame.left * (frame.right / frame.left) ** (column / (width - 1))
            put(intensity, roofline.roof(intensity), glyphs.flat if intensity >= roofline.ridge else glyphs.slope)
    else:
        _draw_roof(plane, roofline, frame)
    for letter, point in reversed(tuple(zip(_LETTERS, roofline.points, strict=False))):
        put(point.intensity, point.flops_per_second, letter)
    put(roofline.intensity, roofline.flops_per_second, glyphs.run)
    return plane


def _put(plane: list[list[str]], frame: Frame, point: tuple[float, float], glyph: str) -> None:
    """Put a character where a point lies, if that is within the frame."""
    width, height = len(plane[0]), len(plane)
    column, row = round(frame.across(point[0]) * (width - 1)), height - 1 - round(frame.up(point[1]) * (height - 1))
    if 0 <= column < width and 0 <= row < height:
        plane[row][column] = glyph


def _draw_roof(plane: list[list[str]], roofline: Roofline, frame: Frame) -> None:
    """Draw the roof in braille: two dots across a cell, four up."""
    across, up = 2 * len(plane[0]), _UP * len(plane)
    for column in range(across):
        intensity = frame.left * (frame.right / frame.left) ** (column / (across - 1))
        row = up - 1 - round(frame.up(roofline.roof(intensity)) * (up - 1))
        if 0 <= row < up:
            cells, at = plane[row // _UP], column // 2
            dots = 0 if cells[at] == " " else ord(cells[at]) - _BRAILLE
            cells[at] = chr(_BRAILLE + (dots | _DOTS[column % 2][row % _UP]))


def _legend(roofline: Roofline, glyphs: Glyphs) -> Iterator[str]:
    reached = format_flops(roofline.flops_per_second, per_second=True)
    yield f"{glyphs.run} the run: {intensity_text(roofline.intensity)}, {reached}"
    for letter, point in zip(_LETTERS, roofline.points, strict=False):
        yield f"{letter} {point_text(point)}"
    slope, flat = glyphs.slope or "⡠⠊", glyphs.flat or "⠤⠤"
    bandwidth = format_bandwidth(roofline.bandwidth)
    yield f"{slope} memory at {bandwidth}; {flat} arithmetic at peak; both axes logarithmic"


def point_text(point: Point) -> str:
    """Return what a kernel does, in words."""
    reached = format_flops(point.flops_per_second, per_second=True)
    share = format_percent(point.share, 1)
    return f"{point.name}: {intensity_text(point.intensity)}, {reached}, {share} of kernel time, bound by {point.bound}"


def intensity_text(value: float) -> str:
    """Return FLOPs a byte as text."""
    return f"{format_number(value, 0 if value >= 10 else 1)} FLOP/B"


def _share(value: float, low: float, high: float) -> float:
    return (math.log(max(value, 1e-300)) - math.log(low)) / (math.log(high) - math.log(low))


MARKS, ASCII_MARKS = ("●", "·"), ("o", ".")
"""What stands for a count and for the law, with any characters and with ASCII alone."""

_RANK_CHART_MARGIN = 1.2
Points = Sequence[tuple[float, float]]


def rank_frame(counted: Points) -> Frame:
    """Return a frame that holds every rank and count."""
    ranks, counts = ([point[place] for point in counted] for place in (0, 1))
    return Frame(
        min(ranks) / _RANK_CHART_MARGIN,
        max(ranks) * _RANK_CHART_MARGIN,
        min(counts) / _RANK_CHART_MARGIN,
        max(counts) * _RANK_CHART_MARGIN,
    )


def rank_lines(
    counted: Points, law: Points, width: int = 60, height: int = 14, ascii_only: bool = False
) -> tuple[str, ...]:
    """Return counts over ranks drawn with characters, the law beneath them."""
    frame, glyphs = rank_frame(counted), ASCII if ascii_only else UNICODE
    dot, line = ASCII_MARKS if ascii_only else MARKS
    plane = [[" "] * width for _ in range(height)]
    for points, mark in ((law, line), (counted, dot)):
        for point in points:
            _put(plane, frame, point, mark)
    counts = [count for _, count in counted]
    last = f"rank {format_count(max(rank for rank, _ in counted))}"
    return (
        f"{format_count(max(counts))} times",
        *(f"{glyphs.axis}{''.join(row)}".rstrip() for row in plane),
        glyphs.corner + glyphs.floor * width,
        f" rank 1{last:>{max(width - 6, len(last) + 1)}}",
        f"{dot} counted, {line} the law; both axes logarithmic",
    )


_NARROWEST_BAR = 8
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class BarGlyphs:
    """The characters bars are drawn with."""

    parts: str  # from the thinnest part of a cell to the whole of it
    hidden: str  # a cell of what runs behind something else
    limit: str  # where the memory of the device ends
    peak: str  # marks the largest


BLOCKS = BarGlyphs("▏▎▍▌▋▊▉█", "░", "│", "◂")
ASCII_BARS = BarGlyphs("#", ".", "|", "<")


@dataclass(frozen=True, slots=True)
class _Bar:
    """A line of a chart: name, bar from a place on, and what stands behind it."""

    name: str
    start: float
    size: float
    text: str
    hidden: float = 0.0


@dataclass(frozen=True, slots=True)
class _ChartColumns:
    """Columns of a chart: of the names, of the bars, and of the texts behind them."""

    names: int
    bars: int
    texts: int


def memory_lines(memory: MemoryTimeline, width: int, glyphs: BarGlyphs = BLOCKS) -> tuple[str, ...]:
    """Return memory over a step and at its peak as lines of text."""
    peak = sum(part.size for part in memory.parts)
    limit = memory.capacity
    extent = max(peak, limit or 0.0, *(phase.size for phase in memory.phases), 1.0)
    phases = [_Bar(phase.name, 0.0, phase.size, format_bytes(phase.size)) for phase in memory.phases]
    parts = list(_stacked(memory.parts))
    place = _placed((*phases, *parts), width, room_for=f" {glyphs.peak}" if phases else "")
    result = [f"Device: {format_bytes(limit)}" if limit is not None else "Device: memory size not known"]
    if memory.peak:
        result.append(f"peak {memory.peak}")
    lines = [", ".join(result)]
    if phases:
        largest = max(phases, key=lambda bar: bar.size)
        marked = [_Bar(b.name, b.start, b.size, f"{b.text} {glyphs.peak if b is largest else ' '}") for b in phases]
        lines += ["Over a step, inside the allocator", *_drawn(marked, extent, limit, place, glyphs)]
        parts = [_Bar(bar.name, bar.start, bar.size, f"{bar.text}  ") for bar in parts]
    lines += ["At the peak, with memory outside the allocator", *_drawn(parts, extent, limit, place, glyphs)]
    if len({stage.size for stage in memory.stages}) > 1:
        stages = ", ".join(f"{stage.name} {format_bytes(stage.size)}" for stage in memory.stages)
        lines.append(f"Pipeline stages: {stages}")
    return tuple(lines)


def step_lines(step: StepTimeline, width: int, glyphs: BarGlyphs = BLOCKS) -> tuple[str, ...]:
    """Return the parts of a step one after another as lines of text."""
    drawn = {phase: [_stretch(part, step.seconds) for part in phase.stretches] for phase in step.phases}
    place = _placed([bar for bars in drawn.values() for bar in bars], width)
    lines: list[str] = []
    for phase, bars in drawn.items():
        share = f", {format_percent(phase.seconds / step.seconds)} of all" if len(step.phases) > 1 else ""
        lines.append(f"{phase.name.capitalize()}: {format_seconds(phase.seconds)}{share}")
        lines += _drawn(bars, phase.seconds, None, place, glyphs)
    hidden = [*_hidden_texts(step.phases)]
    if hidden:
        lines.append(f"{glyphs.hidden} hidden: {'; '.join(hidden)}")
    return tuple(lines)


def _stretch(part: Stretch, whole: float) -> _Bar:
    share = format_percent(part.seconds / whole) if whole else ""
    return _Bar(part.name, part.start, part.seconds, f"{format_seconds(part.seconds):>8} {share:>5}", part.hidden)


def _hidden_texts(phases: Iterable[PhaseTimeline]) -> Iterator[str]:
    for phase in phases:
        for part in phase.stretches:
            if part.hidden:
                yield f"{format_seconds(part.hidden)} of {part.name} behind {part.behind}"


def _stacked(amounts: Iterable[Amount]) -> Iterator[_Bar]:
    start = 0.0
    for amount in amounts:
        yield _Bar(amount.name, start, amount.size, format_bytes(amount.size))
        start += amount.size


def _placed(bars: Sequence[_Bar], width: int, room_for: str = "") -> _ChartColumns:
    """Return where names, bars and texts stand; texts that leave bars too little room stay away."""
    names = max((len(bar.name) for bar in bars), default=0)
    texts = max((len(bar.text) for bar in bars), default=0) + len(room_for)
    room = width - len(_INDENT) - names - texts - 2
    if room < _NARROWEST_BAR:
        return _ChartColumns(names, max(width - len(_INDENT) - names - 1, 1), 0)
    return _ChartColumns(names, room, texts)


def _drawn(
    bars: Iterable[_Bar], extent: float, limit: float | None, place: _ChartColumns, glyphs: BarGlyphs
) -> Iterator[str]:
    """Yield bars on one axis."""
    for bar in bars:
        cells = _cells(bar, extent, limit, place.bars, glyphs)
        yield f"{_INDENT}{bar.name:<{place.names}} {cells} {bar.text[: place.texts]:>{place.texts}}".rstrip()


def _cells(bar: _Bar, extent: float, limit: float | None, room: int, glyphs: BarGlyphs) -> str:
    """Return the cells of a bar: what hides before its start, the bar itself, and the limit."""
    scale = room / extent if extent > 0 else 0.0
    cells = [" "] * room
    if limit is not None:
        cells[min(round(limit * scale), room) - 1] = glyphs.limit
    first = min(round(bar.start * scale), room - 1)
    behind = min(max(round(bar.hidden * scale), 1), room) if bar.hidden else 0
    begin = max(first - behind, 0)
    cells[begin : begin + behind] = glyphs.hidden * behind
    steps = len(glyphs.parts)
    filled = min(round(bar.size * scale * steps), (room - first) * steps)
    whole, rest = divmod(max(filled, 1) if bar.size > 0 else 0, steps)
    drawn = glyphs.parts[-1] * whole + (glyphs.parts[rest - 1] if rest else "")
    cells[first : first + len(drawn)] = drawn
    return "".join(cells)[:room]
