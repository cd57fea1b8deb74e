"""How far predictions are from published measurements: overall, in groups, and out of sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from statistics import median
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.record import dataclass, record_of_data
from capacity_tui.engine.runs.accuracy.published import (
    Kind,
    Measurement,
    Skipped,
    read_measurements,
    read_skipped,
    table_rows,
)
from capacity_tui.engine.units import PERCENT
from capacity_tui.engine.verdict import Verdict

Floats: TypeAlias = NDArray[np.float64]
GROUPS = ("source", "hardware", "size", "length", "parallelism", "framework", "precision", "routing", "model")


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted figure in the measurement's unit, with its interval where the model gives one."""

    value: float
    low: float | None = None
    high: float | None = None
    verdict: Verdict | None = None  # whether the run is predicted to fit; None where unknown


@dataclass(frozen=True, slots=True)
class Pair:
    """A measurement and its prediction."""

    measurement: Measurement
    prediction: Prediction

    @property
    def error(self) -> float:
        """Relative error, |predicted - measured| / measured."""
        return abs(self.prediction.value - self.measurement.value) / self.measurement.value


@dataclass(frozen=True, slots=True)
class Scores:
    """Errors of a set of pairs; shares are fractions of one."""

    count: int
    sources: int  # number of publishers they come from
    median: float  # median relative error over the pairs
    mean: float  # mean relative error over the pairs
    p90: float  # 90th percentile of the relative error
    bias: float  # median of ln(predicted / measured); above 0 the figure is predicted too large
    # mean over the publishers of each one's median error, so that many rows of one publisher count once
    source_median: float
    source_mean: float  # the same of each one's mean error
    coverage: float | None  # share of the measurements inside their interval; None without intervals
    source_coverage: float | None  # mean over the publishers of each one's share inside
    width: float | None  # median of the high over the low end of the intervals


def score(pairs: Sequence[Pair]) -> Scores:
    """Return the scores of the pairs; raises ValueError if there are none."""
    if not pairs:
        raise ValueError("nothing to score")
    measured = np.array([pair.measurement.value for pair in pairs])
    predicted = np.array([pair.prediction.value for pair in pairs])
    errors = np.abs(predicted - measured) / measured
    keys = np.array([pair.measurement.source_key for pair in pairs])
    by_source = [errors[keys == key] for key in np.unique(keys)]
    inside = _inside(pairs, measured)
    shares = [np.nanmean(inside[keys == key]) for key in np.unique(keys) if not np.isnan(inside[keys == key]).all()]
    return Scores(
        count=len(pairs),
        sources=len(by_source),
        median=float(np.median(errors)),
        mean=float(np.mean(errors)),
        p90=float(np.percentile(errors, 90)),
        bias=float(np.median(np.log(predicted / measured))),
        source_median=float(np.mean([np.median(group) for group in by_source])),
        source_mean=float(np.mean([np.mean(group) for group in by_source])),
        coverage=float(np.nanmean(inside)) if shares else None,
        source_coverage=float(np.mean(shares)) if shares else None,
        width=_width(pairs),
    )


def _width(pairs: Sequence[Pair]) -> float | None:
    ends = [(pair.prediction.low, pair.prediction.high) for pair in pairs]
    widths = [high / low for low, high in ends if low is not None and high is not None and low > 0]
    return float(np.median(widths)) if widths else None


def _inside(pairs: Sequence[Pair], measured: Floats) -> Floats:
    """Return 1 for each measurement inside its interval, 0 outside, NaN where there is none."""
    low = np.array([np.nan if pair.prediction.low is None else pair.prediction.low for pair in pairs])
    high = np.array([np.nan if pair.prediction.high is None else pair.prediction.high for pair in pairs])
    return np.where(np.isnan(low) | np.isnan(high), np.nan, (low <= measured) & (measured <= high))


