"""Which measurement of this program would narrow the range of a figure most, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.sensitivity.swing import Swing
from capacity_tui.engine.choose.sensitivity.unknowns import ASSUMED, PRICE, range_ends, with_evidence
from capacity_tui.engine.estimate import Figured
from capacity_tui.engine.machine import FitError
from capacity_tui.engine.uncertainty import UNSAID, spreads_here

# A range that is narrower by less than this share is as wide as before.
_LEAST = 0.005


@dataclass(frozen=True, slots=True)
class Measurement:
    """Something that can be measured.

    Attributes:
        kind: ``run``, ``memory``, ``kernels``, ``collectives``, ``benchmark`` or ``price``.
        what: in words.
        command: the command line that takes it; ``PLAN`` stands for the plan's file.
        samples: what fits it would leave at best, by name; none for what is no sample of the device.
        settles: beginnings of the keys of unknowns that it settles.
    """

    kind: str
    what: str
    command: str
    samples: tuple[str, ...] = ()
    settles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a measurement would do to the range of a figure.

    Attributes:
        measurement: what is measured.
        low, high: the range as it is, with all that is unknown.
        narrowed_low, narrowed_high: the range with it, at best.
    """

    measurement: Measurement
    low: float
    high: float
    narrowed_low: float
    narrowed_high: float

    @property
    def share(self) -> float:
        """By which share of its width the range narrows."""
        return 1.0 - (self.narrowed_high - self.narrowed_low) / (self.high - self.low)


MEASUREMENTS = (
    Measurement(
        "run",
        "the time of a step: a run of 50 steps of this plan, its first 10 left out",
        "capacity-tui calibrate --plan PLAN --step-seconds SECONDS",
        samples=("own runs, step time",),
    ),
    Measurement(
        "memory",
        "a reading of device memory at its peak, as the driver shows it, in a run of this plan",
        "capacity-tui calibrate --plan PLAN --peak-gib GIB",
        samples=("own runs, memory",),
    ),
    Measurement(
        "kernels",
        "samples of matrix products and attention on this device",
        "capacity-tui sample kernels && capacity-tui calibrate",
        samples=("gemm.bf16",),
    ),
    Measurement(
        "collectives",
        "samples of collectives between these devices",
        "capacity-tui sample collectives && capacity-tui calibrate",
        samples=("collectives",),
    ),
    Measurement(
        "benchmark",
        "what is assumed of this processor, measured on it",
        "capacity-tui detect --benchmark",
        settles=(f"{ASSUMED}cpu-",),
    ),
    Measurement(
        "price",
        "the price of an hour that you are offered",
        f"capacity-tui plan PLAN --set {PRICE}=USD",
        settles=(PRICE,),
    ),
)


def measure_next(case: EstimatedPlan, of: str, value: float, unknowns: Sequence[Swing]) -> Narrowing | None:
    """Return the measurement that narrows the range of a figure most; None where none does.

    Args:
        unknowns: what nobody knows exactly of it.
    """
    useful = [narrowing for narrowing in _narrowings(case, of, value, unknowns) if narrowing.share > _LEAST]
    return max(useful, key=lambda narrowing: narrowing.share, default=None)


def _narrowings(case: EstimatedPlan, of: str, value: float, unknowns: Sequence[Swing]) -> Iterator[Narrowing]:
    """Yield what each measurement would do: unknowns that are not of the spread widen the range as independent ones."""
    facts = [unknown for unknown in unknowns if unknown.key.startswith((ASSUMED, PRICE))]
    spread = range_ends(case.estimate, of) or (value, value)
    low, high = _together(value, spread, facts)
    for measurement in MEASUREMENTS:
        if measurement.kind == "collectives" and float(case.resolved.cluster.devices) <= 1:
            continue
        left = spread
        if measurement.samples:
            left = range_ends(_measured(case, measurement), of) or spread
        unsettled = [fact for fact in facts if not (measurement.settles and fact.key.startswith(measurement.settles))]
        ends = _together(value, left, unsettled)
        if high > low:
            yield Narrowing(measurement, low, high, *ends)


def _measured(case: EstimatedPlan, measurement: Measurement) -> Figured:
    """Return the estimate as if the device had been measured, and what was found left no error."""
    evidence = case.estimate.work.evidence
    if not evidence.likeness.words:
        return case.estimate  # nothing that is measured of a device narrows ranges of this kind of model
    here = spreads_here([FitError(name, 1, 0.0, 0.0) for name in measurement.samples])
    words = {name: UNSAID if name == "hardware" else word for name, word in evidence.likeness.words.items()}
    known = replace(evidence, likeness=replace(evidence.likeness, words=words), here={**evidence.here, **here})
    return with_evidence(case, known)


def _together(value: float, spread: tuple[float, float], facts: Sequence[Swing]) -> tuple[float, float]:
    """Return the range of a figure whose spread and some facts vary independently of each other."""
    below = [spread[0], *(min(fact.low, value) for fact in facts)]
    above = [spread[1], *(max(fact.high, value) for fact in facts)]
    down = math.sqrt(sum(math.log(value / end) ** 2 for end in below if end > 0))
    up = math.sqrt(sum(math.log(end / value) ** 2 for end in above))
    return value * math.exp(-down), value * math.exp(up)
