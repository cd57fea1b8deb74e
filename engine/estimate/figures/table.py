"""The table of figures: JSON, reports, screens, differences, explanations, limits and goals read it.

A row here and its name in ``Figure`` are all that a new figure takes. The order of rows is that of reports, panels and
columns: what a run comes to first, then what that rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.estimate.memory_estimate import MemoryEstimate
from capacity_tui.engine.estimate.money import job_usd
from capacity_tui.engine.estimate.result import (
    Bottleneck,
    ComputationEstimate,
    CostEstimate,
    EnergyEstimate,
    InferenceSpeed,
)
from capacity_tui.engine.estimate.timing.reliability import ReliabilityEstimate
from capacity_tui.engine.estimate.work import ModelFacts, Part
from capacity_tui.engine.keys import Figure, Parts
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval, existing
from capacity_tui.engine.units import PERCENT

LESS, NEITHER, MORE = -1, 0, 1
Block: TypeAlias = Literal["", "model", "memory", "time", "cost", "law"]

Runs: TypeAlias = Literal[
    "none", "all", "trained", "served", "not served", "loaded", "unloaded", "ending", "closed", "open"
]

RUNS: Mapping[Runs, Callable[[Figured], bool]] = {
    "none": lambda _: False,
    "all": lambda _: True,
    "trained": lambda e: e.computation.iteration != "batch",
    "served": lambda e: e.computation.infer is not None,
    "not served": lambda e: e.computation.infer is None,
    "loaded": lambda e: e.computation.infer is not None and e.computation.infer.request_seconds is not None,
    "unloaded": lambda e: e.computation.infer is not None and e.computation.infer.request_seconds is None,
    "ending": lambda e: e.computation.infer is not None and e.computation.infer.all_requests_seconds is not None,
    "closed": lambda e: e.computation.steps is not None,
    "open": lambda e: e.computation.steps is None,
}
"""Kinds of runs: served under a load of requests that may end, or without one, jobs whose length is open or not."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A kind of figure."""

    key: str  # its result key, which is its place in JSON
    # what it is called; ``{counted}`` stands for what the run counts (tokens, images), ``{samples}`` for what its
    # samples are, ``{iteration}`` for what is timed (step, batch, fit), ``{job}`` for the whole of the work,
    # ``{total}`` and ``{both}`` say that prompts count as well as answers, ``{device}`` what a device is called
    label: str
    unit: str  # unit of the value, with the same words
    read: Reader  # returns it from an estimate
    better: int = NEITHER  # ``LESS``, ``MORE`` or ``NEITHER``
    brief: str = ""  # label where there is little room; empty for the same
    head: str = ""  # name of its column; empty for the brief label
    has_ends: bool = False  # whether JSON gives its range where it stands; else below ``ranges``
    block: Block = ""  # heading of reports that it stands under; empty where they leave it out
    panel: Runs = "none"  # runs for which the table of the plan shows it
    # whether the figure of an estimate tells nothing new, and is left out
    saying_nothing: Callable[[Figured], bool] | None = None
    # runs of which two are compared by it: all, or those that do the same work
    difference: Literal["", "all", "same work"] = ""
    topic: str = ""  # what a difference is about; of several figures of one topic the first that two runs have
    column: str = ""  # what a column of alternatives tells; of several figures of one word the first that is known
    rank: int = 0  # how soon the column gives way where there is little room, the highest first; 0 for never
    words: tuple[str, ...] = ()  # short words for it in limits and goals
    trained: tuple[str, ...] = ()  # such words of what is trained
    served: tuple[str, ...] = ()  # such words of what is served
    goal: int = NEITHER  # what is wanted of it as a goal, where it is neither good nor bad by itself
    open_length: Figure | None = None  # the figure that leads to the same choice where the length of a job is open

    @property
    def name(self) -> str:
        """The label without what it adds in brackets, for sentences."""
        return self.label.partition(" (")[0]

    @property
    def is_main(self) -> bool:
        """Whether a brief answer has it: what alternatives are compared by, and what a load that ends is about."""
        return bool(self.column or self.topic) or self.panel == "ending"


