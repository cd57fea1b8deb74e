"""The history of runs as tables, as files for other programs, and as plain data that scripts rely on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from capacity_tui.engine.estimate import ITERATIONS, METRICS, read_figure, usual_words
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.plan import all_fields, leaves
from capacity_tui.engine.present.parts import Column, TablePart, columns_part, difference_text
from capacity_tui.engine.present.results import plan_value_text
from capacity_tui.engine.printable import csv_table, printable
from capacity_tui.engine.runs.history import RunRecord, as_data
from capacity_tui.engine.runs.sampling import Learnt
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_number, format_quantity

FIGURE_HEADS = ("figure", "predicted", "range", "measured", "ratio")
COMPARED_HEADS = ("", "first", "second", "change")
_MEMORY, _STEP = Figure.MEMORY_RESERVED_BYTES, Figure.STEP_SECONDS
_UNITS = {"bytes": "B", "seconds": "s", "percent": "%", "watts": "W", "usd": "USD", "confidence": "share"}
_TO_THE_MINUTE = 16
_LONGEST_COMMAND = 24
_NONE = "–"
_LEAST_CHANGE = 0.005


def runs_as_data(runs: Sequence[RunRecord]) -> dict[str, object]:
    """Return entries of the history as plain data."""
    return {"runs": [as_data(run) for run in runs]}


_COLUMNS: Sequence[Column[RunRecord]] = (
    Column("id", lambda run: run.id, is_kept=True),
    Column("started (UTC)", lambda run: run.started[:_TO_THE_MINUTE].replace("T", " "), is_kept=True),
    Column("kind", lambda run: run.kind, is_kept=True),
    Column("what", lambda run: printable(what_ran(run)) or _NONE, is_kept=True),
    Column("memory", lambda run: _predicted(run, _MEMORY), is_right=True),
    Column("step", lambda run: _predicted(run, _STEP), is_right=True),
    Column("ratio", lambda run: _ratio(run.ratio.get(_STEP, run.ratio.get(_MEMORY))), is_right=True),
    Column("hardware", lambda run: printable(hardware_of(run)) or _NONE),
    Column("measured memory", lambda run: _actual(run, _MEMORY), is_right=True),
    Column("measured step", lambda run: _actual(run, _STEP), is_right=True),
)


def listed_runs(runs: Sequence[RunRecord]) -> TablePart:
    """Return a table of entries, a row each."""
    return columns_part(_COLUMNS, runs)


def heading(run: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield what there is to tell of an entry besides its figures, each with its name."""
    yield "id", run.id
    yield "kind", run.kind
    yield "started", run.started
    if run.plan is not None:
        yield Key.TASK, str(run.plan.get(Key.TASK) or "")
        yield "model", run.model
    for name, value in (*run.machine.items(), *run.details.items()):
        if not isinstance(value, Mapping) and value not in ("", None):
            yield "host" if name == "name" else name.replace("_", " "), _words(name, value)


def figure_rows(run: RunRecord) -> list[tuple[str, ...]]:
    """Return a row a figure, as under ``FIGURE_HEADS``: what was measured first."""
    keys = dict.fromkeys((*(key for key in run.actual if key in run.predicted), *run.actual, *run.predicted))
    return [
        (_label(run, key), _predicted(run, key), _range(run, key), _actual(run, key), _ratio(run.ratio.get(key)))
        for key in keys
    ]


def differing_settings(first: RunRecord, second: RunRecord) -> list[tuple[str, object, object]]:
    """Return the path of each setting that two plans have differently, with its settings; None where one has none."""
    settings = [dict(leaves(run.plan)) if run.plan else {} for run in (first, second)]
    paths = dict.fromkeys((*settings[0], *settings[1]))
    return [(path, a, b) for path in paths if (a := settings[0].get(path)) != (b := settings[1].get(path))]


def setting_rows(first: RunRecord, second: RunRecord) -> list[tuple[str, ...]]:
    """Return a row a setting that differs, as under ``COMPARED_HEADS``."""
    known = all_fields()
    return [
        (
            known[path].knob.label if path in known else path,
            plan_value_text(a) or _NONE,
            plan_value_text(b) or _NONE,
            "",
        )
        for path, a, b in differing_settings(first, second)
    ]


def compared_run_rows(first: RunRecord, second: RunRecord) -> list[tuple[str, ...]]:
    """Return a row a figure that two entries have, predicted and measured, as under ``COMPARED_HEADS``."""
    rows: list[tuple[str, ...]] = []
    for key in dict.fromkeys((*first.actual, *second.actual, *first.predicted, *second.predicted)):
        for word, a, b in (
            ("measured", first.actual.get(key), second.actual.get(key)),
            ("predicted", _central(first, key), _central(second, key)),
        ):
            if a is not None or b is not None:
                texts = (_figure_text(key, a), _figure_text(key, b))
                rows.append((f"{_label(first, key)}, {word}", *texts, _change(a, b)))
    return rows


