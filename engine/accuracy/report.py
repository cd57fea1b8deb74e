"""The accuracy report: predictions against published measurements, and the simplest baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from capacity_tui.engine.accuracy.published import Kind, Measurement, Skipped, read_measurements, read_skipped
from capacity_tui.engine.accuracy.scoring import (
    GROUPS,
    Pair,
    Prediction,
    Scores,
    fit_constant_rate,
    leave_one_source_out,
    predict_constant_rate,
    score,
    score_groups,
)
from capacity_tui.engine.errors import CapacityError

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
    """Predictions of one kind of figure against what was published.

    Attributes:
        overall: over everything that was predicted; None if nothing was.
        groups: scores by tag, then by the tag's value.
        worst: the pairs with the largest errors, the worst first.
        pairs: all of them, in the order of the measurements.
        left_out: published rows of the kind's file that cannot be written as a plan.
        baseline: a constant rate by hardware and precision, fitted on these very rows; None where a
            constant rate means nothing (memory, inference).
        baseline_unseen: the same, each publisher predicted from the others only.
    """

    kind: Kind
    overall: Scores | None
    groups: Mapping[str, Mapping[str, Scores]]
    worst: tuple[Pair, ...]
    pairs: tuple[Pair, ...]
    refused: tuple[Refusal, ...]
    left_out: tuple[Skipped, ...]
    baseline: Scores | None
    baseline_unseen: Scores | None


def evaluate(
    predict: Predict, kind: Kind = "train_time", measurements: Sequence[Measurement] | None = None
) -> AccuracyReport:
    """Predict the published measurements of a kind and score the predictions.

    Args:
        predict: called once a measurement with its plan; a CapacityError is reported, not raised.
        measurements: rows to use instead of the published ones of quality A and B.
    """
    rows = tuple(scored_measurements(kind) if measurements is None else measurements)
    pairs, refused = _predict_all(predict, rows)
    known = _constant_rate(rows)
    unseen = leave_one_source_out(rows, fit_constant_rate, predict_constant_rate)
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


def _predict_all(predict: Predict, rows: Sequence[Measurement]) -> tuple[tuple[Pair, ...], tuple[Refusal, ...]]:
    pairs, refused = [], []
    for row in rows:
        try:
            pairs.append(Pair(row, predict(row)))
        except CapacityError as error:
            refused.append(Refusal(row, error.one_line()))
    return tuple(pairs), tuple(refused)


def _constant_rate(rows: Sequence[Measurement]) -> tuple[Pair, ...]:
    model = fit_constant_rate(rows)
    predictions = ((row, predict_constant_rate(model, row)) for row in rows)
    return tuple(Pair(row, prediction) for row, prediction in predictions if prediction is not None)
