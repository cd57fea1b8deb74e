"""Every figure of an estimate by its result key: what it is called, in which unit, and how it is written.

The one list that screen, tables, reports, advice, explanations and scripts read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Protocol, get_args

from capacity_tui.engine.catalog.names import nearest
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate.derived import (
    job_flops,
    job_seconds,
    memory_used,
    model_tflops,
    samples_per_second,
    units_per_device_second,
    units_per_second,
)
from capacity_tui.engine.estimate.memory_estimate import MemoryEstimate
from capacity_tui.engine.estimate.result import (
    UNDER_LOAD,
    Bottleneck,
    ComputationEstimate,
    CostEstimate,
    EnergyEstimate,
    InferenceSpeed,
    Iteration,
)
from capacity_tui.engine.estimate.scaling_law import BEST_SIZE, BEST_TOKENS, LEAST_LOSS, LOSS, OVERTRAINING
from capacity_tui.engine.estimate.work import ModelFacts, Part
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.uncertainty.intervals import Interval, existing
from capacity_tui.engine.units import PERCENT, format_money, format_quantity, not_available

Value = Number | Interval | None
LESS, NEITHER, MORE = -1, 0, 1
_ENDS = re.compile(r"\.(value|low|high)$")
# Cents of a large sum say nothing.
_NO_CENTS_FROM = 1000.0
# Parts that scripts may ask for, whatever the run.
PARTS: Mapping[str, tuple[str, ...]] = {
    "memory.parts": (
        "weights", "gradients", "optimizer", "activations", "logits", "buffers", "kv_cache", "context", "reserve"),
    "computation.parts": get_args(Part),
}  # fmt: skip
_PART_LABELS = {"kv_cache": "KV cache", "context": "driver context", "reserve": "allocator reserve"}
_LIMIT_LABELS = {"capacity": "memory capacity", "overhead": "host overhead"}


class Figured(Protocol):
    """What figures are read from: an estimate, or one whose groups of figures are worked out when asked for."""

    @property
    def model(self) -> ModelFacts: ...  # noqa: D102 - the groups of an estimate
    @property
    def memory(self) -> MemoryEstimate: ...  # noqa: D102
    @property
    def computation(self) -> ComputationEstimate: ...  # noqa: D102
    @property
    def bottleneck(self) -> Bottleneck: ...  # noqa: D102
    @property
    def cost(self) -> CostEstimate: ...  # noqa: D102
    @property
    def energy(self) -> EnergyEstimate: ...  # noqa: D102
    @property
    def details(self) -> Mapping[str, Number]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Metric:
    """A kind of figure.

    Attributes:
        key: its result key.
        label: what it is called; ``{counted}`` stands for what the run counts (tokens, images), ``{iteration}`` for
            what is timed (step, batch, fit), ``{job}`` for the whole of the work.
        unit: unit of the value, with the same words.
        read: returns it from an estimate.
        better: ``LESS``, ``MORE`` or ``NEITHER``.
        brief: label where there is little room; empty for the same.
    """

    key: str
    label: str
    unit: str
    read: Callable[[Figured], Value]
    better: int = NEITHER
    brief: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of one estimate.

    Attributes:
        metric: what it is, in the words of the run.
        value: the number, with its range where it has one; None where there is none.
        absence: why there is none; empty where there is.
    """

    metric: Metric
    value: Value
    absence: str = ""

    @property
    def title(self) -> str:
        """The label with a capital letter."""
        return self.metric.label[:1].upper() + self.metric.label[1:]

    @property
    def number(self) -> float | None:
        """The value of a single plan, without its range."""
        value = central(self.value)
        return None if value is None else mean(value)

    @property
    def text(self) -> str:
        """The value with its unit, or ``n/a`` with the reason."""
        return not_available(self.absence) if self.number is None else written(self.number, self.metric.unit)

    @property
    def range_text(self) -> str:
        """The range with its unit, empty where there is none."""
        if not isinstance(self.value, Interval):
            return ""
        low, high = mean(self.value.low), mean(self.value.high)
        return f"{written(low, self.metric.unit)} to {written(high, self.metric.unit)}"


def written(value: float, unit: str) -> str:
    """Return a value as figures of its unit are written: large sums without cents, prices of little with more."""
    if unit == "USD":
        return format_money(value, 0 if abs(value) >= _NO_CENTS_FROM else 2)
    if unit == "USD/M":
        return format_money(value, 0 if abs(value) >= _NO_CENTS_FROM else 3)
    return format_quantity(value, unit)