def score_groups(pairs: Sequence[Pair], tag: str) -> dict[str, Scores]:
    """Return the scores of each group that shares a tag's value, the largest group first."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.measurement.tags[tag], []).append(pair)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return {name: score(members) for name, members in ordered}


def constant_rates(measurements: Iterable[Measurement]) -> dict[tuple[str, str], float]:
    """Return the simplest model of a run: the median model FLOP/s of a device, by hardware and precision."""
    rates: dict[tuple[str, str], list[float]] = {}
    for row in measurements:
        if row.flops_per_second is not None:
            rates.setdefault(_rate_key(row), []).append(row.flops_per_second)
    return {key: float(np.median(values)) for key, values in rates.items()}


def at_constant_rates(rates: Mapping[tuple[str, str], float], measurements: Iterable[Measurement]) -> Iterator[Pair]:
    """Yield measurements with their figures at constant rates, where hardware and precision have one."""
    for row in measurements:
        rate, reached = rates.get(_rate_key(row)), row.flops_per_second
        if rate is not None and reached is not None:
            faster = rate / reached
            yield Pair(row, Prediction(row.value / faster if row.unit == "s" else row.value * faster))


def at_rates_of_others(measurements: Sequence[Measurement]) -> Iterator[Pair]:
    """Yield every publisher's measurements at the constant rates of all others."""
    for source in dict.fromkeys(row.source_key for row in measurements):
        others = constant_rates(row for row in measurements if row.source_key != source)
        yield from at_constant_rates(others, (row for row in measurements if row.source_key == source))


def _rate_key(measurement: Measurement) -> tuple[str, str]:
    return measurement.tags["hardware"], measurement.tags["precision"]


Predict: TypeAlias = Callable[[Measurement], Prediction]
SCORED_QUALITIES = ("A", "B")
WORST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Refusal:
    """A measurement that could not be predicted, and why."""

    measurement: Measurement
    reason: str


@dataclass(frozen=True, slots=True)
class AccuracyReport:
    """Predictions of one kind of figure against what was published."""

    kind: Kind
    overall: Scores | None  # over everything that was predicted; None if nothing was
    groups: Mapping[str, Mapping[str, Scores]]  # scores by tag, then by the tag's value
    worst: tuple[Pair, ...]  # the pairs with the largest errors, the worst first
    pairs: tuple[Pair, ...]  # all of them, in the order of the measurements
    refused: tuple[Refusal, ...]
    left_out: tuple[Skipped, ...]  # published rows of the kind's file that cannot be written as a plan
    # a constant rate by hardware and precision, fitted on these very rows; None where a constant rate means nothing
    # (memory, inference)
    baseline: Scores | None
    baseline_unseen: Scores | None  # the same, each publisher predicted from the others only


