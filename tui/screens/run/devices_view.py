"""What a run works on, as its newest look tells: devices with who holds their memory, and processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from capacity_tui.engine.observe.runs import gpus_of, number
from capacity_tui.engine.units import format_bytes, format_power, format_seconds, format_temperature
from capacity_tui.tui.shown.watched import RunDevice, RunEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

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
            "  ".join(filter(None, (_percent(busy), *_readings(gpu)))),
            None if busy is None else busy / 100,
            ", ".join(map(str, throttle)) if isinstance(throttle, list | tuple) else "",
            tuple(_holders(gpu)),
        )
    process = look.get("process")
    told = process if isinstance(process, dict) else look
    cpu = number(told.get("cpu_percent"))
    held = number(told.get("rss_bytes")) or number(told.get("memory_bytes"))
    text = "  ".join(
        filter(None, ("" if cpu is None else f"{cpu / _CORE:.1f} cores", format_bytes(held) if held else ""))
    )
    if text:
        yield RunDevice("run", text, processes=tuple(_processes(told.get("largest"))))


def events_of(told: Iterable[dict[str, object]]) -> Iterator[RunEvent]:
    """Yield what was told of a run, in the order of the events."""
    for event in told:
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
    found = gpu.get("holders")
    for holder in found if isinstance(found, list) else ():
        held = number(holder.get("memory_bytes"))
        name = holder.get("name") or "another program"
        yield f"{holder.get('pid')}  {name}" + ("" if held is None else f"  {format_bytes(held)}")


def _processes(found: object) -> Iterator[str]:
    for process in found if isinstance(found, list) else ():
        held = number(process.get("rss_bytes"))
        yield f"{process.get('pid')}  {process.get('name')}" + ("" if held is None else f"  {format_bytes(held)}")


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} %"


def left_text(look: Mapping[str, object]) -> str:
    """Return how long a run still takes, as its newest look tells; empty where it does not."""
    found = look.get("eta")
    value = number(found.get("value")) if isinstance(found, dict) else None
    return "" if value is None else format_seconds(value)
