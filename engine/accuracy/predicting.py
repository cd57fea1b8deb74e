"""What the estimates say about published measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pydantic import ValidationError

from capacity_tui.engine.accuracy.cases import (
    CalibrationRun,
    counted_memory,
    memory_bytes,
    step_seconds,
    training_cases,
)
from capacity_tui.engine.accuracy.constants import read_constants
from capacity_tui.engine.accuracy.fit import Problem, fit
from capacity_tui.engine.accuracy.published import Kind, Measurement
from capacity_tui.engine.accuracy.ranges import TAILS, coverage, memory_class_of, memory_ratios, step_class_of
from capacity_tui.engine.accuracy.report import AccuracyReport, Predict, evaluate
from capacity_tui.engine.accuracy.scoring import Pair, Prediction, Scores, score
from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate.estimate import Answer, estimate_plan
from capacity_tui.engine.estimate.result import Interval
from capacity_tui.engine.plan.plan import Plan

# Kinds whose constants are fitted to the measurements themselves, and to what.
FITTED: dict[Kind, str] = {"train_time": "time", "train_memory": "memory"}
# Kinds whose publishers count memory in more ways than a serving engine's.
TRAINING_MEMORY: tuple[Kind, ...] = ("train_memory", "finetune_memory")
_SPEEDS = ("prefill_tokens_per_second", "decode_tokens_per_second", "time_to_first_token_seconds")


def accuracy_of(kinds: Sequence[Kind], catalog: Catalog) -> tuple[AccuracyReport, ...]:
    """Return the reports of some kinds; a kind nothing could be predicted for has no overall scores."""
    return tuple(evaluate(predictor(kind, catalog), kind) for kind in kinds)


def predictor(kind: Kind, catalog: Catalog) -> Predict:
    """Return what predicts the measurements of a kind."""
    trained = training_cases(kind, catalog) if kind in TRAINING_MEMORY else ()
    counted = {case.measurement.id: case for case in trained}

    def predict(measurement: Measurement) -> Prediction:
        case = counted.get(measurement.id)
        return _as_counted(_figure(measurement, catalog), case, catalog)

    return predict


def unseen_scores(kind: Kind, catalog: Catalog) -> Scores | None:
    """Return the scores with each publisher predicted by constants fitted to the others; None where nothing is fitted.

    Their coverage is that of ranges made without the publisher too. Takes some seconds.
    """
    if kind not in FITTED:
        return None
    figure = step_seconds if FITTED[kind] == "time" else memory_bytes
    cases = training_cases(kind, catalog)
    constants = read_constants(FITTED[kind])
    if not cases or not constants:
        return None
    unseen = fit(Problem(cases, constants, figure, catalog), iterations=0).unseen
    ratios = np.exp(unseen)
    pairs = [
        Pair(case.measurement, Prediction(float(ratio) * case.measurement.value))
        for case, ratio in zip(cases, ratios, strict=True)
    ]
    timed = FITTED[kind] == "time"
    class_of = step_class_of if timed else memory_class_of
    over = np.exp(-unseen) if timed else memory_ratios(cases, unseen, catalog)
    widening = max(row.widening for row in catalog.reliabilities.values())
    inside, by_publisher = coverage(cases, over, class_of, widening, TAILS[FITTED[kind]])
    return replace(score(pairs), coverage=inside, source_coverage=by_publisher)


def _figure(measurement: Measurement, catalog: Catalog) -> Prediction:
    try:
        plan = Plan.model_validate(measurement.plan)
    except ValidationError as error:
        raise PlanError("a plan of this measurement is not valid", str(error.errors()[0]["msg"])) from error
    found = _read(estimate_plan(plan, None, catalog), measurement.quantity)
    return Prediction(float(found.value), float(found.low), float(found.high))


def _read(answer: Answer, quantity: str) -> Interval:
    estimate = answer.estimate
    if quantity == "step_seconds":
        return estimate.computation.step_seconds
    if quantity == "allocated_bytes":
        return estimate.memory.per_device_bytes
    if quantity in ("reserved_bytes", "device_bytes"):
        return estimate.memory.reserved_bytes
    if quantity == "output_tokens_per_second":
        return _output_rate(answer)
    speed = estimate.computation.infer
    found: Interval | None = getattr(speed, quantity) if quantity in _SPEEDS and speed is not None else None
    if found is None:
        raise PlanError("this figure is not estimated", quantity)
    return found


def _output_rate(answer: Answer) -> Interval:
    """Return the output tokens of all replicas a second, the time of their prompts included."""
    wanted, seconds = answer.plan.inference, answer.estimate.computation.step_seconds
    tokens = float(answer.plan.parallelism.dp or 1) * float(wanted.batch) * float(wanted.output_tokens)
    return Interval(tokens / seconds.value, tokens / seconds.high, tokens / seconds.low)


def _as_counted(prediction: Prediction, case: CalibrationRun | None, catalog: Catalog) -> Prediction:
    """Return memory as the publisher counted it: some tell the last pipeline stage, or leave out the context."""
    if case is None or prediction.low is None or prediction.high is None:
        return prediction
    counted = counted_memory(case, catalog)
    low, high = case.run(catalog).ranges.memory
    value = counted.exact + counted.others
    return Prediction(value, counted.exact + counted.others * low, counted.exact + counted.others * high)