def _job(estimate: Figured) -> Value:
    steps, step = estimate.computation.steps, estimate.computation.step_seconds
    return None if steps is None else Interval(job_seconds(steps, step.value), step.low * steps, step.high * steps)


def _total_flops(estimate: Figured) -> Value:
    steps = estimate.computation.steps
    return None if steps is None else job_flops(steps, estimate.computation.model_flops_per_step)


def _per_step(read: Callable[[Figured], Number | None], power: int, most: float = inf) -> Callable[[Figured], Value]:
    """Return a figure with the range of the step's time, up to ``most``: it grows with that time, or its inverse."""

    def ranged(estimate: Figured) -> Value:
        value, step = read(estimate), estimate.computation.step_seconds
        if value is None:
            return None
        ends = (step.low / step.value, step.high / step.value)
        low, high = ends if power > 0 else (1.0 / ends[1], 1.0 / ends[0])
        return Interval(value, value * low, value * high).at_most(most)

    return ranged


def _of_job(read: Callable[[Figured], Number | None]) -> Callable[[Figured], Value]:
    """Return a figure of the whole job, with the range of its time; None where its length is open."""
    return _per_step(lambda estimate: None if estimate.computation.steps is None else read(estimate), 1)


def _rate(equation: Callable[[Figured], Number]) -> Callable[[Figured], Value]:
    return _per_step(equation, -1)


def _infer(read: Callable[[InferenceSpeed], Value]) -> Callable[[Figured], Value]:
    """Return a speed of serving; None for what does not serve, generates no tokens, or has no steady state."""
    return lambda estimate: None if estimate.computation.infer is None else existing(read(estimate.computation.infer))


def _utilization(estimate: Figured) -> Value:
    capacity, reserved = estimate.memory.capacity_bytes, estimate.memory.reserved_bytes
    if capacity is None:
        return None
    shares = (PERCENT * end / capacity for end in (reserved.low, reserved.high))
    return Interval(memory_used(reserved.value, capacity), *shares)


