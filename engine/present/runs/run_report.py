"""A run that is watched or guarded, as data for scripts and as lines for people."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.machine.vendors import GpuSample
from capacity_tui.engine.plan import table_text
from capacity_tui.engine.runs import ProcessSample, TreeSample
from capacity_tui.engine.runs.guard import Order, newest_checkpoint, start_of
from capacity_tui.engine.runs.monitor import STEP, TOKENS, Alarm, Compared, RunState
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import (
    NOT_AVAILABLE,
    format_bytes,
    format_count,
    format_number,
    format_power,
    format_quantity,
    format_seconds,
    format_temperature,
)

_MOST_PROCESSES = 8
_REPORTED = (
    "step",
    "total_steps",
    "epoch",
    "loss",
    "learning_rate",
    "grad_norm",
    "tokens",
    "samples",
    "memory_bytes",
    "prompt_tokens_per_second",
    "running_requests",
    "waiting_requests",
    "cache_share",
)


def run_state_as_dict(state: RunState) -> dict[str, object]:
    """Return how a run stands as plain data; what is no number is null."""
    figures: dict[str, object] = {name: _finite(state.figures[name]) for name in _REPORTED if name in state.figures}
    return {
        "event": "state",
        "seconds": round(state.seconds, 3),
        "program": state.program or None,
        **figures,
        **{key.rpartition(".")[2]: _finite(value) for key, value in state.actual.items()},
        "step_times": [[step, round(seconds, 6)] for step, seconds in state.step_times],
        "eta": None if state.left is None else _ends(state.left),
        "compared": [
            {
                "figure": entry.key,
                "predicted": _ends(entry.predicted),
                "actual": _finite(entry.actual),
                "ratio": _finite(entry.ratio),
                "verdict": entry.side,
            }
            for entry in state.compared
        ],
        "why": [{"code": reason.code, "text": reason.text} for reason in state.reasons],
        "alarms": [alarm.kind for alarm in state.active],
        **_machine(state),
    }


def run_events(state: RunState, last: bool = False) -> Iterator[dict[str, object]]:
    """Yield what a look at a run brought: notices, alarms, and how it stands; ``last``: nobody looks again."""
    for notice in state.notices:
        yield {"event": "notice", "text": notice}
    yield from map(alarm_as_dict, state.alarms)
    yield {**run_state_as_dict(state), "last": last}


def alarm_as_dict(alarm: Alarm) -> dict[str, object]:
    """Return something that goes wrong as plain data."""
    return {
        "event": "alarm",
        "kind": alarm.kind,
        "level": alarm.level,
        "where": alarm.where or None,
        "title": alarm.title,
        "detail": alarm.detail,
        "remedy": alarm.remedy,
        "figures": {name: _finite(value) for name, value in alarm.figures.items()},
    }


def alarm_line(alarm: Alarm) -> str:
    """Return something that goes wrong as one line."""
    where = f" ({alarm.where})" if alarm.where else ""
    return f"{alarm.level}: {alarm.title}{where}: {alarm.detail}; {alarm.remedy}"


def progress_line(state: RunState) -> str:
    """Return how far a run is, and how fast, in one line."""
    return "  ".join(_progress(state)) or "no data yet"


def compared_rows(state: RunState) -> list[tuple[str, str, str, str]]:
    """Return figures predicted and measured: name, predicted with its range, now, and the verdict."""
    return [
        (entry.metric.label, _band(entry), format_quantity(entry.actual, entry.metric.unit), _verdict(entry))
        for entry in state.compared
    ]


def machine_lines(state: RunState) -> list[str]:
    """Return what processes and devices do, a line each."""
    seen = state.observation
    if seen is None:
        return []
    cpu, memory = seen.run.cpu_percent.value, seen.run.rss_bytes.value
    parts = (
        f"{len(seen.run.processes)} process{'' if len(seen.run.processes) == 1 else 'es'}",
        f"{cpu / 100:.1f} cores" if cpu is not None else "",
        format_bytes(memory) if memory is not None else "",
    )
    return ["  ".join(part for part in parts if part), *map(_gpu_line, seen.system.gpus.value or ())]


def _progress(state: RunState) -> Iterator[str]:
    figures = state.figures
    if "step" in figures:
        total = f"/{format_number(figures['total_steps'])}" if figures.get("total_steps") else ""
        yield f"step {format_number(figures['step'])}{total}"
    if "loss" in figures:
        yield f"loss {figures['loss']:.4g}"
    if STEP in state.actual:
        yield f"{format_seconds(state.actual[STEP])} a step"
    speed = state.actual.get(TOKENS, figures.get("tokens_per_second"))
    if speed is not None:
        yield f"{format_count(speed)} tok/s"
    if "samples_per_second" in figures:
        yield f"{format_count(figures['samples_per_second'])} samples/s"
    if "running_requests" in figures:
        waiting = figures.get("waiting_requests")
        yield f"{format_number(figures['running_requests'])} requests run" + (
            f", {format_number(waiting)} wait" if waiting is not None else ""
        )
    if state.left is not None:
        yield f"{format_seconds(float(state.left.value))} left ({_between(state.left)})"


def _between(interval: Interval) -> str:
    low, high = format_seconds(float(interval.low)), format_seconds(float(interval.high))
    return low if low == high else f"{low} - {high}"


def _machine(state: RunState) -> dict[str, object]:
    seen = state.observation
    if seen is None:
        return {}
    run = seen.run
    own = [held.value for held in seen.gpu_memory_bytes]
    names = {process.pid: process.name for process in run.processes}
    return {
        "process": {
            "processes": len(run.processes),
            "largest": [
                {"pid": entry.pid, "name": entry.name, "rss_bytes": entry.rss_bytes.value} for entry in _largest(run)
            ],
            **_values(run, "rss_bytes", "cpu_percent", "read_bytes", "written_bytes"),
        },
        "gpus": [
            {
                "index": gpu.index,
                **_values(gpu, "utilization_percent", "memory_used_bytes"),
                "memory_own_bytes": held,
                **_values(gpu, "memory_total_bytes", "power_watts", "power_limit_watts", "temperature_celsius"),
                "throttle": None if gpu.throttle.value is None else list(gpu.throttle.value),
                "holders": [
                    {"pid": pid, "name": names.get(pid, ""), "memory_bytes": held_by}
                    for pid, held_by in gpu.holders.value or ()
                ],
            }
            for gpu, held in zip(seen.system.gpus.value or (), own, strict=True)
        ],
    }


def _values(sample: TreeSample | GpuSample, *names: str) -> dict[str, object]:
    return {name: getattr(sample, name).value for name in names}


def _largest(run: TreeSample) -> list[ProcessSample]:
    """Return those of a run's processes that hold most main memory."""
    return sorted(run.processes, key=lambda process: -(process.rss_bytes.value or 0))[:_MOST_PROCESSES]


