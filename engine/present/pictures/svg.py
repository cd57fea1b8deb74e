"""SVG by hand: elements that take colours and font from their page, and files of curves, points and coloured cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape, unescape

from capacity_tui.engine.errors import MissingPartError
from capacity_tui.engine.extras import install_command
from capacity_tui.engine.record import dataclass

WIDTH = 720
COLOURS = 8

_STYLE = (
    "svg{background:#fff;font:12px sans-serif}"
    ".c0{fill:#3b8fd0}.c1{fill:#e69f00}.c2{fill:#009e73}.c3{fill:#cc79a7}"
    ".c4{fill:#56b4e9}.c5{fill:#d55e00}.c6{fill:#b8a800}.c7{fill:#888}"
    ".line{fill:none;stroke-width:2}.s0{stroke:#3b8fd0}.s1{stroke:#e69f00;stroke-width:2;fill:none}.s2{stroke:#009e73}"
    ".s3{stroke:#cc79a7}.s4{stroke:#56b4e9}.s5{stroke:#d55e00}.s6{stroke:#b8a800}.s7{stroke:#888}"
    ".roof{stroke:#333}.ideal{stroke:#999;stroke-dasharray:4 4}.run{fill:#d55e00}"
    ".grid{stroke:#ddd}.limit{stroke:#d55e00;stroke-dasharray:4 3}.label{fill:#555}.inside{fill:#111}"
    ".band{fill:#3b8fd0;fill-opacity:.15}.good{fill:#bfe3cf}.warn{fill:#f6dfa4}.bad{fill:#f0b9ac}.dim{fill:#e4e4e4}"
    ".accent{fill:#7fb2e5}.here{fill:none;stroke:#111;stroke-width:2}"
)
"""What a page would give it; colours that are told apart without red or green."""


def standalone(chart: str) -> str:
    """Return a chart as a file of its own, with colours that a page would give it."""
    named = chart.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return named.replace("<title>", f"<style>{_STYLE}</style><title>", 1)


def fill(number: int) -> str:
    """Return the class that fills a shape with the colour of a number."""
    return f"c{number % COLOURS}"


def in_words(chart: str) -> tuple[str, str]:
    """Return the title of a chart, and what it shows in words."""
    title, description = (
        unescape(chart.partition(f"<{name}>")[2].partition(f"</{name}>")[0]) for name in ("title", "desc")
    )
    return title, description


def svg(title: str, description: str, height: float, parts: Iterable[str]) -> str:
    """Return a chart of a height, with its title and what it shows in words."""
    body = "".join(parts)
    names = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    return f'<svg role="img" viewBox="0 0 {WIDTH} {height:g}" aria-label="{escape(title)}">{names}{body}</svg>'


def element(name: str, title: str = "", **attributes: object) -> str:
    """Return an element; a title is shown where the mouse is."""
    written = " ".join(f'{key.rstrip("_")}="{_attribute(value)}"' for key, value in attributes.items())
    return f"<{name} {written}><title>{escape(title)}</title></{name}>" if title else f"<{name} {written}/>"


def _attribute(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else escape(str(value))


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def polyline(positions: Iterable[tuple[float, float]], kind: str) -> str:
    """Return lines from one position to the next."""
    return element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in positions), class_=f"{kind} line")


def label(text: str, x: float, y: float, kind: str, anchor: str) -> str:
    """Return a text at a position, which is its start, middle or end."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def as_png(chart: str) -> bytes:
    """Return an SVG file as a PNG file of twice its size.

    Raises:
        MissingPartError: what converts is not installed, or the library of the system that it needs.
    """
    try:
        import cairosvg  # noqa: PLC0415 - an extra, loaded where a PNG is wanted
    except (ImportError, OSError) as error:  # it raises the latter where the system has no libcairo
        reason = (str(error).splitlines() or [""])[0]
        hint = f"{install_command('pictures')}, and libcairo of your system; SVG needs neither"
        raise MissingPartError("PNG needs CairoSVG", reason, hint) from error
    png: bytes = cairosvg.svg2png(bytestring=chart.encode(), scale=2.0, background_color="white")
    return png


