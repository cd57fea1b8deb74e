"""An answer as plain data, JSON and YAML, under the names that scripts rely on."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum

import numpy as np

from capacity_tui.engine.estimate import (
    METRICS,
    PARTS,
    Bottleneck,
    Constraint,
    Estimate,
    MemoryEstimate,
    Metric,
    StageBytes,
    bottleneck_text,
    central,
    figure,
    usual_words,
)
from capacity_tui.engine.keys import SERVING, Figure, Parts
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import yaml_text
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_count, format_number, format_quantity, parse_count

# Speeds that models of images and tables have as samples alone.
_OF_TOKENS = ("tokens_per_second", "tokens_per_second_per_device")


def result_as_dict(plan: Plan, estimate: Estimate, not_understood: tuple[str, ...] = ()) -> dict[str, object]:
    """Return the whole answer as plain data: bytes and parameters whole, seconds and rates as they are.

    Args:
        plan: the plan as resolved, every default filled in.
        not_understood: words, keys and options that have no meaning in the plan.
    """
    result = {
        "plan": plan.plain_data(),
        "fits": estimate.fits,
        "verdict": estimate.verdict.value,
        "verdict_text": estimate.verdict_text,
        "constraints": [_constraint(constraint) for constraint in estimate.constraints],
        "model": _model(estimate),
        "memory": _memory(estimate),
        "computation": _computation(estimate),
        "ranges": _ranges(estimate),
        "bottleneck": _bottleneck(estimate.bottleneck),
        "scalability": estimate.scalability,
        "cost": _cost(estimate),
        "energy": _group(estimate, "energy"),
        "carbon": {**_group(estimate, "carbon"), "grid": estimate.energy.grid or None},
        "reliability": _group(estimate, "reliability"),
        "assumed": estimate.assumed,
        "not_understood": not_understood,
        **picked(estimate, "recommendations", "warnings", "basis", "details"),
    }
    return {key: to_builtins(value) for key, value in result.items()}


def to_json(result: object, one_line: bool = False) -> str:
    """Return the data as JSON text with a line end, indented or on one line."""
    separators = (",", ":") if one_line else None
    text = json.dumps(
        result, ensure_ascii=False, allow_nan=False, indent=None if one_line else 2, separators=separators
    )
    return re.sub(r"[^\n -~]", _escaped, text) + "\n"


def to_yaml(result: object) -> str:
    """Return the data as YAML text in their own order."""
    return yaml_text(result)


def _escaped(match: re.Match[str]) -> str:
    """Return an escape for a character that cannot be printed, which only stands inside of the strings of JSON."""
    character = match[0]
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _constraint(of: Constraint) -> dict[str, object]:
    """Return a limit and what the run reaches, in the unit of the figure."""
    limit = {name: value for name, value in (("most", of.most), ("least", of.least)) if value is not None}
    ends = ("value", "low", "high")
    reached = {end: None if of.reached is None else getattr(of.reached, end) for end in ends}
    if of.figure in METRICS and METRICS[of.figure].unit == "B":
        reached = {end: _whole(value) for end, value in reached.items()}
    return {"figure": of.figure, **limit, **reached, "holds": of.holds.value, "why": of.why}


def _group(estimate: Estimate, group: str) -> dict[str, object]:
    """Return the figures whose keys lie directly below another, as JSON has them."""
    metrics = (metric for metric in METRICS.values() if metric.key.rpartition(".")[0] == group)
    return {metric.key.rpartition(".")[2]: _value(estimate, metric) for metric in metrics}


def _value(estimate: Estimate, metric: Metric) -> object:
    """Return a figure as JSON has it: with its range where it stands or without, and bytes whole."""
    value = figure(estimate, metric.key).value
    return shown_figure(metric.key, value if metric.has_ends else central(value))


def shown_figure(key: str, shown: object) -> object:
    """Return a figure as JSON has it, bytes whole."""
    if key not in METRICS or METRICS[key].unit != "B":
        return shown
    if isinstance(shown, Interval):
        return {name: _whole(getattr(shown, name)) for name in ("value", "low", "high")}
    return _whole(shown)


def _model(estimate: Estimate) -> dict[str, object]:
    model = estimate.model
    return {
        "parameters": _whole(model.parameters),
        "active_parameters": _whole(model.active_parameters),
        f"forward_flops_per_{model.unit}": model.forward_flops,
        "complexity": model.complexity or None,
    }


def _memory(estimate: Estimate) -> dict[str, object]:
    memory = estimate.memory
    return _group(estimate, "memory") | {
        "parts": dict.fromkeys(PARTS[Parts.MEMORY], 0) | {part: _whole(size) for part, size in memory.parts.items()},
        "peak": memory.peak or None,
        "stages": {name: _stage(memory, name) for name in ("first", "last", "fullest")},
        "timeline": [
            {"moment": moment, "bytes": _whole(bytes_)}
            for moment, bytes_ in (memory.timeline or {"peak": memory.per_device_bytes.value}).items()
        ],
    }


def _stage(memory: MemoryEstimate, name: str) -> dict[str, object]:
    """Return the bytes of a pipeline stage; those of the whole device where there is no pipeline."""
    whole = StageBytes(memory.per_device_bytes.value, memory.reserved_bytes.value)
    stage = memory.stages.get(name, whole)
    return {"per_device_bytes": _whole(stage.per_device_bytes), "reserved_bytes": _whole(stage.reserved_bytes)}


def _bottleneck(bottleneck: Bottleneck) -> dict[str, object]:
    known = picked(bottleneck, "kind", "arithmetic_intensity", "ridge_point")
    return {**known, "detail": bottleneck_text(bottleneck)}


def _computation(estimate: Estimate) -> dict[str, object]:
    computation = estimate.computation
    total = figure(estimate, Figure.ESTIMATED_TRAIN_TIME_SECONDS)
    value = _group(estimate, "computation") | {
        # Waiting for data is a part of plans that say how their data arrive, and of no others.
        "parts": dict.fromkeys((part for part in PARTS[Parts.COMPUTATION] if part != "input"), 0.0)
        | dict(computation.parts),
        "steps": computation.steps,
        "estimated_train_time_human": None if total.number is None else total.text,
        "infer": None if computation.infer is None else _group(estimate, SERVING),
    }
    return value if computation.unit == "token" else value | dict.fromkeys(_OF_TOKENS)


def _cost(estimate: Estimate) -> dict[str, object]:
    cost = estimate.cost
    return _group(estimate, "cost") | {"source": cost.source, "why_no_spot": cost.why_no_spot}


def _ranges(estimate: Estimate) -> dict[str, object]:
    """Return the ranges of the figures that are plain numbers above, by result key."""
    data = {key: figure(estimate, key).value for key, metric in METRICS.items() if not metric.has_ends}
    return {key: {"low": value.low, "high": value.high} for key, value in data.items() if isinstance(value, Interval)}


def _whole(value: object) -> object:
    """Return a count without its fraction; arrays of counts as they are."""
    return round(value) if isinstance(value, int | float) and value == value else value  # noqa: PLR0124


def picked(record: object, *names: str) -> dict[str, object]:
    """Return some fields of a record by their names."""
    return {name: getattr(record, name) for name in names}


def to_builtins(value: object) -> object:
    """Return a result as plain data: dataclasses to mappings, arrays to lists, numbers that are not finite to None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: to_builtins(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_builtins(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_builtins(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return to_builtins(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.value if isinstance(value, StrEnum) else value


def column_figures(known: Collection[str]) -> tuple[str, ...]:
    """Return the keys of the figures that have a column, in their order.

    Args:
        known: the figures that any of the alternatives has.
    """
    columns: dict[str, str] = {}
    for key, metric in METRICS.items():
        if metric.column and key in known:
            columns.setdefault(metric.column, key)
    return tuple(columns.values())


def column_head(key: str) -> str:
    """Return what stands over a figure, whatever the run."""
    metric = METRICS[key]
    return usual_words(metric.head or metric.brief or metric.label).replace("tokens", "tok")


def column_unit(key: str) -> str:
    """Return the unit of a figure below its head."""
    return usual_words(METRICS[key].unit).replace("tokens", "tok")


def column_text(key: str, value: float) -> str:
    """Return a figure as it stands below its head, without a unit that stands there."""
    return format_quantity(value, column_unit(key)).removesuffix(f" {column_head(key)}")


SWITCH = ("off", "on")  # What a switch says, off first
_SHORT_FROM = 10**6  # Whole numbers from here on are shortened where nothing is lost by it: 2M, but 2,000,001


def plan_value_text(value: object) -> str:
    """Return a value of a plan as it is shown; empty where the plan gives none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return SWITCH[value]
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        short = format_count(value)
        is_exact = value >= _SHORT_FROM and parse_count(short) == value
        return short if is_exact else format_number(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