_ROOM = ("weights", "gradients", "optimizer", "activations", "logits", "buffers", "kv_cache", "context", "reserve")
PARTS: Mapping[str, tuple[str, ...]] = MappingProxyType({Parts.MEMORY: _ROOM, Parts.COMPUTATION: get_args(Part)})
"""Parts that every answer names, by the key above theirs; those that a run has none of are 0."""

_LABELS = {
    "kv_cache": "KV cache",
    "context": "driver context",
    "reserve": "fragmentation",
    "buffers": "workspace & comm.",
}


def part_label(part: str) -> str:
    """Return what a part of memory or of a step is called."""
    return _LABELS.get(part, part.replace("_", " "))


MANY_DEVICES = counted("devices-that-fail-often")


units_per_second = formula()
units_per_device_second = formula()
samples_per_second = formula()
job_seconds = formula()
device_hours = formula()  # Hours of a job over all devices, as clusters bill them
usd_per_request = formula()
job_flops = formula()
model_tflops = formula()
memory_used = formula()


Value: TypeAlias = Number | Interval | None


class Figured(Protocol):
    """What figures are read from: an estimate, or one whose groups of figures are worked out when asked for."""

    @property
    def model(self) -> ModelFacts: ...
    @property
    def memory(self) -> MemoryEstimate: ...
    @property
    def computation(self) -> ComputationEstimate: ...
    @property
    def bottleneck(self) -> Bottleneck: ...
    @property
    def cost(self) -> CostEstimate: ...
    @property
    def energy(self) -> EnergyEstimate: ...
    @property
    def reliability(self) -> ReliabilityEstimate | None: ...
    @property
    def details(self) -> Mapping[str, Number]: ...


Reader: TypeAlias = Callable[[Figured], Value]


def per_step(read: Callable[[Figured], Number | None], power: Literal[-1, 1] = 1, most: float = inf) -> Reader:
    """Return a figure with the range of the step's time, up to ``most``: it grows with that time, or its inverse."""

    def ranged(estimate: Figured) -> Value:
        value, step = read(estimate), estimate.computation.step_seconds
        if value is None:
            return None
        ends = (step.low / step.value, step.high / step.value)
        low, high = ends if power > 0 else (1.0 / ends[1], 1.0 / ends[0])
        return Interval(value, value * low, value * high).at_most(most)

    return ranged


def of_job(read: Callable[[Figured], Number | None]) -> Reader:
    """Return a figure of the whole job, with the range of its time; None where its length is open."""
    return per_step(lambda estimate: None if estimate.computation.steps is None else read(estimate))


def of_serving(read: Callable[[InferenceSpeed], Value]) -> Reader:
    """Return a speed of serving; None for what does not serve, generates no tokens, or has no steady state."""
    return lambda estimate: None if estimate.computation.infer is None else existing(read(estimate.computation.infer))


def detail(key: str) -> Reader:
    """Return a figure that only some kinds of runs have."""
    return lambda estimate: estimate.details.get(key)


def of_calendar(read: Callable[[ReliabilityEstimate], Value]) -> Reader:
    """Return a figure of what failures make of a training; None for what is no training of a known length."""
    return lambda estimate: None if estimate.reliability is None else read(estimate.reliability)


def is_rarely_interrupted(estimate: Figured) -> bool:
    """Return whether failures tell little of a run: nothing is trained, its length is open, or devices are few."""
    return estimate.reliability is None or float(np.max(estimate.computation.devices)) < MANY_DEVICES


def job_time(estimate: Figured) -> Value:
    """Return the length of the job, s."""
    steps, step = estimate.computation.steps, estimate.computation.step_seconds
    return None if steps is None else Interval(job_seconds(steps, step.value), step.low * steps, step.high * steps)


def total_flops(estimate: Figured) -> Value:
    steps = estimate.computation.steps
    return None if steps is None else job_flops(steps, estimate.computation.model_flops_per_step)