@dataclass(frozen=True, slots=True)
class Plot:
    """Where the plane of a chart lies, in pixels; places on it are shares of its axes, 0 at the low end."""

    left: float
    top: float
    width: float
    height: float

    def x(self, share: float) -> float:
        """Return the pixels from the left."""
        return self.left + share * self.width

    def y(self, share: float) -> float:
        """Return the pixels from the top."""
        return self.top + (1.0 - share) * self.height

    def across(self, share: float, kind: str) -> str:
        """Return a line across the plane."""
        return line(self.left, self.y(share), self.x(1), self.y(share), kind)

    def upright(self, share: float, kind: str) -> str:
        """Return a line from the bottom to the top of the plane."""
        return line(self.x(share), self.top, self.x(share), self.y(0), kind)

    def grid(self, up: Iterable[tuple[float, str]], across: Iterable[tuple[float, str]]) -> Iterator[str]:
        """Yield lines at places of both axes, each with its text beside or below the plane."""
        for share, text in up:
            yield self.across(share, "grid")
            yield label(text, self.left - 6, self.y(share) + 4, "label", "end")
        for share, text in across:
            yield self.upright(share, "grid")
            yield label(text, self.x(share), self.y(0) + 16, "label", "middle")


_PLOT = Plot(left=100.0, top=24.0, width=WIDTH - 124.0, height=320.0)
_BELOW = 56.0  # Pixels below the plane
_WIDE_RANGE = 5.0  # From this ratio of its ends on an axis is logarithmic


def is_logarithmic(values: Sequence[float]) -> bool:
    """Return whether values are drawn on a logarithmic axis."""
    return min(values) > 0 and max(values) / min(values) >= _WIDE_RANGE


_TICKS = 5
PlotPoint = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis counts, how its values are written, and whether it is even whatever they are."""

    title: str
    written: Callable[[float], str]
    is_even: bool = False


@dataclass(frozen=True, slots=True)
class Plane:
    """Curves and points over two axes."""

    title: str
    across: Axis
    up: Axis
    curves: tuple[tuple[str, tuple[PlotPoint, ...]], ...] = ()  # lines with their names
    points: tuple[tuple[str, PlotPoint], ...] = ()  # positions that stand alone, with their names
    best: frozenset[int] = frozenset()  # indices of points that stand out
    here: PlotPoint | None = None  # a position that is marked; None for none
    # lowest, expected and highest value across the whole plane; None for none
    band: tuple[float, float, float] | None = None
    uprights: tuple[tuple[float, str], ...] = ()  # positions of the axis across where something changes, each with what
    levels: tuple[tuple[float, str], ...] = ()  # values of the axis up that are bounds, each with its name


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of coloured cells."""

    title: str
    heads: tuple[str, ...]  # what stands above the cells; none where they count parts
    rows: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # name of each row, and its cells: tone and text
    here: tuple[int, int] | None = None  # row and column of the cell that is marked; None for none


class _Scale:
    """Places of values between two ends of an axis, linear or logarithmic."""

    def __init__(self, values: Sequence[float], *, is_even: bool) -> None:
        low, high = min(values), max(values)
        self._is_log = not is_even and is_logarithmic((low, high))
        margin = 0.0 if self._is_log else 0.04 * (high - low)
        self._low, self._high = self._of(low - margin if low - margin > 0 or low <= 0 else low), self._of(high + margin)
        if self._low == self._high:
            self._low, self._high = self._low - 0.5, self._high + 0.5

    def share(self, value: float) -> float:
        """Return where a value stands, 0 at the low end and 1 at the high one."""
        return (self._of(value) - self._low) / (self._high - self._low)

    def ticks(self) -> Iterator[tuple[float, float]]:
        """Yield values at even distances, each with its position."""
        for number in range(_TICKS):
            share = number / (_TICKS - 1)
            value = self._low + share * (self._high - self._low)
            yield share, math.exp(value) if self._is_log else value

    def _of(self, value: float) -> float:
        return math.log(value) if self._is_log else value


def plane_file(plane: Plane) -> str:
    """Return a plane as a file; empty where there is nothing to draw."""
    positions = [position for _, curve in plane.curves for position in curve] + [
        position for _, position in plane.points
    ]
    if not positions:
        return ""
    heights = [y for _, y in positions] + list(plane.band or ()) + [value for value, _ in plane.levels]
    across = _Scale([x for x, _ in positions], is_even=plane.across.is_even)
    up = _Scale(heights, is_even=plane.up.is_even)
    drawn = _drawn(plane, across, up)
    return standalone(svg(plane.title, "; ".join(_described(plane)), _PLOT.y(0) + _BELOW, drawn)) + "\n"


