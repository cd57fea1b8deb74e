"""Whether a machine's cooling and power carry a load, judged by what sensors showed during one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from capacity_tui.engine.machine.machine import Accelerator, Machine
from capacity_tui.engine.machine.sample import Counters
from capacity_tui.engine.machine.vendors.vendor import GpuSample

Verdict = Literal["adequate", "at its limit", "inadequate", "not known"]

BUSY_PERCENT = 80.0  # a GPU below this is not under load

FEWEST_SAMPLES = 10

OFTEN = 0.05  # share of samples under load with heat throttling above which cooling does not carry the load

CLOSE_CELSIUS = 5.0  # to the limit

# Where the driver's limit is unknown: NVIDIA's and AMD's desktop cards begin to lower the clock at 83-95 °C.
ASSUMED_LIMIT_CELSIUS = 83.0

HEAT = ("thermal (software)", "thermal (hardware)", "hardware slowdown")

POWER = ("power cap", "power brake")


@dataclass(frozen=True, slots=True)
class Cooling:
    """A judgement of one GPU's cooling with the evidence for it."""

    index: int
    verdict: Verdict
    evidence: str


def judge_cooling(machine: Machine, samples: Sequence[Sequence[GpuSample]]) -> tuple[Cooling, ...]:
    """Return a judgement for every GPU from samples over a load, oldest first."""
    return tuple(_judge(gpu, _under_load(gpu.index, samples)) for gpu in machine.accelerators)


def cooling_now(machine: Machine) -> tuple[str, ...]:
    """Return the state of the cooling without a load: thermal throttling, and temperatures."""
    devices = []
    throttles, celsius = machine.power.package_throttles, machine.power.package_celsius
    if throttles.value:
        devices.append(
            f"processor: at its limit, heat held the clock down {throttles.value} times since the system started"
        )
    elif throttles.value == 0:
        devices.append("processor: adequate so far, heat has not held the clock down since the system started")
    elif celsius.value is not None:
        devices.append(f"processor: {celsius.value:.0f} °C now")
    for gpu in machine.accelerators:
        warm, limit = gpu.temperature_celsius.value, temperature_limit(gpu)
        held = [reason for reason in gpu.throttle.value or () if reason in HEAT]
        if held:
            devices.append(f"GPU {gpu.index}: inadequate, {', '.join(held)} holds the clock down now")
        elif warm is not None:
            devices.append(f"GPU {gpu.index}: {warm:.0f} of {limit:.0f} °C now")
    return tuple(devices)


def temperature_limit(gpu: Accelerator) -> float:
    """Return the temperature in degrees Celsius above which the clock falls."""
    return gpu.temperature_limit_celsius.value or ASSUMED_LIMIT_CELSIUS


def _under_load(index: int, samples: Sequence[Sequence[GpuSample]]) -> list[GpuSample]:
    readings = (sample for moment in samples for sample in moment if sample.index == index)
    return [sample for sample in readings if (sample.utilization_percent.value or 0.0) >= BUSY_PERCENT]


def _judge(gpu: Accelerator, busy: list[GpuSample]) -> Cooling:
    if len(busy) < FEWEST_SAMPLES:
        return Cooling(gpu.index, "not known", f"{len(busy)} samples under load, {FEWEST_SAMPLES} wanted")
    hot = _share(busy, HEAT)
    capped = _share(busy, POWER)
    warmest = max((sample.temperature_celsius.value or 0.0) for sample in busy)
    limit = temperature_limit(gpu)
    seen = f"up to {warmest:.0f} of {limit:.0f} °C over {len(busy)} samples under load"
    if hot > OFTEN:
        return Cooling(gpu.index, "inadequate", f"heat held the clock down in {hot:.0%} of them; {seen}")
    if warmest >= limit - CLOSE_CELSIUS:
        return Cooling(gpu.index, "at its limit", seen)
    if warmest == 0.0:
        return Cooling(gpu.index, "not known", "the device does not tell its temperature")
    power = f"; the power limit held the clock down in {capped:.0%}" if capped > OFTEN else ""
    return Cooling(gpu.index, "adequate", seen + power)


def _share(samples: list[GpuSample], reasons: tuple[str, ...]) -> float:
    held = [sample for sample in samples if set(sample.throttle.value or ()) & set(reasons)]
    return len(held) / len(samples)


BUSY_SHARE = 0.1  # from here on figures are not this machine's: less is the system's own work


@dataclass(frozen=True, slots=True)
class Moment:
    """Running totals at one moment: of the whole machine, and this process's own CPU seconds."""

    at_seconds: float
    counters: Counters
    own_seconds: float


def moment(counters: Callable[[], Counters]) -> Moment:
    """Return the totals now."""
    return Moment(time.monotonic(), counters(), time.process_time())


def busy_share(before: Moment, after: Moment, threads: int) -> float | None:
    """Return the share of the usable CPUs that others took between two moments; None where nothing counts them.

    CPUs that this process may not use count only when there are too few left: share = (others + usable - all) / usable.
    """
    busy, total = _between(before, after, "busy_seconds"), _between(before, after, "total_seconds")
    elapsed = after.at_seconds - before.at_seconds
    if busy is None or total is None or elapsed <= 0 or threads < 1:
        return None
    others = max(0.0, busy - (after.own_seconds - before.own_seconds)) / elapsed
    return min(1.0, max(0.0, others + threads - total / elapsed) / threads)


def _between(before: Moment, after: Moment, name: str) -> float | None:
    first, second = getattr(before.counters, name), getattr(after.counters, name)
    return None if first is None or second is None else second - first