def utilization(estimate: Figured) -> Value:
    """Return peak memory in percent of what the device has."""
    capacity, reserved = estimate.memory.capacity_bytes, estimate.memory.reserved_bytes
    if capacity is None:
        return None
    shares = (PERCENT * end / capacity for end in (reserved.low, reserved.high))
    return Interval(memory_used(reserved.value, capacity), *shares)


@of_job
def gpu_hours(estimate: Figured) -> Number | None:
    """Return the hours of the job over all devices."""
    computation = estimate.computation
    seconds = None if computation.steps is None else job_seconds(computation.steps, computation.step_seconds.value)
    return None if seconds is None else device_hours(seconds, computation.devices)


@per_step
def request_price(estimate: Figured) -> Number | None:
    """Return the price of a request that is served, USD."""
    computation, million = estimate.computation, estimate.cost.usd_per_million_tokens
    if computation.infer is None or million is None:
        return None
    return usd_per_request(million, computation.units_per_sample)


def all_requests_price(estimate: Figured) -> Interval | None:
    """Return the price of all requests of a load that ends, USD."""
    speed, hourly = estimate.computation.infer, estimate.cost.usd_per_hour
    if speed is None or speed.all_requests_seconds is None or hourly is None:
        return None
    seconds = speed.all_requests_seconds
    usd = job_usd.for_part(Figure.COST_USD_OF_ALL_REQUESTS).with_origins(seconds="all_requests_seconds")
    return Interval(*(usd(end, hourly) for end in (seconds.value, seconds.low, seconds.high)))


def _rate(equation: Callable[[ComputationEstimate], Number]) -> Reader:
    return per_step(lambda estimate: equation(estimate.computation), -1)


throughput = _rate(lambda c: units_per_second(c.units_per_step, c.step_seconds.value))
device_throughput = _rate(lambda c: units_per_device_second(c.units_per_step, c.step_seconds.value, c.devices))
sample_throughput = _rate(lambda c: samples_per_second(c.units_per_step, c.units_per_sample, c.step_seconds.value))
tflops_per_device = _rate(lambda c: model_tflops(c.model_flops_per_step, c.step_seconds.value, c.devices))


