"""An answer as plain data, JSON and YAML, under the names that scripts rely on."""

from __future__ import annotations

import json
import re

from capacity_tui.engine.estimate.result import ComputationEstimate, Estimate, Interval, MemoryEstimate, plain
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.units import format_seconds
from capacity_tui.engine.workload.plan import Plan
from capacity_tui.engine.workload.writing import yaml_text

MEMORY_PARTS = (
    "weights", "gradients", "optimizer", "activations", "logits", "buffers", "kv_cache", "context", "reserve",
)  # fmt: skip
"""Parts of memory that every answer names; those a plan has none of take 0 bytes."""
TIME_PARTS = (
    "compute", "attention", "tensor_parallel", "pipeline_bubble", "data_parallel", "optimizer", "overhead",
)  # fmt: skip
"""Parts of a step that every answer names, likewise."""


def result_as_dict(plan: Plan, estimate: Estimate) -> dict[str, object]:
    """Return the whole answer as plain data: bytes and parameters whole, seconds and rates as they are.

    Args:
        plan: the plan as resolved, every default filled in.
        estimate: what was computed for it.
    """
    result = {
        "plan": plan.data(),
        "fits": estimate.fits,
        "verdict": estimate.verdict.value,
        "model": _model(estimate),
        "memory": _memory(estimate.memory),
        "computation": _computation(estimate.computation),
        "bottleneck": estimate.bottleneck,
        "scalability": estimate.scalability,
        "cost": estimate.cost,
        "energy": estimate.energy,
        "recommendations": estimate.recommendations,
        "warnings": estimate.warnings,
        "basis": estimate.basis,
        "details": estimate.details,
    }
    return {key: plain(value) for key, value in result.items()}


def to_json(result: object, one_line: bool = False) -> str:
    """Return the data as JSON text with a line end, indented or on one line."""
    separators = (",", ":") if one_line else None
    text = json.dumps(
        result,
        ensure_ascii=False,
        allow_nan=False,
        indent=None if one_line else 2,
        separators=separators,
    )
    return f"{_escaped_json(text)}\n"


def to_yaml(result: object) -> str:
    """Return the data as YAML text in their own order."""
    return yaml_text(result)


def _escaped_json(text: str) -> str:
    """Return JSON text whose unprintable characters, which only stand inside of its strings, are escapes."""
    return re.sub(r"[^\n -~]", _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _model(estimate: Estimate) -> dict[str, object]:
    model = estimate.model
    return {
        "parameters": _whole(model.parameters),
        "active_parameters": _whole(model.active_parameters),
        f"forward_flops_per_{model.unit}": model.forward_flops,
        "complexity": model.complexity or None,
    }


def _memory(memory: MemoryEstimate) -> dict[str, object]:
    capacity = memory.capacity_bytes
    return {
        "per_device_bytes": _whole_interval(memory.per_device_bytes),
        "reserved_bytes": _whole_interval(memory.reserved_bytes),
        "parts": dict.fromkeys(MEMORY_PARTS, 0) | {part: _whole(value) for part, value in memory.parts.items()},
        "capacity_bytes": _whole(capacity),
        "utilization_percent": memory.reserved_bytes.value / capacity * 100 if capacity is not None else None,
        "host_bytes": _whole(memory.host_bytes),
        "host_capacity_bytes": _whole(memory.host_capacity_bytes),
        "peak": memory.peak or None,
    }


def _computation(computation: ComputationEstimate) -> dict[str, object]:
    step = computation.step_seconds.value
    units = computation.units_per_step / step
    tokens = units if computation.unit == "token" else None
    total = train_time(computation)
    flops = computation.model_flops_per_step / step / computation.devices
    return {
        "step_seconds": computation.step_seconds,
        "parts": dict.fromkeys(TIME_PARTS, 0.0) | dict(computation.parts),
        "tokens_per_second": tokens,
        "tokens_per_second_per_device": None if tokens is None else tokens / computation.devices,
        "samples_per_second": units / computation.units_per_sample,
        "model_tflops_per_device": flops / 1e12,
        "mfu": computation.mfu,
        "steps": computation.steps,
        "estimated_train_time_seconds": total,
        "estimated_train_time_human": format_seconds(float(total.value)) if total else None,
        "infer": computation.infer,
    }


def train_time(computation: ComputationEstimate) -> Interval | None:
    """Return the seconds of the whole job; None where its length is open."""
    steps, step = computation.steps, computation.step_seconds
    if steps is None:
        return None
    return Interval(step.value * steps, step.low * steps, step.high * steps)


def _whole_interval(interval: Interval) -> dict[str, object]:
    return {name: _whole(getattr(interval, name)) for name in ("value", "low", "high")}


def _whole(value: Number | None) -> object:
    """Return a count without its fraction; arrays of counts as they are."""
    return round(value) if isinstance(value, int | float) and value == value else value  # noqa: PLR0124
