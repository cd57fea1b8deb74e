"""Single figures of an estimate by their result key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import cast, get_args

from capacity_tui.engine.catalog.names import nearest
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.result import Estimate, Interval
from capacity_tui.engine.estimate.work import Part
from capacity_tui.engine.numeric import Number

Figure = Number | Interval | None
_ENDS = re.compile(r"\.(value|low|high)$")
# Parts that scripts may ask for, whatever the run.
PARTS: Mapping[str, tuple[str, ...]] = {
    "memory.parts": (
        "weights", "gradients", "optimizer", "activations", "logits", "buffers", "kv_cache", "context", "reserve"),
    "computation.parts": get_args(Part),
}  # fmt: skip


STEP = "what a step works through, over its time"


@equation("rate = units / step_seconds", unit="1/s", source=STEP, part="computation.tokens_per_second")
def units_per_second(units: Number, step_seconds: Number) -> Number:
    """Tokens or samples a second, over all devices.

    Args:
        units: tokens or samples of a step.
        step_seconds: seconds of a step.
    """
    return units / step_seconds


@equation(
    "rate = units / step_seconds / devices",
    unit="1/s",
    source=STEP,
    part="computation.tokens_per_second_per_device",
)
def units_per_device_second(units: Number, step_seconds: Number, devices: Number) -> Number:
    """Tokens or samples a second and device.

    Args:
        units: tokens or samples of a step.
        step_seconds: seconds of a step.
        devices: devices that share the work.
    """
    return units / step_seconds / devices


@equation(
    "rate = units / units_per_sample / step_seconds",
    unit="1/s",
    source=STEP,
    part="computation.samples_per_second",
)
def samples_per_second(units: Number, units_per_sample: Number, step_seconds: Number) -> Number:
    """Samples a second, over all devices.

    Args:
        units: tokens or samples of a step.
        units_per_sample: tokens of a sample; 1 where samples are counted.
        step_seconds: seconds of a step.
    """
    return units / units_per_sample / step_seconds


@equation(
    "time = steps · step_seconds",
    unit="s",
    source="steps of the plan, one after another",
    part="computation.estimated_train_time_seconds",
)
def job_seconds(steps: Number, step_seconds: Number) -> Number:
    """Seconds of a job.

    Args:
        steps: optimizer steps; a fit is one.
        step_seconds: seconds of a step.
    """
    return steps * step_seconds


@equation(
    "tflops = model_flops / step_seconds / devices / 10^12",
    unit="TFLOP/s",
    source="FLOPs of the model itself, none of recomputation",
    part="computation.model_tflops_per_device",
)
def model_tflops(model_flops: Number, step_seconds: Number, devices: Number) -> Number:
    """TFLOP/s of the model itself on each device.

    Args:
        model_flops: FLOPs of the model in a step, over all devices.
        step_seconds: seconds of a step.
        devices: devices that share the work.
    """
    return model_flops / step_seconds / devices / 1e12


@equation(
    "used = 100 · reserved / capacity",
    unit="%",
    source="what the driver shows over what a device has",
    part="memory.utilization_percent",
)
def memory_used(reserved: Number, capacity: Number) -> Number:
    """Percent of the memory of the fullest device.

    Args:
        reserved: bytes the driver shows.
        capacity: usable bytes of the device.
    """
    return 100.0 * reserved / capacity


def _tokens(estimate: Estimate) -> Number:
    computation = estimate.computation
    return units_per_second(computation.units_per_step, computation.step_seconds.value)


def _tokens_per_device(estimate: Estimate) -> Number:
    found = estimate.computation
    return units_per_device_second(found.units_per_step, found.step_seconds.value, found.devices)


def _samples(estimate: Estimate) -> Number:
    found = estimate.computation
    return samples_per_second(found.units_per_step, found.units_per_sample, found.step_seconds.value)


def _job(estimate: Estimate) -> Figure:
    steps, step = estimate.computation.steps, estimate.computation.step_seconds
    return None if steps is None else Interval(job_seconds(steps, step.value), step.low * steps, step.high * steps)


def _serving(estimate: Estimate, name: str) -> Figure:
    speed = estimate.computation.infer
    return None if speed is None else cast("Interval | None", getattr(speed, name))


def _utilization(estimate: Estimate) -> Figure:
    capacity = estimate.memory.capacity_bytes
    return None if capacity is None else memory_used(estimate.memory.reserved_bytes.value, capacity)


FIGURES: Mapping[str, tuple[str, str, Callable[[Estimate], Figure]]] = {
    "model.parameters": ("Parameters", "", lambda e: e.model.parameters),
    "model.active_parameters": ("Active parameters", "", lambda e: e.model.active_parameters),
    "model.forward_flops": ("Forward FLOPs of one unit", "FLOP", lambda e: e.model.forward_flops),
    "memory.per_device_bytes": ("Allocated memory, fullest device", "B", lambda e: e.memory.per_device_bytes),
    "memory.reserved_bytes": ("Memory the driver shows", "B", lambda e: e.memory.reserved_bytes),
    "memory.capacity_bytes": ("Usable memory of a device", "B", lambda e: e.memory.capacity_bytes),
    "memory.utilization_percent": ("Memory used", "%", _utilization),
    "memory.host_bytes": ("Host memory of a device", "B", lambda e: e.memory.host_bytes),
    "computation.step_seconds": ("Time of a step", "s", lambda e: e.computation.step_seconds),
    "computation.tokens_per_second": ("Tokens a second", "tok/s", _tokens),
    "computation.tokens_per_second_per_device": (
        "Tokens a second and device", "tok/s", _tokens_per_device),
    "computation.samples_per_second": (
        "Samples a second", "1/s", _samples),
    "computation.mfu": ("Model FLOPs utilization", "share", lambda e: e.computation.mfu),
    "computation.model_tflops_per_device": (
        "Model TFLOP/s of a device", "TFLOP/s", lambda e: model_tflops(
            e.computation.model_flops_per_step, e.computation.step_seconds.value, e.computation.devices)),
    "computation.estimated_train_time_seconds": ("Time of the job", "s", _job),
    "computation.infer.prefill_tokens_per_second": (
        "Prompt tokens a second", "tok/s", lambda e: _serving(e, "prefill_tokens_per_second")),
    "computation.infer.decode_tokens_per_second": (
        "Output tokens a second", "tok/s", lambda e: _serving(e, "decode_tokens_per_second")),
    "computation.infer.time_to_first_token_seconds": (
        "Time to first token", "s", lambda e: _serving(e, "time_to_first_token_seconds")),
    "cost.usd": ("Price of the job", "USD", lambda e: e.cost.usd),
    "cost.usd_per_million_tokens": ("Price of a million", "USD", lambda e: e.cost.usd_per_million_tokens),
    "cost.usd_spot": ("Price on spot capacity", "USD", lambda e: e.cost.usd_spot),
    "cost.usd_per_hour": ("Price of an hour", "USD", lambda e: e.cost.usd_per_hour),
    "energy.kwh": ("Energy of the job", "kWh", lambda e: e.energy.kwh),
    "energy.watts_average": ("Mean power", "W", lambda e: e.energy.watts_average),
    "energy.usd": ("Price of the electricity", "USD", lambda e: e.energy.usd),
    "bottleneck.arithmetic_intensity": ("Arithmetic intensity", "FLOP/B", lambda e: e.bottleneck.arithmetic_intensity),
    "bottleneck.ridge_point": ("Ridge point", "FLOP/B", lambda e: e.bottleneck.ridge_point),
}  # fmt: skip


def result_key(name: str) -> str:
    """Return the result key a name stands for: its ends and short forms are names of it too."""
    bare = _ENDS.sub("", name)
    if bare.startswith("model.forward_flops"):
        return "model.forward_flops"
    group, _, part = bare.partition(".")
    return f"{group}.parts.{part}" if part in PARTS.get(f"{group}.parts", ()) else bare


def figure(estimate: Estimate, key: str) -> tuple[str, str, Figure]:
    """Return title, unit and value of a result key.

    Raises:
        PlanError: no result has that key.
    """
    if key in FIGURES:
        title, unit, read = FIGURES[key]
        if unit == "tok/s" and estimate.computation.unit == "sample":
            title, unit = title.replace("Tokens", "Samples"), "samples/s"
        return title, unit, read(estimate)
    group, _, part = key.rpartition(".")
    parts = {"memory.parts": estimate.memory.parts, "computation.parts": estimate.computation.parts}.get(group, {})
    if part in parts or part in PARTS.get(group, ()):
        unit = "B" if group.startswith("memory") else "s"
        # A part that this kind of run does not have takes nothing.
        return part.replace("_", " ").capitalize().replace("Kv", "KV"), unit, parts.get(part, 0.0)
    near = nearest(key, keys(estimate))
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(keys(estimate))}"
    raise PlanError(f"no result is called {key!r}"[:200], hint=hint)


def keys(estimate: Estimate) -> tuple[str, ...]:
    """Return the result keys that have a figure."""
    own = {"memory.parts": estimate.memory.parts, "computation.parts": estimate.computation.parts}
    parts = (f"{group}.{part}" for group, names in PARTS.items() for part in dict.fromkeys((*own[group], *names)))
    return (*FIGURES, *parts)


def central(value: Figure) -> Number | None:
    """Return the value itself, without its interval."""
    return value.value if isinstance(value, Interval) else value
