"""Ranges of eight in ten from the errors on publishers a fit has not seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.accuracy.predicting import exact_part
from capacity_tui.engine.uncertainty.intervals import memory_class, step_class
from tools.calibrate.fitting import Fit, Floats
from tools.calibrate.runs import Run

# Share of the known runs beyond each end of a range of eight in ten. Memory was published by few: so that eight in ten
# of a further publisher's runs lie inside, a smaller share of the known ones lies beyond.
TAILS = {"time": 0.1, "memory": 0.05}
# Below so many runs, or with one publisher alone, a class borrows the errors of all others.
FEWEST = 15
# No range begins at nothing: of what is estimated, this share is there.
SMALLEST = 0.05
# Power to which a range goes for runs of a class that nobody else measured.
WIDENING = 1.5

ClassOf = Callable[[Run], str]


@dataclass(frozen=True, slots=True)
class Range:
    """Measured over estimated in one class of runs.

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


@dataclass(frozen=True, slots=True)
class UnseenRun:
    """A run as constants and ranges from all other publishers predict it, in the unit of its measurement.

    Attributes:
        run: the run.
        estimated: by constants fitted to it as well.
        value: by the others' constants.
        low, high: ends of the range of its class, made without its publisher.
    """

    run: Run
    estimated: float
    value: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the measurement lies in the range."""
        return self.low <= self.run.measurement.value <= self.high


def time_class(run: Run) -> str:
    """Return the class of a run's step time."""
    return step_class(routed=run.routed, nodes=run.nodes)


def bytes_class(run: Run) -> str:
    """Return the class of a run's memory."""
    return memory_class(adapter=run.adapter, nodes=run.nodes)


CLASSES: dict[str, ClassOf] = {"time": time_class, "memory": bytes_class}


@dataclass(frozen=True)
class Ratios:
    """Measured over estimated of every run with its publisher left out, beyond the parts that are exact."""

    fit: Fit[Run]
    class_of: ClassOf
    tail: float
    exact: Floats
    over: Floats

    @property
    def predicted(self) -> Floats:
        """What was predicted without the publisher."""
        measured = np.array([run.measurement.value for run in self.fit.problem.runs])
        return np.asarray(measured * np.exp(self.fit.unseen))


def ratios_of(fit: Fit[Run], fits: str) -> Ratios:
    """Return the ratios behind the ranges of a fit of ``time`` or ``memory``."""
    problem = fit.problem
    exact = np.array([exact_part(run.measurement, problem.catalog) for run in problem.runs])
    measured = np.array([run.measurement.value for run in problem.runs])
    predicted = measured * np.exp(fit.unseen)
    return Ratios(fit, CLASSES[fits], TAILS[fits], exact, (measured - exact) / (predicted - exact))


def quantile(values: Floats, keys: Sequence[str], share: float) -> float:
    """Return a quantile halfway between counting every run and counting every publisher once."""
    count = Counter(keys)
    own = np.array([1.0 / count[key] for key in keys])
    weights = own / own.sum() + 1.0 / len(keys)
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(reached, share)), len(values) - 1)])


def _ends(ratios: Ratios, places: Sequence[int]) -> tuple[float, float]:
    keys = [ratios.fit.problem.runs[place].publisher for place in places]
    values = ratios.over[list(places)]
    return max(quantile(values, keys, ratios.tail), SMALLEST), quantile(values, keys, 1.0 - ratios.tail)


def ranges_by_class(ratios: Ratios) -> dict[str, Range]:
    """Return the range of each class of runs."""
    runs = ratios.fit.problem.runs
    found = {}
    for name in sorted({ratios.class_of(run) for run in runs}):
        places = [place for place, run in enumerate(runs) if ratios.class_of(run) == name]
        chosen = [runs[place] for place in places]
        low, high = _ends(ratios, places)
        found[name] = Range(
            low=low,
            high=high,
            measurements=len(chosen),
            publishers=len({run.publisher for run in chosen}),
            hardware=tuple(sorted({run.rows["efficiency"] for run in chosen})),
            frameworks=tuple(sorted({run.rows["frameworks"] for run in chosen})),
        )
    return found


def unseen_runs(ratios: Ratios) -> tuple[UnseenRun, ...]:
    """Return every run as the others' constants and ranges predict it.

    A class that only the left-out publisher measured takes the errors of all other runs, widened.
    """
    runs = ratios.fit.problem.runs
    classes = [ratios.class_of(run) for run in runs]
    predicted, estimated = ratios.predicted, np.exp(ratios.fit.errors.residuals)
    ends: dict[tuple[str, str], tuple[float, float]] = {}
    found = []
    for place, run in enumerate(runs):
        key = run.publisher, classes[place]
        if key not in ends:
            others = [each for each, other in enumerate(runs) if other.publisher != run.publisher]
            alike = [each for each in others if classes[each] == classes[place]]
            chosen, power = (alike, 1.0) if len(alike) >= FEWEST else (others, WIDENING)
            low, high = _ends(ratios, chosen)
            ends[key] = low**power, high**power
        exact, value = float(ratios.exact[place]), float(predicted[place])
        low, high = (exact + (value - exact) * end for end in ends[key])
        found.append(UnseenRun(run, float(estimated[place]) * run.measurement.value, value, low, high))
    return tuple(found)


def coverage(runs: Sequence[UnseenRun]) -> tuple[float, float]:
    """Return the share of runs inside their ranges: of all runs, and the mean over publishers."""
    by_publisher: dict[str, list[bool]] = {}
    for each in runs:
        by_publisher.setdefault(each.run.publisher, []).append(each.inside)
    shares = [float(np.mean(inside)) for inside in by_publisher.values()]
    return float(np.mean([each.inside for each in runs])), float(np.mean(shares))
