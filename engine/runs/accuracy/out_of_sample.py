"""Predictions out of sample: of published runs before anybody here had read them, and without each publisher."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from statistics import median
from typing import Literal

from capacity_tui.engine.record import dataclass, record_of_data
from capacity_tui.engine.runs.accuracy.published import Kind, table_rows
from capacity_tui.engine.runs.accuracy.scoring import Pair, Prediction, Scores, score, scored_measurements
from capacity_tui.engine.units import PERCENT

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
    """Return the ledger."""
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
