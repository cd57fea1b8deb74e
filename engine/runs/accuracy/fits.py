"""What the fits of the constants left: predictions without each publisher, and what every constant rests on.

``profiles/fits/*.csv`` are written by ``tools/calibrate``, which fits; here they are only read.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.accuracy.published import Kind
from capacity_tui.engine.runs.accuracy.scoring import Pair, Prediction, Scores, score, scored_measurements

FOLDER = "fits"


LeftOut = Literal["publishers", "software", "hardware", "publishers, software withheld"]
"""What a prediction has not seen: the run's publisher, its family of software, its generation of hardware."""
_APART: Mapping[LeftOut, str] = {"software": "without_software", "hardware": "without_hardware"}


@dataclass(frozen=True, slots=True)
class Unseen:
    """One run, in the unit of its measurement.

    Attributes:
        estimated: by the constants as they were when the file was written.
        predictions: by constants from other runs alone, by what was left out.
    """

    estimated: float
    predictions: Mapping[LeftOut, Prediction]


def unseen_predictions(kind: Kind) -> Mapping[str, Unseen]:
    """Return the predictions of one kind of figure by the run's id; empty where no constant is fitted to it."""
    return {run: unseen for (row_kind, run), unseen in _predictions().items() if row_kind == kind}


def unseen_scores(kind: Kind) -> Mapping[LeftOut, Scores]:
    """Return the scores of these predictions, by what was left out; empty where no constant is fitted to the kind."""
    known = unseen_predictions(kind)
    pairs: dict[LeftOut, list[Pair]] = {}
    for row in scored_measurements(kind):
        for left_out, prediction in known[row.id].predictions.items() if row.id in known else ():
            pairs.setdefault(left_out, []).append(Pair(row, prediction))
    return {left_out: score(members) for left_out, members in pairs.items()}


@cache
def rival_predictions(kind: Kind) -> Mapping[str, Mapping[str, float]]:
    """Return what other programs, as far as they could be run, predict of one kind of figure: by program, by run.

    ``profiles/fits/rivals.csv`` is written by ``benchmarks/rivals.py``.
    """
    predictions: dict[str, dict[str, float]] = {}
    for row in _rows("rivals"):
        if row["kind"] == kind:
            program = f"{row['rival']} {row['version']} ({row['date']})"
            predictions.setdefault(program, {})[row["id"]] = float(row["predicted"])
    return predictions


@dataclass(frozen=True, slots=True)
class FittedConstant:
    """One constant and what its fit rests on.

    Attributes:
        fits: ``time`` or ``memory`` of training, ``speed`` or ``memory`` of serving.
        field: field of the catalogue that holds it.
        prior: what is known without any run.
        runs: published runs whose estimate it changes.
        learned: share of the prior's variance that the runs remove: 0 where they say nothing about it.
    """

    fits: str
    name: str
    field: str
    value: float
    prior: float
    runs: int
    publishers: int
    learned: float


def fitted_constants() -> tuple[FittedConstant, ...]:
    """Return what the constants of every fit rest on, as ``profiles/fits/constants.csv`` has it."""
    return tuple(
        FittedConstant(
            row["fits"],
            row["name"],
            row["field"],
            float(row["value"]),
            float(row["prior"]),
            int(row["runs"]),
            int(row["publishers"]),
            float(row["learned"]),
        )
        for row in _rows("constants")
    )


@cache
def _predictions() -> Mapping[tuple[str, str], Unseen]:
    runs: dict[tuple[str, str], Unseen] = {}
    for row in _rows("unseen"):
        known = runs.setdefault((row["kind"], row["id"]), Unseen(float(row["estimated"]), {}))
        predictions: dict[LeftOut, Prediction] = dict(known.predictions)
        ranged = Prediction(float(row["unseen"]), float(row["low"]), float(row["high"]))
        if row["withheld"]:
            predictions["publishers, software withheld"] = ranged
        else:
            predictions["publishers"] = ranged
            for left_out, column in _APART.items():
                if row[column]:
                    predictions[left_out] = Prediction(float(row[column]))
        estimated = known.estimated if row["withheld"] else float(row["estimated"])
        runs[row["kind"], row["id"]] = Unseen(estimated, predictions)
    return runs


def _rows(name: str) -> tuple[Mapping[str, str], ...]:
    text = resources.files("capacity_tui.profiles").joinpath(FOLDER, f"{name}.csv").read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))
