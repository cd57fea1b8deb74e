"""The course of a run as graphs alongside what was predicted, and the devices it works on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from capacity_tui.engine.keys import Figure
from capacity_tui.engine.runs import RunCourse, gpus_of, number
from capacity_tui.engine.units import (
    format_bytes,
    format_number,
    format_power,
    format_quantity,
    format_seconds,
    format_temperature,
)
from capacity_tui.tui.view import Band, RunDevice, RunEvent, RunGraph

FIGURES = (
    ("step_seconds", "step time", "s", Figure.STEP_SECONDS),
    ("loss", "loss", "", ""),
    ("tokens_per_second", "tokens/s", "tok/s", Figure.TOKENS_PER_SECOND),
    ("samples_per_second", "samples/s", "samples/s", Figure.SAMPLES_PER_SECOND),
    ("device_memory_bytes", "device memory", "B", Figure.MEMORY_RESERVED_BYTES),
    ("main_memory_bytes", "main memory", "B", ""),
)
"""Name in the course, title, unit, and the key of the prediction."""

_DRAWN = 200  # Buckets of points: two of each are drawn
_GROWTH = 1.25  # The room for what is to come grows by this, so that a curve does not move with each look
_MARGIN = 0.05
_FARTHEST = 3.0  # A prediction this many times off is not drawn: the curve would be a line at the edge


def graphs_of(course: RunCourse, predicted: Mapping[str, Mapping[str, float]], window: float) -> Iterator[RunGraph]:
    """Yield the figures of the newest share of a run, with the predicted ends of ranges by result key."""
    compared = _compared(course)
    for name, title, unit, key in FIGURES:
        curve = course.curves.get(name, [])
        if curve:
            places = _places(curve[0][0], curve[-1][0], window)
            points = _thinned([point for point in curve if point[0] >= places[0]] or curve[-1:])
            yield _graph(title, unit, course.axes[name], points, places, _band(predicted.get(key)), compared.get(key))


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
        low=_text(low, unit).removesuffix(f" {unit}" if unit.endswith("/s") else ""),
        high=_text(high, unit).removesuffix(f" {unit}" if unit.endswith("/s") else ""),
        ends=(low, high),
        band=band if is_near else None,
        predicted="" if band is None else _range_text(band, unit),
        verdict=verdict or "",
        is_inside=verdict in (None, "inside"),
        unit=unit,
        axis=axis,
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
    kept = []
    for start in range(0, len(points), size):
        bucket = points[start : start + size]
        kept += sorted({min(bucket, key=lambda point: point[1]), max(bucket, key=lambda point: point[1])})
    return (*kept, points[-1]) if kept[-1] != points[-1] else tuple(kept)


def _band(ends: Mapping[str, float] | None) -> Band | None:
    if not ends or "value" not in ends:
        return None
    value = ends["value"]
    return Band(ends.get("low", value), value, ends.get("high", value))


def _compared(course: RunCourse) -> dict[str, str]:
    """Return on which side of its prediction each figure lies, as the newest look tells."""
    value = course.look.get("compared")
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return {str(row.get("figure")): _verdict(row) for row in rows}


def _verdict(row: Mapping[str, object]) -> str:
    side, ratio = str(row.get("verdict", "")), number(row.get("ratio"))
    return side if side == "inside" or ratio is None else f"{side}: {ratio:.2f} × of"


def _text(value: float, unit: str) -> str:
    return format_quantity(value, unit) if unit else f"{value:.4g}"


_CORE = 100.0
_LEVELS = {"failure": "error", "step": "warning"}
"""What a guarded run meets, and what is done about it, without a level of its own."""


def devices_of(look: dict[str, object]) -> Iterator[RunDevice]:
    """Yield the devices of a look, and what the run's processes use of the machine."""
    for place, gpu in enumerate(gpus_of(look)):
        busy = number(gpu.get("utilization_percent"))
        throttle = gpu.get("throttle")
        yield RunDevice(
            f"GPU{gpu.get('index', place)}",
            "  ".join(filter(None, ("" if busy is None else f"{busy:.0f} %", *_readings(gpu)))),
            None if busy is None else busy / 100,
            ", ".join(map(str, throttle)) if isinstance(throttle, list | tuple) else "",
            tuple(_holders(gpu)),
        )
    process = look.get("process")
    compared = process if isinstance(process, dict) else look
    cpu = number(compared.get("cpu_percent"))
    held = number(compared.get("rss_bytes")) or number(compared.get("memory_bytes"))
    text = "  ".join(
        filter(None, ("" if cpu is None else f"{cpu / _CORE:.1f} cores", format_bytes(held) if held else ""))
    )
    if text:
        yield RunDevice("run", text, processes=tuple(_processes(compared.get("largest"))))


def events_of(compared: Iterable[dict[str, object]]) -> Iterator[RunEvent]:
    """Yield what was reported of a run, in the order of the events."""
    for event in compared:
        time = str(event.get("time", ""))[11:19]
        kind = str(event.get("event", ""))
        level = str(event.get("level") or _LEVELS.get(kind, "note"))
        yield RunEvent(time, level, " ".join(filter(None, _words(kind, event))))


def _words(kind: str, event: Mapping[str, object]) -> Iterator[str]:
    if kind == "alarm":
        where = f" ({event['where']})" if event.get("where") else ""
        yield f"{event.get('title', '')}{where}: {event.get('detail', '')};"
        yield str(event.get("remedy", ""))
    elif kind == "notice":
        yield str(event.get("text", ""))
    else:
        yield f"{kind}:"
        yield ", ".join(
            f"{name} {value}" for name, value in event.items() if name not in ("time", "event", "level") and value
        )


def _readings(gpu: Mapping[str, object]) -> Iterator[str]:
    used, total = number(gpu.get("memory_used_bytes")), number(gpu.get("memory_total_bytes"))
    if used is not None:
        full, _, unit = format_bytes(total).rpartition(" ")
        part, _, own = format_bytes(used).rpartition(" ")
        yield f"{part}/{full} {unit}" if own == unit else f"{part} {own}/{full} {unit}"
    watts, limit = number(gpu.get("power_watts")), number(gpu.get("power_limit_watts"))
    if watts is not None:
        yield format_power(watts) if limit is None else f"{watts:.0f}/{format_power(limit)}"
    heat = number(gpu.get("temperature_celsius"))
    if heat is not None:
        yield format_temperature(heat)


def _holders(gpu: Mapping[str, object]) -> Iterator[str]:
    value = gpu.get("holders")
    for holder in value if isinstance(value, list) else ():
        held = number(holder.get("memory_bytes"))
        name = holder.get("name") or "another program"
        yield f"{holder.get('pid')}  {name}" + ("" if held is None else f"  {format_bytes(held)}")


def _processes(value: object) -> Iterator[str]:
    for process in value if isinstance(value, list) else ():
        held = number(process.get("rss_bytes"))
        yield f"{process.get('pid')}  {process.get('name')}" + ("" if held is None else f"  {format_bytes(held)}")


def left_text(look: Mapping[str, object]) -> str:
    """Return how long a run still takes, as its newest look tells; empty where it does not."""
    left = look.get("eta")
    seconds = number(left.get("value")) if isinstance(left, dict) else None
    return "" if seconds is None else format_seconds(seconds)
