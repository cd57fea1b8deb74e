"""Figures that follow from time, work and memory: the equations, and how each figure is read from an estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Literal, Protocol, TypeAlias

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
from capacity_tui.engine.estimate.work import ModelFacts
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.uncertainty import Interval, existing
from capacity_tui.engine.units import PERCENT

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