def _gpu_line(gpu: GpuSample) -> str:
    busy = NOT_AVAILABLE if gpu.utilization_percent.value is None else f"{gpu.utilization_percent.value:.0f} %"
    used, total = (format_bytes(fact.value) for fact in (gpu.memory_used_bytes, gpu.memory_total_bytes))
    heat, power = format_temperature(gpu.temperature_celsius.value), format_power(gpu.power_watts.value)
    held = f"  throttled:  {', '.join(gpu.throttle.value)}" if gpu.throttle.value else ""
    return f"GPU {gpu.index}  {busy} busy  {used} of {total}  {power}  {heat}{held}"


def _band(compared: Compared) -> str:
    value, low, high = (format_quantity(float(end), compared.metric.unit) for end in compared.predicted.ends)
    return value if low == high else f"{value} ({low} - {high})"


def _verdict(compared: Compared) -> str:
    ratio = f", {compared.ratio:.2f} x" if math.isfinite(compared.ratio) and compared.side != "inside" else ""
    return f"{compared.side}{ratio}"


def _ends(interval: Interval) -> Mapping[str, float | None]:
    value, low, high = (_finite(float(end)) for end in interval.ends)
    return {"value": value, "low": low, "high": high}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


_Event = Mapping[str, object]


def guard_event_line(event: _Event) -> str:
    """Return what happened as one line."""
    kind = str(event["event"])
    if kind in _EVENTS:
        return _EVENTS[kind](event)
    values = {
        name: ", ".join(map(str, value)) if isinstance(value, list | tuple) else value for name, value in event.items()
    }
    text: str = report_words()["events"].get(kind, "{event}")
    return text.format_map(values)


