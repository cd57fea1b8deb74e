"""The course of a run as graphs: which figures, over what, beside what was predicted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from capacity_tui.engine.keys import Figure
from capacity_tui.engine.observe.runs import number
from capacity_tui.engine.units import format_number, format_quantity, format_seconds
from capacity_tui.tui.shown.watched import Band, RunGraph

if TYPE_CHECKING:
    from capacity_tui.engine.observe.runs import RunCourse

FIGURES = (
    ("step_seconds", "step time", "s", Figure.STEP_SECONDS),
    ("loss", "loss", "", ""),
    ("tokens_per_second", "tokens/s", "tok/s", Figure.TOKENS_PER_SECOND),
    ("samples_per_second", "samples/s", "samples/s", Figure.SAMPLES_PER_SECOND),
    ("device_memory_bytes", "device memory", "B", Figure.MEMORY_RESERVED_BYTES),
    ("main_memory_bytes", "main memory", "B", ""),
)
"""Name in the course, title, unit, and the key of the prediction."""
_DRAWN = 200
"""Buckets of points: two of each are drawn."""
_GROWTH = 1.25
"""The room for what is to come grows by this, so that a curve does not move with each look."""
_MARGIN = 0.05
_FARTHEST = 3.0
"""A prediction this many times off is not drawn: the curve would be a line at the edge."""


def graphs_of(course: RunCourse, predicted: Mapping[str, Mapping[str, float]], window: float) -> Iterator[RunGraph]:
    """Yield the figures of a run.

    Args:
        course: how it went.
        predicted: ends of ranges by result key.
        window: share of it that is shown, the newest.
    """
    told = _compared(course)
    for name, title, unit, key in FIGURES:
        curve = course.curves.get(name, [])
        if curve:
            places = _places(curve[0][0], curve[-1][0], window)
            points = _thinned([point for point in curve if point[0] >= places[0]] or curve[-1:])
            yield _graph(title, unit, course.axes[name], points, places, _band(predicted.get(key)), told.get(key))


def _graph(
    title: str,
    unit: str,
    axis: str,
    points: tuple[tuple[float, float], ...],
    places: tuple[float, float],
    band: Band | None,
    verdict: str | None,
) -> RunGraph:
    values = [value for _, value in points]
    now = points[-1][1]
    is_near = band is not None and max(values) * _FARTHEST >= band.low and min(values) <= band.high * _FARTHEST
    seen = [*values, band.low, band.high] if band is not None and is_near else values
    margin = _MARGIN * ((max(seen) - min(seen)) or abs(now) or 1.0)
    low, high = min(seen) - margin, max(seen) + margin
    low = max(low, 0.0) if min(seen) >= 0 else low
    place: Callable[[float], str] = format_number if axis == "step" else format_seconds
    begins = "step " if axis == "step" else ""
    return RunGraph(
        title=title,
        now=_text(now, unit),
        points=points,
        places=places,
        first=f"{begins}{place(points[0][0])}",
        last=f"{begins}{place(points[-1][0])}",
        low=_text(low, unit),
        high=_text(high, unit),
        ends=(low, high),
        band=band if is_near else None,
        predicted="" if band is None else _range_text(band, unit),
        verdict=verdict or "",
        is_inside=verdict in (None, "inside"),
    )


def _range_text(band: Band, unit: str) -> str:
    value, low, high = (_text(end, unit) for end in (band.value, band.low, band.high))
    return value if low == high else f"{value} ({low} – {high})"


def _places(first: float, last: float, window: float) -> tuple[float, float]:
    """Return the first and the last place that there is room for."""
    length = max(last - first, 1.0)
    room = _GROWTH ** math.ceil(math.log(length, _GROWTH) - 1e-9)
    return (first, first + room) if window >= 1 else (last - length * window, last)


def _thinned(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return fewer points: the lowest and the highest of each bucket, in their order, and the newest."""
    size = -(-len(points) // _DRAWN)
    if size <= 2:
        return tuple(points)
    found = []
    for start in range(0, len(points), size):
        bucket = points[start : start + size]
        found += sorted({min(bucket, key=lambda point: point[1]), max(bucket, key=lambda point: point[1])})
    return (*found, points[-1]) if found[-1] != points[-1] else tuple(found)


def _band(ends: Mapping[str, float] | None) -> Band | None:
    if not ends or "value" not in ends:
        return None
    value = ends["value"]
    return Band(ends.get("low", value), value, ends.get("high", value))


def _compared(course: RunCourse) -> dict[str, str]:
    """Return on which side of its prediction each figure lies, as the newest look tells."""
    found = course.look.get("compared")
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    return {str(row.get("figure")): _verdict(row) for row in rows}


def _verdict(row: Mapping[str, object]) -> str:
    side, ratio = str(row.get("verdict", "")), number(row.get("ratio"))
    return side if side == "inside" or ratio is None else f"{side}: {ratio:.2f} × of"


def _text(value: float, unit: str) -> str:
    return format_quantity(value, unit) if unit else f"{value:.4g}"
