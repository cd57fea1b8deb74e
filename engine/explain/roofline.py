"""The roofline of a run: what its kernels ask of the device, and which limit holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.estimate.estimate import Answer, work_of
from capacity_tui.engine.estimate.resolve import ResolvedPlan, resolve_plan
from capacity_tui.engine.estimate.serving.resolve import serving_run
from capacity_tui.engine.estimate.serving.speed import decode, prefill
from capacity_tui.engine.estimate.timing.roofline import operator_seconds
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.numeric import Number

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine

# Kernels that take the most time are shown; more would not be told apart.
MOST_POINTS = 10
LEAST_SHARE = 0.001
_PASSES = (", backward", ", input gradient", ", weight gradient")


@dataclass(frozen=True, slots=True)
class Point:
    """One kind of kernel.

    Attributes:
        name: what it is.
        intensity: FLOPs for each byte of device memory traffic.
        flops_per_second: what it reaches on one device.
        share: of the time all kernels take.
        bound: what limits it.
    """

    name: str
    intensity: float
    flops_per_second: float
    share: float
    bound: Literal["compute", "memory"]


@dataclass(frozen=True, slots=True)
class Roofline:
    """The limits of one device, and where a run and its kernels lie below them.

    Attributes:
        device: its name.
        peak: dense peak of the type used, FLOP/s.
        bandwidth: memory bandwidth, B/s.
        intensity: FLOPs a byte of the whole run.
        flops_per_second: model FLOPs a second the run reaches on one device.
        points: kernels, the longest first.
    """

    device: str
    peak: float
    bandwidth: float
    intensity: float
    flops_per_second: float
    points: tuple[Point, ...]

    @property
    def ridge(self) -> float:
        """FLOPs a byte from which on arithmetic limits (Williams et al. 2009)."""
        return self.peak / self.bandwidth

    def roof(self, intensity: float) -> float:
        """FLOP/s the device can reach at an intensity."""
        return min(self.peak, intensity * self.bandwidth)


def roofline(answer: Answer, machine: Machine | None = None, catalog: Catalog | None = None) -> Roofline | None:
    """Return the roofline of an answered plan; None where its work moves no memory."""
    facts = catalog or load_catalog()
    resolved = resolve_plan(answer.plan, facts, machine)
    operators, micro_batches = _operators(resolved, facts)
    computation, bottleneck = answer.estimate.computation, answer.estimate.bottleneck
    intensity, ridge = _number(bottleneck.arithmetic_intensity), _number(bottleneck.ridge_point)
    bandwidth = _number(resolved.cluster.device.bandwidth)
    if intensity <= 0 or ridge <= 0:
        return None
    reached = computation.model_flops_per_step / computation.step_seconds.value / computation.devices
    points = sorted(_points(operators, micro_batches), key=lambda point: -point.share)
    name = resolved.cluster.device.name
    return Roofline(name, ridge * bandwidth, bandwidth, intensity, _number(reached), tuple(points[:MOST_POINTS]))


def _operators(resolved: ResolvedPlan, catalog: Catalog) -> tuple[tuple[Operator, ...], Number]:
    """Return the kernels of a run and how often those of a micro-batch run in a step."""
    if resolved.plan.task == "infer" and resolved.shape is not None:
        run = serving_run(resolved.plan, resolved.shape, resolved.cluster, catalog)
        first = tuple(replace(operator, name=f"{operator.name} of the prompt") for operator in prefill(run).operators)
        each = tuple(
            replace(operator, name=f"{operator.name} of the output", count=operator.count * run.decode_steps)
            for operator in decode(run).operators
        )
        return (*first, *each), 1.0
    work = work_of(resolved, catalog)
    return (work.operators, work.schedule.micro_batches) if work is not None else ((), 1.0)


def _points(operators: Iterable[Operator], micro_batches: Number) -> Iterator[Point]:
    """Yield one point a kind of kernel: forward, backward and recomputation of a product together."""
    kinds: dict[str, list[tuple[float, float, float, float]]] = {}
    for operator in operators:
        repeats = 1.0 if operator.where == "step" else micro_batches
        runs = _number(operator.count * repeats)
        sums = (operator.flops, operator.bytes, operator_seconds(operator), operator.flops / operator.rate)
        flops, traffic, seconds, arithmetic = (_number(each) * runs for each in sums)
        kinds.setdefault(_kind(operator.name), []).append((flops, traffic, seconds, arithmetic))
    total = sum(each[2] for members in kinds.values() for each in members)
    for name, members in kinds.items():
        flops, traffic, seconds, arithmetic = (sum(column) for column in zip(*members, strict=True))
        if min(flops, traffic) > 0 and seconds >= LEAST_SHARE * total:
            # Arithmetic that takes half the time and more is what limits.
            bound: Literal["compute", "memory"] = "compute" if arithmetic >= 0.5 * seconds else "memory"
            yield Point(name, flops / traffic, flops / seconds, seconds / total, bound)


def _kind(name: str) -> str:
    """Return what a kernel computes, whichever pass it belongs to."""
    for ending in _PASSES:
        name = name.removesuffix(ending)
    return name


def _number(value: Number) -> float:
    return float(np.max(np.asarray(value)))