def _described(plane: Plane) -> Iterator[str]:
    """Yield what a plane shows in words: where curves begin and end, bounds, and the points that stand out."""
    for name, curve in plane.curves:
        yield f"{name}: {plane.up.written(curve[0][1])} to {plane.up.written(curve[-1][1])}"
    if plane.band is not None:
        low, expected, high = map(plane.up.written, plane.band)
        yield f"predicted {expected} ({low} to {high})"
    for value, name in plane.levels:
        yield f"{name} at {plane.up.written(value)}"
    for value, words in plane.uprights:
        yield f"{words} at {plane.across.written(value)}"
    if plane.points:
        yield f"{len(plane.points)} points"
    for number in sorted(plane.best):
        name, (x, y) = plane.points[number]
        yield f"best: {name}, {plane.across.written(x)}, {plane.up.written(y)}"


def _drawn(plane: Plane, across: _Scale, up: _Scale) -> Iterator[str]:
    def position(x: float, y: float) -> PlotPoint:
        return _PLOT.x(across.share(x)), _PLOT.y(up.share(y))

    yield label(plane.title, _PLOT.left, 15, "label", "start")
    yield from _PLOT.grid(
        ((share, plane.up.written(value)) for share, value in up.ticks()),
        ((share, plane.across.written(value)) for share, value in across.ticks()),
    )
    yield label(plane.across.title, _PLOT.x(0.5), _PLOT.y(0) + 38, "label", "middle")
    if plane.band is not None:
        low, expected, high = map(up.share, plane.band)
        top, height = _PLOT.y(high), _PLOT.y(low) - _PLOT.y(high)
        yield element("rect", "predicted", x=_PLOT.left, y=top, width=_PLOT.width, height=height, class_="band")
        yield _PLOT.across(expected, "limit")
    for number, (value, words) in enumerate(plane.uprights):
        yield _PLOT.upright(across.share(value), "limit")
        yield label(words, _PLOT.x(across.share(value)) + 4, _PLOT.top + 14 + 14 * number, "label", "start")
    for value, name in plane.levels:
        yield _PLOT.across(up.share(value), "limit")
        yield label(name, _PLOT.left + 4, _PLOT.y(up.share(value)) - 4, "label", "start")
    for number, (name, curve) in enumerate(plane.curves):
        yield polyline([position(*point) for point in curve], f"s{number}")
        if len(plane.curves) > 1:
            yield label(name, _PLOT.x(1), _PLOT.top + 14 + 14 * number, "label", "end")
    for number, (name, point) in enumerate(plane.points):
        x, y = position(*point)
        is_best = number in plane.best
        yield element("circle", name, cx=x, cy=y, r=5.0 if is_best else 3.0, class_=fill(1 if is_best else 0))
    if plane.here is not None:
        x, y = position(*plane.here)
        yield element("circle", "here", cx=x, cy=y, r=8.0, class_="here")


_CELL, _NAMES, _LEAST_CELL = 28.0, 150.0, 10.0


def grid_file(grid: Grid) -> str:
    """Return a table of cells as a file."""
    described = "; ".join(f"{name}: {', '.join(text or tone for tone, text in cells)}" for name, cells in grid.rows)
    return standalone(svg(grid.title, described, 50 + _CELL * len(grid.rows), _cells(grid))) + "\n"


def _cells(grid: Grid) -> Iterator[str]:
    columns = max((len(cells) for _, cells in grid.rows), default=1)
    width = max(min((WIDTH - _NAMES - 8) / max(columns, 1), 90.0), _LEAST_CELL)
    yield label(grid.title, 8, 15, "label", "start")
    for number, head in enumerate(grid.heads):
        yield label(head, _NAMES + (number + 0.5) * width, 34, "label", "middle")
    for row, (name, cells) in enumerate(grid.rows):
        top = 40 + row * _CELL
        yield label(name, _NAMES - 8, top + 17, "label", "end")
        for column, (tone, text) in enumerate(cells):
            left = _NAMES + column * width
            described = f"{name}: {text or tone}"
            yield element("rect", described, x=left, y=top, width=width - 2, height=_CELL - 2, class_=tone)
            if text:
                yield label(text, left + width / 2 - 1, top + 17, "inside", "middle")
            if grid.here == (row, column):
                yield element("rect", "here", x=left, y=top, width=width - 2, height=_CELL - 2, class_="here")
