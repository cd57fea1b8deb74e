"""Ranges of eight in ten from the errors on publishers a fit has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.accuracy.cases import CalibrationRun, counted_memory
from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.uncertainty.intervals import memory_class, step_class

Floats = NDArray[np.float64]

# Share of the known runs beyond each end of a range of eight in ten. Memory was published by few: so that eight in ten
# of a further publisher's runs lie inside, a smaller share of the known ones lies beyond.
TAILS = {"time": 0.1, "memory": 0.05}
# Below so many runs, or with one publisher alone, a class borrows the errors of all others.
FEWEST = 15
# No range begins at nothing: of what is predicted, this share is there.
SMALLEST = 0.05


@dataclass(frozen=True, slots=True)
class Range:
    """Measured over predicted in one class of runs.

    Attributes:
        low, high: ends of the range that holds eight in ten of a further publisher's runs.
        measurements: runs behind them.
        publishers: publishers of these runs.
        hardware: rows of efficiency.yaml among them.
        frameworks: rows of frameworks.yaml among them.
    """

    low: float
    high: float
    measurements: int
    publishers: int
    hardware: tuple[str, ...]
    frameworks: tuple[str, ...]


def step_class_of(case: CalibrationRun) -> str:
    """Return the class of a case's step time."""
    return step_class(routed=_routed(case), nodes=_nodes(case))


def memory_class_of(case: CalibrationRun) -> str:
    """Return the class of a case's memory."""
    return memory_class(adapter=case.resolved.plan.training.adapter is not None, nodes=_nodes(case))


def _routed(case: CalibrationRun) -> bool:
    return case.resolved.shape is not None and float(case.resolved.shape.experts) > 0


def _nodes(case: CalibrationRun) -> bool:
    return float(case.resolved.cluster.devices) > float(case.resolved.cluster.per_node)


def quantile(values: Floats, keys: Sequence[str], share: float) -> float:
    """Return a quantile halfway between counting every run and counting every publisher once."""
    own = np.array([1.0 / keys.count(key) for key in keys])
    weights = own / own.sum() + 1.0 / len(keys)
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(reached, share)), len(values) - 1)])


def memory_ratios(cases: Sequence[CalibrationRun], residuals: Floats, catalog: Catalog) -> Floats:
    """Return measured over predicted memory beyond its exact parts, from residuals ln(predicted / measured)."""
    exact = np.array([counted_memory(case, catalog).exact for case in cases])
    measured = np.array([case.measurement.value for case in cases])
    predicted = measured * np.exp(residuals)
    return np.asarray((measured - exact) / (predicted - exact))


def ranges_by_class(
    cases: Sequence[CalibrationRun], ratios: Floats, class_of: Callable[[CalibrationRun], str], tail: float
) -> dict[str, Range]:
    """Return the range of each class from ratios of measured to predicted of unseen publishers."""
    keys = [case.measurement.source_key for case in cases]
    found = {}
    for name in sorted({class_of(case) for case in cases}):
        chosen = [index for index, case in enumerate(cases) if class_of(case) == name]
        own = [keys[index] for index in chosen]
        found[name] = Range(
            low=max(quantile(ratios[chosen], own, tail), SMALLEST),
            high=quantile(ratios[chosen], own, 1.0 - tail),
            measurements=len(chosen),
            publishers=len(set(own)),
            hardware=tuple(sorted({cases[index].efficiency for index in chosen})),
            frameworks=tuple(sorted({cases[index].framework for index in chosen})),
        )
    return found


def coverage(
    cases: Sequence[CalibrationRun],
    ratios: Floats,
    class_of: Callable[[CalibrationRun], str],
    widening: float,
    tail: float,
) -> tuple[float, float]:
    """Return the share of runs inside ranges made without their publisher: of all runs, and by publisher.

    A class that only the left-out publisher measured takes the errors of all other runs, widened.
    """
    keys = [case.measurement.source_key for case in cases]
    classes = [class_of(case) for case in cases]
    inside = np.zeros(len(cases), dtype=bool)
    for index, (key, name) in enumerate(zip(keys, classes, strict=True)):
        others = [place for place, other in enumerate(keys) if other != key]
        alike = [place for place in others if classes[place] == name]
        chosen, power = (alike, 1.0) if len(alike) >= FEWEST else (others, widening)
        own = [keys[place] for place in chosen]
        low, high = (max(quantile(ratios[chosen], own, share), SMALLEST) ** power for share in (tail, 1.0 - tail))
        inside[index] = low <= ratios[index] <= high
    by_publisher = [float(np.mean(inside[[key == other for other in keys]])) for key in dict.fromkeys(keys)]
    return float(np.mean(inside)), float(np.mean(by_publisher))