_METRICS = (
    Metric("model.parameters", "parameters", "", lambda e: e.model.parameters),
    Metric("model.active_parameters", "active parameters", "", lambda e: e.model.active_parameters),
    Metric("model.forward_flops", "forward FLOPs per {unit}", "FLOP", lambda e: e.model.forward_flops),
    Metric("memory.per_device_bytes", "peak memory allocated", "B", lambda e: e.memory.per_device_bytes, LESS),
    Metric("memory.reserved_bytes", "peak memory", "B", lambda e: e.memory.reserved_bytes, LESS, "memory"),
    Metric("memory.capacity_bytes", "device memory", "B", lambda e: e.memory.capacity_bytes),
    Metric("memory.utilization_percent", "memory utilization", "%", _utilization, LESS, "utilization"),
    Metric("memory.host_bytes", "host memory per device", "B", lambda e: e.memory.host_bytes, LESS, "host memory"),
    Metric("computation.step_seconds", "{iteration} time", "s", lambda e: e.computation.step_seconds, LESS),
    Metric("computation.tokens_per_second", "throughput", "{counted}/s", _rate(
        lambda e: units_per_second(e.computation.units_per_step, e.computation.step_seconds.value)), MORE,
        "{counted}/s"),
    Metric("computation.tokens_per_second_per_device", "throughput per device", "{counted}/s", _rate(
        lambda e: units_per_device_second(
            e.computation.units_per_step, e.computation.step_seconds.value, e.computation.devices)), MORE),
    Metric("computation.samples_per_second", "sample throughput", "samples/s", _rate(
        lambda e: samples_per_second(
            e.computation.units_per_step, e.computation.units_per_sample, e.computation.step_seconds.value)), MORE),
    Metric("computation.mfu", "model FLOPs utilization", "share",
           _per_step(lambda e: e.computation.mfu, -1, 1.0), MORE, "MFU"),
    Metric("computation.model_tflops_per_device", "model TFLOP/s per device", "TFLOP/s", _rate(
        lambda e: model_tflops(
            e.computation.model_flops_per_step, e.computation.step_seconds.value, e.computation.devices)), MORE),
    Metric("computation.estimated_train_time_seconds", "{job} time", "s", _job, LESS, "time"),
    Metric("computation.total_flops", "total FLOPs", "FLOP", _total_flops),
    Metric("computation.infer.prefill_tokens_per_second", "prefill throughput", "tok/s",
           _infer(lambda i: i.prefill_tokens_per_second), MORE, "prefill tok/s"),
    Metric("computation.infer.decode_tokens_per_second", "decode throughput", "tok/s",
           _infer(lambda i: i.decode_tokens_per_second), MORE, "decode tok/s"),
    Metric("computation.infer.time_to_first_token_seconds", "time to first token", "s",
           _infer(lambda i: i.time_to_first_token_seconds), LESS, "TTFT"),
    Metric("computation.infer.time_per_output_token_seconds", "time per output token", "s",
           _infer(lambda i: i.time_per_output_token_seconds), LESS, "TPOT"),
    Metric("computation.infer.requests_per_second", "request throughput", "requests/s",
           _infer(lambda i: i.requests_per_second), MORE, "requests/s"),
    Metric("computation.infer.output_tokens_per_second", "output throughput", "tok/s",
           _infer(lambda i: i.output_tokens_per_second), MORE, "output tok/s"),
    Metric("computation.infer.largest_requests_per_second", "most requests", "requests/s",
           _infer(lambda i: i.largest_requests_per_second), MORE),
    Metric("computation.infer.time_to_first_token_percentile_seconds", "slow time to first token", "s",
           _infer(lambda i: i.time_to_first_token_percentile_seconds), LESS, "slow TTFT"),
    Metric("computation.infer.time_per_output_token_percentile_seconds", "slow time per output token", "s",
           _infer(lambda i: i.time_per_output_token_percentile_seconds), LESS, "slow TPOT"),
    Metric("computation.infer.request_seconds", "time of a request", "s", _infer(lambda i: i.request_seconds), LESS),
    Metric("computation.infer.running_requests", "requests at work", "requests", _infer(lambda i: i.running_requests)),
    Metric("computation.infer.waiting_requests", "requests waiting", "requests",
           _infer(lambda i: i.waiting_requests), LESS),
    Metric("inference.largest_batch", "largest batch that fits", "requests",
           lambda e: e.details.get("inference.largest_batch"), MORE, "largest batch"),
    Metric("inference.longest_context", "longest context that fits", "tok",
           lambda e: e.details.get("inference.longest_context"), MORE, "context fits"),
    Metric("cost.usd", "cost", "USD", lambda e: e.cost.interval or e.cost.usd, LESS),
    Metric("cost.usd_spot", "spot cost", "USD", lambda e: e.cost.spot_interval or e.cost.usd_spot, LESS),
    Metric("cost.usd_per_hour", "cost per hour", "USD", lambda e: e.cost.usd_per_hour, LESS, "$ an hour"),
    Metric("cost.usd_per_million_tokens", "cost per million {counted}", "USD/M",
           _per_step(lambda e: e.cost.usd_per_million_tokens, 1), LESS, "$/M {counted}"),
    Metric("energy.kwh", "energy", "kWh", _of_job(lambda e: e.energy.kwh), LESS),
    Metric("energy.watts_average", "average power", "W", lambda e: e.energy.watts_average),
    Metric("energy.usd", "electricity cost", "USD", _of_job(lambda e: e.energy.usd), LESS),
    Metric(LOSS, "expected loss", "nats", lambda e: e.details.get(LOSS), LESS),
    Metric(LEAST_LOSS, "least loss of the same work", "nats", lambda e: e.details.get(LEAST_LOSS)),
    Metric(BEST_SIZE, "compute-optimal parameters", "", lambda e: e.details.get(BEST_SIZE)),
    Metric(BEST_TOKENS, "compute-optimal tokens", "tok", lambda e: e.details.get(BEST_TOKENS)),
    Metric(OVERTRAINING, "overtraining", "", lambda e: e.details.get(OVERTRAINING)),
    Metric("bottleneck.arithmetic_intensity", "arithmetic intensity", "FLOP/B",
           lambda e: e.bottleneck.arithmetic_intensity),
    Metric("bottleneck.ridge_point", "ridge point", "FLOP/B", lambda e: e.bottleneck.ridge_point),
)  # fmt: skip
METRICS: Mapping[str, Metric] = {metric.key: metric for metric in _METRICS}


def result_key(name: str) -> str:
    """Return the result key a name stands for: its ends and short forms are names of it too."""
    bare = _ENDS.sub("", name)
    if bare.startswith("model.forward_flops"):
        return "model.forward_flops"
    group, _, part = bare.partition(".")
    return f"{group}.parts.{part}" if part in PARTS.get(f"{group}.parts", ()) else bare


def figure(estimate: Figured, key: str) -> Figure:
    """Return the figure of a result key, in the words of the run.

    Raises:
        PlanError: no result has that key.
    """
    if key in METRICS:
        metric, value = _in_words_of(estimate, METRICS[key]), read_figure(estimate, key)
        return Figure(metric, value, absence(key, estimate) if value is None else "")
    group, _, part = key.rpartition(".")
    if key in keys(estimate):
        value = read_figure(estimate, key)
        unit = "B" if group.startswith("memory") else "s"
        return Figure(Metric(key, part_label(part), unit, lambda _: value, LESS), value)
    near = nearest(key, keys(estimate))
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(keys(estimate))}"
    raise PlanError(f"no result is called {key!r}"[:200], hint=hint)