_ROWS = (
    Metric(Figure.MODEL_PARAMETERS, "parameters", "", lambda e: e.model.parameters, block="model", goal=MORE,
           words=("parameters",)),
    Metric(Figure.MODEL_ACTIVE_PARAMETERS, "active parameters", "", lambda e: e.model.active_parameters,
           block="model", goal=MORE,
           saying_nothing=lambda e: float(e.model.active_parameters) == float(e.model.parameters)),
    Metric(Figure.MODEL_FORWARD_FLOPS, "forward FLOPs per {unit}", "FLOP", lambda e: e.model.forward_flops,
           block="model"),
    Metric(Figure.MEMORY_RESERVED_BYTES, "peak memory", "B", lambda e: e.memory.reserved_bytes, LESS, "memory",
           has_ends=True, block="memory", panel="all", difference="all", topic="memory", words=("memory",)),
    Metric(Figure.MEMORY_UTILIZATION_PERCENT, "memory utilization", "%", utilization, LESS, "utilization", "memory",
           block="memory", panel="all", column="memory", rank=2, words=("memory",)),
    Metric(Figure.MEMORY_CAPACITY_BYTES, "device memory", "B", lambda e: e.memory.capacity_bytes, block="memory",
           goal=LESS),
    Metric(Figure.MEMORY_PER_DEVICE_BYTES, "peak memory allocated", "B", lambda e: e.memory.per_device_bytes, LESS,
           has_ends=True, block="memory"),
    Metric(Figure.MEMORY_ALLOCATOR_BYTES, "peak memory reserved", "B", lambda e: e.memory.allocator_bytes, LESS,
           "reserved", has_ends=True, block="memory", panel="all"),
    Metric(Figure.MEMORY_HOST_BYTES, "host memory per device", "B", lambda e: e.memory.host_bytes, LESS,
           "host memory", block="memory", panel="all", difference="all", words=("host_memory",),
           saying_nothing=lambda e: not e.memory.host_bytes),
    Metric(Figure.MEMORY_HOST_CAPACITY_BYTES, "host memory available per device", "B",
           lambda e: e.memory.host_capacity_bytes, block="memory", saying_nothing=lambda e: not e.memory.host_bytes),
    Metric(Figure.INFERENCE_LARGEST_BATCH, "largest batch that fits", "requests",
           detail(Figure.INFERENCE_LARGEST_BATCH), MORE, "largest batch", block="memory", panel="unloaded"),
    Metric(Figure.INFERENCE_LONGEST_CONTEXT, "longest context that fits", "tok",
           detail(Figure.INFERENCE_LONGEST_CONTEXT), MORE, "context fits", block="memory", panel="unloaded"),
    Metric(Figure.ESTIMATED_TRAIN_TIME_SECONDS, "{job} time", "s", job_time, LESS, "time", has_ends=True, block="time",
           panel="trained", difference="same work", topic="speed", column="time",
           trained=("time",), open_length=Figure.TOKENS_PER_SECOND),
    Metric(Figure.RELIABILITY_CALENDAR_SECONDS, "calendar time", "s",
           of_calendar(lambda r: r.calendar_seconds), LESS, "calendar", has_ends=True, block="time", panel="closed",
           saying_nothing=is_rarely_interrupted, trained=("calendar",)),
    Metric(Figure.RELIABILITY_FAILURES, "expected failures", "failures", of_calendar(lambda r: r.failures), LESS,
           "failures", has_ends=True, block="time", saying_nothing=is_rarely_interrupted),
    Metric(Figure.RELIABILITY_MTBF_HOURS, "mean time between failures", "h", of_calendar(lambda r: r.mtbf_hours), MORE,
           "MTBF", has_ends=True, block="time", saying_nothing=is_rarely_interrupted, words=("mtbf",)),
    Metric(Figure.RELIABILITY_GOODPUT, "goodput", "share", of_calendar(lambda r: r.goodput), MORE, has_ends=True,
           block="time", panel="closed", saying_nothing=is_rarely_interrupted, words=("goodput",)),
    Metric(Figure.ALL_REQUESTS_SECONDS, "time of all requests", "s", of_serving(lambda i: i.all_requests_seconds), LESS,
           has_ends=True, block="time", panel="ending"),
    Metric(Figure.TIME_TO_FIRST_TOKEN_SECONDS, "time to first token", "s",
           of_serving(lambda i: i.time_to_first_token_seconds), LESS, "TTFT", has_ends=True, block="time",
           panel="served", difference="all", topic="latency", column="time", served=("ttft",)),
    Metric(Figure.TIME_TO_FIRST_TOKEN_PERCENTILE_SECONDS, "{tail} time to first token", "s",
           of_serving(lambda i: i.time_to_first_token_percentile_seconds), LESS, "{tail} TTFT", has_ends=True,
           block="time", panel="loaded"),
    Metric(Figure.TIME_PER_OUTPUT_TOKEN_SECONDS, "time per output token", "s",
           of_serving(lambda i: i.time_per_output_token_seconds), LESS, "TPOT", has_ends=True, block="time",
           panel="served", column="token time", served=("tpot",)),
    Metric(Figure.TIME_PER_OUTPUT_TOKEN_PERCENTILE_SECONDS, "{tail} time per output token", "s",
           of_serving(lambda i: i.time_per_output_token_percentile_seconds), LESS, "{tail} TPOT", has_ends=True,
           block="time", panel="loaded"),
    Metric(Figure.REQUEST_SECONDS, "request latency", "s", of_serving(lambda i: i.request_seconds), LESS,
           has_ends=True, block="time", panel="loaded"),
    Metric(Figure.COST_USD, "cost", "USD", lambda e: e.cost.interval or e.cost.usd, LESS, block="cost",
           panel="closed", difference="same work", topic="money", column="money", trained=("usd", "cost"),
           open_length=Figure.COST_USD_PER_MILLION_TOKENS),
    Metric(Figure.COST_USD_SPOT, "spot cost", "USD", lambda e: e.cost.spot_interval or e.cost.usd_spot, LESS,
           block="cost", trained=("spot",)),
    Metric(Figure.RELIABILITY_CALENDAR_USD, "calendar cost", "USD", of_calendar(lambda r: r.calendar_usd), LESS,
           "calendar cost", has_ends=True, block="cost", panel="closed", saying_nothing=is_rarely_interrupted),
    Metric(Figure.COST_USD_OF_ALL_REQUESTS, "cost of all requests", "USD", all_requests_price, LESS,
           block="cost", panel="ending"),
    Metric(Figure.COST_USD_PER_MILLION_TOKENS, "cost per million {counted}{both}", "USD/M",
           per_step(lambda e: e.cost.usd_per_million_tokens), LESS, "$/M {counted}", block="cost",
           panel="open", difference="all", topic="money", column="money", served=("usd", "cost")),
    Metric(Figure.COST_USD_PER_REQUEST, "cost per request", "USD/request", request_price, LESS, "$/request",
           block="cost", panel="served"),
    Metric(Figure.COST_USD_PER_HOUR, "cost per hour", "USD", lambda e: e.cost.usd_per_hour, LESS, "$ an hour", "$/h",
           block="cost", panel="open", column="hourly", rank=5, words=("hourly",)),
    Metric(Figure.COST_GPU_HOURS, "{device}-hours", "{device}-h", gpu_hours, LESS, block="cost", panel="closed",
           saying_nothing=lambda e: e.computation.iteration == "fit", difference="same work", column="work", rank=6,
           trained=("gpu_hours", "device_hours"),
           open_length=Figure.TOKENS_PER_SECOND_PER_DEVICE),
    Metric(Figure.ENERGY_KWH, "energy of the devices", "kWh", of_job(lambda e: e.energy.kwh), LESS, "energy",
           block="cost", panel="closed", difference="same work", words=("energy",),
           open_length=Figure.ENERGY_WATTS_AVERAGE),
    Metric(Figure.ENERGY_KWH_SYSTEM, "energy with host and cooling", "kWh", of_job(lambda e: e.energy.kwh_system), LESS,
           "total energy", block="cost"),
    Metric(Figure.ENERGY_KWH_HOST, "energy of the hosts", "kWh", of_job(lambda e: e.energy.kwh_host), LESS,
           block="cost"),
    Metric(Figure.ENERGY_KWH_NETWORK, "energy of the network", "kWh", of_job(lambda e: e.energy.kwh_network), LESS,
           block="cost"),
    Metric(Figure.ENERGY_KWH_COOLING, "energy of cooling", "kWh", of_job(lambda e: e.energy.kwh_cooling), LESS,
           block="cost"),
    Metric(Figure.CARBON_KG, "emissions", "kg", of_job(lambda e: e.energy.carbon_kg), LESS, "CO2", block="cost",
           words=("carbon", "co2")),
    Metric(Figure.CARBON_GRAMS_PER_KWH, "carbon intensity of the grid", "g/kWh", lambda e: e.energy.grams_per_kwh, LESS,
           block="cost"),
    Metric(Figure.ENERGY_WATTS_AVERAGE, "average power", "W", lambda e: e.energy.watts_average, block="cost",
           panel="open", words=("power",), goal=LESS),
    Metric(Figure.ENERGY_USD, "electricity cost", "USD", of_job(lambda e: e.energy.usd), LESS, block="cost"),
    Metric(Figure.STEP_SECONDS, "{iteration} time", "s", lambda e: e.computation.step_seconds, LESS, head="step",
           has_ends=True, block="time", panel="not served",
           saying_nothing=lambda e: e.computation.iteration == "fit", difference="all", column="time",
           words=("step",), served=("time",)),
    Metric(Figure.OUTPUT_TOKENS_PER_SECOND, "output throughput", "tok/s",
           of_serving(lambda i: i.output_tokens_per_second), MORE, "output tok/s", has_ends=True, block="time",
           panel="served", difference="all", topic="speed", column="speed", rank=3, served=("throughput",)),
    Metric(Figure.TOKENS_PER_SECOND, "{total}throughput{both}", "{counted}/s", throughput, MORE, "{total}{counted}/s",
           block="time", panel="all", difference="all", topic="speed", column="speed", rank=3, trained=("throughput",)),
    Metric(Figure.TOKENS_PER_SECOND_PER_DEVICE, "throughput per device", "{counted}/s", device_throughput, MORE,
           block="time", saying_nothing=lambda e: float(e.computation.devices) == 1.0),
    Metric(Figure.SAMPLES_PER_SECOND, "sample throughput", "{samples}/s", sample_throughput, MORE, difference="all",
           topic="speed"),
    Metric(Figure.PREFILL_TOKENS_PER_SECOND, "prefill throughput", "tok/s",
           of_serving(lambda i: i.prefill_tokens_per_second), MORE, "prefill tok/s", has_ends=True, block="time",
           panel="served"),
    Metric(Figure.DECODE_TOKENS_PER_SECOND, "decode throughput", "tok/s",
           of_serving(lambda i: i.decode_tokens_per_second), MORE, "decode tok/s", has_ends=True, block="time",
           panel="served", difference="all"),
    Metric(Figure.REQUESTS_PER_SECOND, "request throughput", "requests/s", of_serving(lambda i: i.requests_per_second),
           MORE, "requests/s", has_ends=True, block="time", panel="served", served=("requests",)),
    Metric(Figure.LARGEST_REQUESTS_PER_SECOND, "maximum load", "requests/s",
           of_serving(lambda i: i.largest_requests_per_second), MORE, has_ends=True, block="time", panel="loaded"),
    Metric(Figure.RUNNING_REQUESTS, "requests in flight", "requests", of_serving(lambda i: i.running_requests),
           has_ends=True, block="time", panel="loaded"),
    Metric(Figure.WAITING_REQUESTS, "requests waiting", "requests", of_serving(lambda i: i.waiting_requests), LESS,
           has_ends=True, block="time", panel="loaded"),
    Metric(Figure.MFU, "model FLOPs utilization", "share", per_step(lambda e: e.computation.mfu, -1, 1.0), MORE, "MFU",
           block="time", panel="not served", column="utilization", rank=7, trained=("mfu",)),
    Metric(Figure.MODEL_TFLOPS_PER_DEVICE, "model TFLOP/s per device", "TFLOP/s", tflops_per_device, MORE),
    Metric(Figure.TOTAL_FLOPS, "total FLOPs", "FLOP", total_flops, block="time", panel="closed"),
    Metric(Figure.TRAINING_EXPECTED_LOSS, "expected loss", "nats", detail(Figure.TRAINING_EXPECTED_LOSS), LESS,
           block="law", trained=("loss",)),
    Metric(Figure.TRAINING_LEAST_LOSS, "lowest loss for the same compute", "nats", detail(Figure.TRAINING_LEAST_LOSS),
           block="law"),
    Metric(Figure.TRAINING_OPTIMAL_PARAMETERS, "compute-optimal parameters", "",
           detail(Figure.TRAINING_OPTIMAL_PARAMETERS), block="law"),
    Metric(Figure.TRAINING_OPTIMAL_TOKENS, "compute-optimal tokens", "tok", detail(Figure.TRAINING_OPTIMAL_TOKENS),
           block="law"),
    Metric(Figure.TRAINING_OVERTRAINING, "overtraining", "", detail(Figure.TRAINING_OVERTRAINING), block="law"),
    Metric(Figure.BOTTLENECK_ARITHMETIC_INTENSITY, "arithmetic intensity", "FLOP/B",
           lambda e: e.bottleneck.arithmetic_intensity),
    Metric(Figure.BOTTLENECK_RIDGE_POINT, "ridge point", "FLOP/B", lambda e: e.bottleneck.ridge_point),
)  # fmt: skip
METRICS: Mapping[str, Metric] = MappingProxyType({metric.key: metric for metric in _ROWS})
"""Every kind of figure by its result key."""