def guard_rehearsal(order: Order) -> dict[str, object]:
    """Return what a guard would start, as plain data; nothing is started."""
    checkpoint = newest_checkpoint(order)
    start = start_of(order, Path("RUN") / "attempt-1", "RUN", checkpoint)
    return {
        "event": "dry_run",
        "command": list(start.words),
        "checkpoint": None if checkpoint is None else str(checkpoint.path),
        "files": {str(path): text for path, text in start.copies.items()},
        "environment": dict(start.variables),
        "watch": order.plan.watch.model_dump(mode="json"),
        "recovery": order.plan.recovery.model_dump(mode="json"),
    }


def guard_rehearsal_lines(event: _Event) -> Iterator[str]:
    """Yield what a guard would start, as lines."""
    yield f"would start: {_command(event['command'])}"
    if event["checkpoint"]:
        yield f"from: {event['checkpoint']}"
    for path, text in cast("Mapping[str, str]", event["files"]).items():
        yield f"{path}:"
        yield from (f"  {line}" for line in text.splitlines())
    for section in ("watch", "recovery"):
        yield f"{section}: {table_text(event[section])}"


def _command(words: object) -> str:
    return shlex.join(map(str, words)) if isinstance(words, list) else str(words)


def _started(event: _Event) -> str:
    again = "" if event["attempt"] == 1 else f" again (attempt {event['attempt']})"
    checkpoint = event.get("checkpoint")
    since = f" from {checkpoint}" if checkpoint else ""
    return f"started{again} as process {event['pid']}{since}: {_command(event['command'])}"


def _attached(event: _Event) -> str:
    state = "goes on" if event["goes_on"] else "has ended meanwhile"
    return f"taken up: attempt {event['attempt']} {state}"


def _checkpoint(event: _Event) -> str:
    seconds = float(str(event["seconds"]))
    took = f", written in {format_seconds(seconds)}" if seconds else ""
    return f"checkpoint {event['path']} is complete: {format_bytes(float(str(event['bytes'])))}{took}"


def _end(event: _Event) -> str:
    restarts = event["restarts"]
    again = "" if not restarts else f" after {restarts} restart{'' if restarts == 1 else 's'}"
    return f"ended with exit code {event['exit_code']} in {format_seconds(float(str(event['seconds'])))}{again}"


def _failure(event: _Event) -> str:
    evidence = f": {event['evidence']}" if event.get("evidence") else ""
    return f"{event['name']}{evidence}"


def _save_interval(event: _Event) -> str:
    steps = f" ({event['steps']} steps)" if event.get("steps") else ""
    return f"save every {format_seconds(float(str(event['seconds'])))}{steps}: {event['reason']}"


_EVENTS: Mapping[str, Callable[[_Event], str]] = {
    "failure": _failure,
    "save_interval": _save_interval,
    "started": _started,
    "attached": _attached,
    "checkpoint": _checkpoint,
    "end": _end,
}


@cache
def report_words() -> Mapping[str, Mapping[str, Any]]:
    """Return texts of events and charts of profiles, by their names."""
    return parse_shipped("run_reports.yaml")