def evaluate(
    predict: Predict,
    kind: Kind = "train_time",
    measurements: Sequence[Measurement] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> AccuracyReport:
    """Predict the published measurements of a kind and score the predictions.

    Args:
        predict: called once a measurement with its plan; a CapacityError is reported, not raised.
        measurements: rows to use instead of the published ones of quality A and B.
    """
    wanted = tuple(scored_measurements(kind) if measurements is None else measurements)
    pairs, refused = _predict_all(predict, takewhile(lambda _: not stopped(), wanted))
    rows = wanted[: len(pairs) + len(refused)]
    known = tuple(at_constant_rates(constant_rates(rows), rows))
    unseen = tuple(at_rates_of_others(rows))
    return AccuracyReport(
        kind=kind,
        overall=score(pairs) if pairs else None,
        groups={tag: score_groups(pairs, tag) for tag in GROUPS},
        worst=tuple(sorted(pairs, key=lambda pair: -pair.error)[:WORST_SHOWN]),
        pairs=pairs,
        refused=refused,
        left_out=read_skipped(kind) if measurements is None else (),
        baseline=score(known) if known else None,
        baseline_unseen=score(unseen) if unseen else None,
    )


def scored_measurements(kind: Kind) -> tuple[Measurement, ...]:
    """Return the published measurements of a kind that are good enough to judge an estimate on."""
    return tuple(row for row in read_measurements(kind) if row.quality in SCORED_QUALITIES)


def _predict_all(predict: Predict, rows: Iterable[Measurement]) -> tuple[tuple[Pair, ...], tuple[Refusal, ...]]:
    pairs, refused = [], []
    for row in rows:
        try:
            pairs.append(Pair(row, predict(row)))
        except CapacityError as error:
            refused.append(Refusal(row, error.one_line()))
    return tuple(pairs), tuple(refused)


_FILE = "measurements/first_looks.csv"
_NEAREST_LIMIT = 1e-9  # Share by which a figure may lie beyond a range that is kept in five digits


@dataclass(frozen=True, slots=True)
class FirstLook:
    """A published figure, and what was predicted of it before its source was read."""

    source: str  # publisher
    run: str  # its row among the publisher's
    kind: str  # what was run, as ``load`` or ``qlora``
    release: str  # of the software, where the publisher gives it
    quantity: str  # the figure: ``step_seconds``, ``allocated_bytes`` ...
    measured: float  # in the quantity's unit
    predicted: float | None  # in the same; None where the program said that the load cannot be served
    low: float | None  # lower end of the range
    high: float | None  # upper end
    commit: str  # of the program that predicted

    @property
    def residual(self) -> float | None:
        """Natural logarithm of predicted over measured."""
        return None if self.predicted is None else math.log(self.predicted / self.measured)

    @property
    def is_inside(self) -> bool:
        """Whether the range holds what was measured."""
        if self.low is None or self.high is None:
            return False
        return self.low * (1 - _NEAREST_LIMIT) <= self.measured <= self.high * (1 + _NEAREST_LIMIT)


@dataclass(frozen=True, slots=True)
class FirstSight:
    """How near predictions of one figure came, on runs that nobody had seen."""

    quantity: str  # the figure
    kind: str  # what was run
    runs: int  # how many
    publishers: int  # of how many
    median_error: float  # of the runs, relative
    publisher_error: float  # mean of the publishers' own medians
    bias: float  # median of predicted over measured, less one
    inside: float  # share of runs in their range
    inside_by_publisher: float  # mean of the publishers' shares
    width: float  # median of high over low
    unserved: int  # runs of which was said that they cannot be served


@cache
def first_looks() -> tuple[FirstLook, ...]:
    open_fields = ("predicted", "low", "high")
    return tuple(
        record_of_data(FirstLook, {**row, **{name: row[name] or None for name in open_fields}})
        for row in table_rows(_FILE)
    )


def first_sights(looks: Iterable[FirstLook]) -> tuple[FirstSight, ...]:
    """Return how near predictions came, by figure and by what was run."""
    groups: dict[tuple[str, str], list[FirstLook]] = {}
    for look in looks:
        groups.setdefault((look.quantity, look.kind), []).append(look)
    return tuple(_sight(quantity, kind, group) for (quantity, kind), group in sorted(groups.items()))


def _sight(quantity: str, kind: str, looks: Sequence[FirstLook]) -> FirstSight:
    by_source: dict[str, list[FirstLook]] = {}
    for look in looks:
        by_source.setdefault(look.source, []).append(look)
    residuals = [look.residual for look in looks if look.residual is not None]
    errors = {source: [_error(look) for look in rows] for source, rows in by_source.items()}
    widths = [look.high / look.low for look in looks if look.high and look.low]
    return FirstSight(
        quantity,
        kind,
        len(looks),
        len(by_source),
        median(error for rows in errors.values() for error in rows),
        sum(map(median, errors.values())) / len(errors),
        math.expm1(median(residuals)) if residuals else math.nan,
        sum(look.is_inside for look in looks) / len(looks),
        sum(sum(look.is_inside for look in rows) / len(rows) for rows in by_source.values()) / len(by_source),
        median(widths) if widths else math.nan,
        sum(look.predicted is None for look in looks),
    )


def _error(look: FirstLook) -> float:
    return math.inf if look.residual is None else abs(math.expm1(look.residual))


FOLDER = "fits"
LeftOut = Literal["publishers", "software", "hardware", "publishers, software withheld"]
"""What a prediction has not seen: the run's publisher, its family of software, its generation of hardware."""
_APART: Mapping[LeftOut, str] = {"software": "without_software", "hardware": "without_hardware"}


def unseen_predictions(kind: Kind) -> Mapping[str, Mapping[LeftOut, Prediction]]:
    """Return predictions of one kind of figure by the run's id, then by what was left out of the fit.

    They are in the unit of the measurement, by constants from other runs alone; none where no constant is fitted.
    """
    return {run: unseen for (row_kind, run), unseen in _predictions().items() if row_kind == kind}


def unseen_scores(kind: Kind) -> Mapping[LeftOut, Scores]:
    """Return the scores of these predictions, by what was left out; empty where no constant is fitted to the kind."""
    known = unseen_predictions(kind)
    pairs: dict[LeftOut, list[Pair]] = {}
    for row in scored_measurements(kind):
        for left_out, prediction in known.get(row.id, {}).items():
            pairs.setdefault(left_out, []).append(Pair(row, prediction))
    return {left_out: score(members) for left_out, members in pairs.items()}


@cache
def rival_predictions(kind: Kind) -> Mapping[str, Mapping[str, float]]:
    """Return what other programs, as far as they could be run, predict of one kind of figure: by program, by run.

    ``profiles/fits/rivals.csv`` is written by ``benchmarks/rivals.py``.
    """
    predictions: dict[str, dict[str, float]] = {}
    for row in table_rows(f"{FOLDER}/rivals.csv"):
        if row["kind"] == kind:
            program = f"{row['rival']} {row['version']} ({row['date']})"
            predictions.setdefault(program, {})[row["id"]] = float(row["predicted"])
    return predictions


@dataclass(frozen=True, slots=True)
class FittedConstant:
    """One constant and what its fit rests on."""

    fits: str  # ``time`` or ``memory`` of training, ``speed`` or ``memory`` of serving
    name: str
    field: str  # field of the catalogue that holds it
    value: float
    prior: float  # what is known without any run
    runs: int  # published runs whose estimate it changes
    publishers: int
    learned: float  # share of the prior's variance that the runs remove: 0 where they say nothing about it


def fitted_constants() -> tuple[FittedConstant, ...]:
    """Return what the constants of every fit rest on, as ``profiles/fits/constants.csv`` has it."""
    return tuple(record_of_data(FittedConstant, row) for row in table_rows(f"{FOLDER}/constants.csv"))


@cache
def _predictions() -> Mapping[tuple[str, str], Mapping[LeftOut, Prediction]]:
    return {(row["kind"], row["id"]): dict(_of_run(row)) for row in table_rows(f"{FOLDER}/unseen.csv")}


def _of_run(row: Mapping[str, str]) -> Iterator[tuple[LeftOut, Prediction]]:
    """Yield what was predicted of a run; what is beside the first prediction, and ranges, are in percent."""
    value = float(row["unseen"])
    yield "publishers", _ranged(value, row["low"], row["high"])
    for left_out, column in _APART.items():
        if row[column]:
            yield left_out, Prediction(value * float(row[column]) / PERCENT)
    if row["unnamed"]:
        unnamed = value * float(row["unnamed"]) / PERCENT
        yield "publishers, software withheld", _ranged(unnamed, row["unnamed_low"], row["unnamed_high"])


def _ranged(value: float, low: str, high: str) -> Prediction:
    return Prediction(value, value * float(low) / PERCENT, value * float(high) / PERCENT)
