"""Memory and time as bars of text, for terminals: in blocks of eighths, or in ASCII."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from capacity_tui.engine.explain import Amount, MemoryTimeline, PhaseTimeline, StepTimeline, Stretch
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_bytes, format_percent, format_seconds

_NARROWEST_BAR = 8
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class BarGlyphs:
    """The characters bars are drawn with.

    Attributes:
        parts: from the thinnest part of a cell to the whole of it.
        hidden: a cell of what runs behind something else.
        limit: where the memory of the device ends.
        peak: marks the largest.
    """

    parts: str
    hidden: str
    limit: str
    peak: str


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
class _Place:
    """Columns of a chart: of the names, of the bars, and of the texts behind them."""

    names: int
    bars: int
    texts: int


def memory_lines(memory: MemoryTimeline, width: int, glyphs: BarGlyphs = BLOCKS) -> tuple[str, ...]:
    """Return memory over a step and at its peak as lines of text.

    Args:
        memory: what to draw.
        width: columns there are.
        glyphs: characters to draw with.
    """
    peak = sum(part.size for part in memory.parts)
    limit = memory.capacity
    extent = max(peak, limit or 0.0, *(moment.size for moment in memory.moments), 1.0)
    moments = [_Bar(moment.name, 0.0, moment.size, _bytes(moment.size)) for moment in memory.moments]
    parts = list(_stacked(memory.parts))
    place = _placed((*moments, *parts), width, room_for=f" {glyphs.peak}" if moments else "")
    result = [f"Device: {_bytes(limit)}" if limit is not None else "Device: memory size not known"]
    if memory.peak:
        result.append(f"peak {memory.peak}")
    lines = [", ".join(result)]
    if moments:
        largest = max(moments, key=lambda bar: bar.size)
        marked = [_Bar(b.name, b.start, b.size, f"{b.text} {glyphs.peak if b is largest else ' '}") for b in moments]
        lines += ["Over a step, inside the allocator", *_drawn(marked, extent, limit, place, glyphs)]
        parts = [_Bar(bar.name, bar.start, bar.size, f"{bar.text}  ") for bar in parts]
    lines += ["At the peak, with memory outside the allocator", *_drawn(parts, extent, limit, place, glyphs)]
    if len({stage.size for stage in memory.stages}) > 1:
        stages = ", ".join(f"{stage.name} {_bytes(stage.size)}" for stage in memory.stages)
        lines.append(f"Pipeline stages: {stages}")
    return tuple(lines)


def step_lines(step: StepTimeline, width: int, glyphs: BarGlyphs = BLOCKS) -> tuple[str, ...]:
    """Return the parts of a step one after another as lines of text.

    Args:
        step: what to draw.
        width: columns there are.
        glyphs: characters to draw with.
    """
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
        yield _Bar(amount.name, start, amount.size, _bytes(amount.size))
        start += amount.size


def _placed(bars: Sequence[_Bar], width: int, room_for: str = "") -> _Place:
    """Return where names, bars and texts stand; texts that leave bars too little room stay away."""
    names = max((len(bar.name) for bar in bars), default=0)
    texts = max((len(bar.text) for bar in bars), default=0) + len(room_for)
    room = width - len(_INDENT) - names - texts - 2
    if room < _NARROWEST_BAR:
        return _Place(names, max(width - len(_INDENT) - names - 1, 1), 0)
    return _Place(names, room, texts)


def _drawn(bars: Iterable[_Bar], extent: float, limit: float | None, place: _Place, glyphs: BarGlyphs) -> Iterator[str]:
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


def _bytes(size: float) -> str:
    return format_bytes(size)
