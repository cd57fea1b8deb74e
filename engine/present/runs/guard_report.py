"""What a guard did, as lines for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from capacity_tui.engine.plan import table_text
from capacity_tui.engine.runs.guard import Order, newest_checkpoint, start_of
from capacity_tui.engine.units import format_bytes, format_seconds

_Event = Mapping[str, object]


def guard_event_line(event: _Event) -> str:
    """Return what happened as one line."""
    kind = str(event["event"])
    write = _EVENT_TEXTS.get(kind)
    return kind if write is None else write(event)


def guard_rehearsal(order: Order) -> dict[str, object]:
    """Return what a guard would start, as plain data; nothing is started.

    Args:
        order: what is run.

    Raises:
        CapacityError: a file cannot be read, or a placeholder cannot be filled.
    """
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


def _reason(event: _Event) -> str:
    return str(event["reason"])


def _micro_batch(event: _Event) -> str:
    return f"the trainer continues with a micro-batch of {event['to']} in place of {event['from']}"


def _save_interval(event: _Event) -> str:
    steps = f" ({event['steps']} steps)" if event.get("steps") else ""
    return f"save every {format_seconds(float(str(event['seconds'])))}{steps}: {event['reason']}"


def _pause(event: _Event) -> str:
    return f"halted: {event['reason']}"


def _resume(event: _Event) -> str:
    return f"continues:  {event['reason']}"


def _disk_full(event: _Event) -> str:
    return (
        f"the disk is full: what is kept of the run in {event['path']} is cut short; output and exit code are passed on"
    )


def _lines_unread(event: _Event) -> str:
    return f"{event['lines']} lines so far came too fast to be read as a log: they are only passed on"


def _ending(event: _Event) -> str:
    named = _processes(event)
    return f"waiting for {named} to end; what has not ended within {event['kill_seconds']:g} s is killed"


def _signal_unanswered(event: _Event) -> str:
    return f"the signal was passed on, but {_processes(event)} goes on; kill -9 ends what answers no other signal"


def _values_not_taken(event: _Event) -> str:
    keys, variables = (", ".join(map(str, cast("list[object]", event[name]))) for name in ("keys", "variables"))
    return f"nothing in the command takes {keys}: unless it reads {variables}, it runs as before"


def _processes(event: _Event) -> str:
    return "process " + ", ".join(map(str, cast("list[object]", event["processes"])))


_EVENT_TEXTS = {
    "failure": _failure,
    "step": _reason,
    "no_step": _reason,
    "battery": _reason,
    "micro_batch": _micro_batch,
    "save_interval": _save_interval,
    "pause": _pause,
    "resume": _resume,
    "disk_full": _disk_full,
    "lines_unread": _lines_unread,
    "ending": _ending,
    "signal_unanswered": _signal_unanswered,
    "values_not_taken": _values_not_taken,
    "started": _started,
    "attached": _attached,
    "checkpoint": _checkpoint,
    "end": _end,
}