def figures_of(estimate: Figured) -> dict[str, Interval]:
    """Return the figures of one estimate by result key; where no range is known, both ends are the value itself."""
    known = {key: value for key, metric in METRICS.items() if (value := metric.read(estimate)) is not None}
    return {key: _as_interval(value) for key, value in known.items()}


def _as_interval(value: Number | Interval) -> Interval:
    found = value if isinstance(value, Interval) else Interval.exactly(value)
    return Interval(mean(found.value), mean(found.low), mean(found.high))


def read_figure(found: Figured, key: str) -> Value:
    """Return a figure by its result key; None where there is none, 0 for a part that this kind of run lacks.

    Raises:
        KeyError: no result has that key.
    """
    if key in METRICS:
        return METRICS[key].read(found)
    group, _, part = key.rpartition(".")
    parts = {"memory.parts": found.memory.parts, "computation.parts": found.computation.parts}[group]
    return parts.get(part, 0.0)


def _in_words_of(estimate: Figured, metric: Metric) -> Metric:
    """Return the metric with the words that this kind of run uses."""
    model = estimate.model
    return _in_words(metric.key, model.unit, model.counted, estimate.computation.iteration)


@cache
def _in_words(key: str, unit: str, counted: str, iteration: Iteration) -> Metric:
    metric, job = METRICS[key], "fit" if iteration == "fit" else "training"
    words = {"unit": unit, "counted": counted, "iteration": iteration, "job": job}
    label, unit, brief = (text.format(**words) for text in (metric.label, metric.unit, metric.brief))
    return replace(metric, label=label, unit=_short_tokens(unit), brief=_short_tokens(brief))


def _short_tokens(text: str) -> str:
    return text.replace("tokens", "tok")


def part_label(part: str) -> str:
    """Return what a part of memory or of a step is called."""
    return _PART_LABELS.get(part, part.replace("_", " "))


def limit_label(kind: str) -> str:
    """Return what a bottleneck is called."""
    return _LIMIT_LABELS.get(kind, kind.replace("_", " "))


def absence(key: str, estimate: Figured) -> str:
    """Return in a few words why an estimate has no figure of this key."""
    cost, energy = estimate.cost, estimate.energy
    reasons = {
        "memory": "memory size not known",
        "energy": "length is open" if energy.watts_average is not None else "power limit not known",
        "cost": "no price known" if cost.usd_per_hour is None else cost.why_no_spot or "length is open",
    }
    if key == "cost.usd_spot" and estimate.computation.steps is not None and cost.usd_per_hour is not None:
        return cost.why_no_spot or "no spot price known"
    if key in {"computation.estimated_train_time_seconds", "computation.total_flops"}:
        return "length is open"
    if key.startswith(("computation.infer.", "inference.")):
        speed = estimate.computation.infer
        return "only serving has it" if speed is None else _not_served(key, speed)
    if key.startswith("training."):
        return "the law is of dense language models trained from the start, for a known length"
    return reasons.get(key.partition(".")[0], "not known")


def _not_served(key: str, speed: InferenceSpeed) -> str:
    """Return why something that is served lacks a figure."""
    name, has_load = key.rpartition(".")[2], speed.request_seconds is not None
    if key.startswith("inference."):
        return "the load decides the batch" if has_load else "memory size not known"
    if name in UNDER_LOAD and not has_load:
        return "the plan gives no load"
    endless = getattr(speed, name) is not None
    return "more requests arrive than can be answered" if endless else "the model generates no tokens"


def keys(estimate: Figured) -> tuple[str, ...]:
    """Return the result keys that have a figure."""
    own = {"memory.parts": estimate.memory.parts, "computation.parts": estimate.computation.parts}
    parts = (f"{group}.{part}" for group, names in PARTS.items() for part in dict.fromkeys((*own[group], *names)))
    return (*METRICS, *parts)


def central(value: Value) -> Number | None:
    """Return the value itself, without its range."""
    return value.value if isinstance(value, Interval) else value


def interval_text(value: Value) -> str:
    """Return the range of a value in percent of it, empty where it has none."""
    if not isinstance(value, Interval):
        return ""
    center = mean(value.value) or 1.0
    low, high = (mean(end) / center - 1.0 for end in (value.low, value.high))
    return f"{low:+.0%} to {high:+.0%}"
