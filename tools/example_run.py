"""Write the run that the view of runs shows before there is one of the user's own: made up, and marked so.

    uv run python -m tools.example_run

Plan and prediction are those of a bundled plan; what was "measured" is drawn around the prediction by a seeded
generator, in the form that ``monitor`` writes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from capacity_tui.engine.keys import Figure
from capacity_tui.engine.plan.files import example_text, plan_from_text
from capacity_tui.engine.runs import LiveRun
from capacity_tui.engine.runs.history import RunRecord, history_entry
from capacity_tui.engine.solve import answer

FOLDER = Path(__file__).parents[1] / "profiles" / "examples" / "run"
PLAN = "qlora_rtx_4090"
COMMAND = ("python", "finetune.py", "--config", "qlora.yaml")
BEGAN = datetime(2026, 9, 14, 8, 0, tzinfo=UTC)
STEPS, STEPS_BETWEEN_LOOKS = 1875, 15
HOT = range(1110, 1245)  # Steps at which the device is held back by its temperature
GIB = 2**30


def looks(record: RunRecord, chance: random.Random) -> Iterator[dict[str, object]]:
    """Yield samples and events of the run in their order."""
    expected, tokens = (record.predicted[key]["value"] for key in (Figure.STEP_SECONDS, Figure.TOKENS_PER_SECOND))
    memory = record.predicted[Figure.MEMORY_RESERVED_BYTES]["value"]
    at = BEGAN
    for step in range(STEPS_BETWEEN_LOOKS, STEPS + 1, STEPS_BETWEEN_LOOKS):
        is_hot = step in HOT
        slower = (1.14 if is_hot else 1.03) * chance.gauss(1.0, 0.012)
        at += timedelta(seconds=expected * slower * STEPS_BETWEEN_LOOKS)
        if step == HOT.start:
            yield {
                "time": stamp(at),
                "event": "alarm",
                "level": "warning",
                "title": "held back by temperature",
                "where": "GPU 0",
                "detail": "clocks fell by 12 % at 83 C",
                "remedy": "more air, or a lower power limit",
            }
        if step == HOT.stop:
            yield {"time": stamp(at), "event": "notice", "text": "GPU 0 at full clocks again"}
        held = memory * min(0.99 + 0.06 * step / 400, 1.05)
        gpu = {
            "index": 0,
            "utilization_percent": round(chance.uniform(95, 99)),
            "memory_used_bytes": round(held),
            "memory_total_bytes": 24564 * 2**20,
            "power_watts": round(chance.gauss(318 if is_hot else 372, 5)),
            "power_limit_watts": 450.0,
            "temperature_celsius": round(chance.gauss(83 if is_hot else 74, 0.7)),
            "throttle": ["temperature"] if is_hot else [],
            "holders": [{"pid": 4711, "name": "python", "memory_bytes": round(held)}],
        }
        yield {
            "time": stamp(at),
            "event": "state",
            "step": step,
            "total_steps": STEPS,
            "loss": round(0.98 + 0.62 * (step / STEPS_BETWEEN_LOOKS) ** -0.42 + chance.gauss(0.0, 0.018), 4),
            "step_seconds": round(expected * slower, 3),
            "tokens_per_second": round(tokens / slower, 1),
            "compared": list(compared(record, expected * slower, tokens / slower, held)) if step == STEPS else [],
            "process": {"processes": 5, "rss_bytes": round(chance.gauss(9.4, 0.05) * GIB), "cpu_percent": 118.0},
            "gpus": [gpu],
        }


def compared(record: RunRecord, seconds: float, tokens: float, memory: float) -> Iterator[dict[str, object]]:
    """Yield measured figures beside those predicted."""
    keys = (Figure.STEP_SECONDS, Figure.TOKENS_PER_SECOND, Figure.MEMORY_RESERVED_BYTES)
    for key, value in zip(keys, (seconds, tokens, memory), strict=True):
        ends = record.predicted[key]
        if not ends["low"] <= value <= ends["high"]:
            raise ValueError(f"{key}: the example is to stay inside its range")
        ratio = round(value / ends["value"], 4)
        yield {"figure": str(key), "actual": round(value, 3), "ratio": ratio, "verdict": "inside"}


def stamp(moment: datetime) -> str:
    """Return a time as events have it."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def main() -> None:
    """Write the folder anew."""
    entry = history_entry(answer(plan_from_text(example_text(PLAN), PLAN)), "run", started=stamp(BEGAN))
    predicted = {
        key: entry.predicted[key] for key in entry.predicted if key.partition(".")[0] in ("memory", "computation")
    }
    machine = {"name": "example", "system": "Linux", "hardware": "1 x rtx-4090"}
    record = RunRecord(
        "run", entry.plan, machine, predicted, {}, entry.device, {"command": COMMAND}, entry.started, "example"
    )
    events = list(looks(record, random.Random(32)))  # anybody may know them
    run = LiveRun(FOLDER, record, "monitor", None, None, ended=str(events[-1]["time"]), exit_code=0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "run.json").write_text(json.dumps(run.data(), indent=1) + "\n")
    lines = (json.dumps(event, separators=(",", ":")) for event in events)
    (FOLDER / "events.jsonl").write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
