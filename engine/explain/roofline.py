"""The roofline of a run: what its kernels ask of the device, and which limit holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from capacity_tui.engine.estimate import Answer, Phase
from capacity_tui.engine.estimate.timing import operator_seconds
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.record import dataclass

# Kernels that take the most time are shown; more would not be told apart.
MOST_POINTS = 10
LEAST_SHARE = 0.001
_PASSES = (", backward", ", input gradient", ", weight gradient")


@dataclass(frozen=True, slots=True)
class Point:
    """One kind of kernel.

    Attributes:
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


def roofline(answer: Answer) -> Roofline | None:
    """Return the roofline of an answered plan, from the work its estimate kept; None where it moves no memory."""
    device, estimate = answer.resolved.cluster.device, answer.estimate
    computation, bottleneck = estimate.computation, estimate.bottleneck
    intensity, ridge = largest(bottleneck.arithmetic_intensity), largest(bottleneck.ridge_point)
    bandwidth = largest(device.bandwidth)
    if intensity <= 0 or ridge <= 0:
        return None
    reached = computation.model_flops_per_step / computation.step_seconds.value / computation.devices
    points = sorted(_points(estimate.work.phases), key=lambda point: -point.share)
    return Roofline(device.name, ridge * bandwidth, bandwidth, intensity, largest(reached), tuple(points[:MOST_POINTS]))


def _points(phases: tuple[Phase, ...]) -> Iterator[Point]:
    """Yield one point a kind of kernel: forward, backward and recomputation of a product together."""
    kinds: dict[str, list[tuple[float, float, float, float]]] = {}
    for phase in phases:
        ending = "" if len(phases) == 1 else f", {phase.name}"
        for operator in phase.operators:
            repeats = 1.0 if operator.where == "step" else phase.schedule.repeats
            runs = largest(operator.count * repeats * phase.runs)
            sums = (operator.flops, operator.bytes, operator_seconds(operator), operator.flops / operator.rate)
            flops, traffic, seconds, arithmetic = (largest(summed) * runs for summed in sums)
            kinds.setdefault(_kind(operator.name) + ending, []).append((flops, traffic, seconds, arithmetic))
    total = sum(summed[2] for members in kinds.values() for summed in members)
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