def compared_as_data(first: RunRecord, second: RunRecord) -> dict[str, object]:
    """Return two entries and where they differ as plain data."""
    settings = [{"key": path, "values": [a, b]} for path, a, b in differing_settings(first, second)]
    return {**runs_as_data((first, second)), "settings": settings}


def as_json_lines(runs: Sequence[RunRecord]) -> str:
    """Return a line of JSON an entry."""
    return "".join(json.dumps(as_data(run), separators=(",", ":")) + "\n" for run in runs)


def as_csv(runs: Sequence[RunRecord]) -> str:
    """Return a row an entry, with a column for every figure and every setting of the plan."""
    rows = [_flat(run) for run in runs]
    columns = list(dict.fromkeys(("id", "kind", "started", "model", "hardware", *(key for row in rows for key in row))))
    return csv_table(columns, rows)


def _flat(run: RunRecord) -> dict[str, object]:
    data = {key: value for key, value in as_data(run).items() if value}
    return {"model": run.model, "hardware": hardware_of(run), **dict(leaves(data))}


def what_ran(run: RunRecord) -> str:
    """Return the model of a run; of one without a plan, what was started."""
    command = run.details.get("command")
    started = " ".join(map(str, command)) if isinstance(command, list | tuple) else str(command or "")
    return run.model or (started if len(started) <= _LONGEST_COMMAND else f"{started[: _LONGEST_COMMAND - 3]}...")


def hardware_of(run: RunRecord) -> str:
    """Return what it ran on, in words."""
    return str(run.machine.get("hardware") or run.hardware)


def _label(run: RunRecord, key: str) -> str:
    """Return what a figure is called in the words of a run, as far as the entry knows them."""
    task = str((run.plan or {}).get(Key.TASK) or "")
    if key not in METRICS:
        return key.replace("_", " ")
    return usual_words(METRICS[key].label, iteration=ITERATIONS.get(task, "step"), counted="units", unit="unit")


def _unit(key: str) -> str:
    if key in METRICS:
        return usual_words(METRICS[key].unit, counted="units")
    return next((unit for ending, unit in _UNITS.items() if key.endswith(ending)), "")


def _figure_text(key: str, value: float | None) -> str:
    return _NONE if value is None else format_quantity(value, _unit(key))


def _central(run: RunRecord, key: str) -> float | None:
    return run.predicted.get(key, {}).get("value")


def _predicted(run: RunRecord, key: str) -> str:
    return _figure_text(key, _central(run, key))


def _actual(run: RunRecord, key: str) -> str:
    return _figure_text(key, run.actual.get(key))


def _range(run: RunRecord, key: str) -> str:
    ends = run.predicted.get(key, {})
    if "low" not in ends or "high" not in ends:
        return ""
    return f"{format_quantity(ends['low'], _unit(key))} to {format_quantity(ends['high'], _unit(key))}"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _change(first: float | None, second: float | None) -> str:
    if not first or second is None or abs(second / first - 1.0) < _LEAST_CHANGE:
        return ""
    return difference_text(second / first - 1.0)


def _words(name: str, value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format_quantity(value, _unit(name)) if _unit(name) else format_number(value)
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def learnt_text(learnt: Learnt) -> str:
    """Return what a run taught in a sentence: what that made of its own plan's figures, and what estimates rest on."""
    changes = (f"{name} {before} before, {after} now" for name, before, after in _changes(learnt))
    others = len(learnt.measured.runs) - learnt.alike
    kept = f", and {others} of other kinds for theirs" if others else ""
    runs = "run" if learnt.alike == 1 else "runs"
    apart = f"; left out: {'; '.join(learnt.left_out)}" if learnt.left_out else ""
    return f"{'; '.join((*changes, f'rests on {learnt.alike} {runs} of its kind{kept}'))}{apart}"


def _changes(learnt: Learnt) -> Iterator[tuple[str, str, str]]:
    for key, name in ((_STEP, "step"), (_MEMORY, "memory")):
        before, after = (_with_range(read_figure(estimate, key), key) for estimate in (learnt.before, learnt.after))
        if before != after:
            yield name, before, after


def _with_range(value: Number | Interval | None, key: str) -> str:
    unit = METRICS[key].unit
    if not isinstance(value, Interval):
        return _NONE
    middle, low, high = (format_quantity(mean(end), unit) for end in value.ends)
    return f"{middle} ({low} to {high})"
