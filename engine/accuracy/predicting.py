"""What the estimates say about published measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from capacity_tui.engine.accuracy.published import Kind, Measurement
from capacity_tui.engine.accuracy.report import AccuracyReport, Predict, evaluate
from capacity_tui.engine.accuracy.scoring import Prediction
from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import METRICS, Answer, Estimate, MemoryEstimate, estimate_plan
from capacity_tui.engine.estimate.serving import CLAIMED
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.uncertainty import FigureName, Interval

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

_SPEEDS = ("prefill_tokens_per_second", "decode_tokens_per_second", "time_to_first_token_seconds")
_BYTES = "_bytes"
_FIGURES: Mapping[str, FigureName] = {
    "prefill_tokens_per_second": "prefill",
    "time_to_first_token_seconds": "prefill",
    "decode_tokens_per_second": "decode",
}
# Whether a run fits: all that is known of one that ran out of memory.
_FITS = "fits"
# What an engine sets aside before any request comes.
_CLAIMED = "claimed_bytes"
_SAMPLES = "samples_per_second"


def accuracy_of(kinds: Sequence[Kind], catalog: Catalog) -> tuple[AccuracyReport, ...]:
    """Return the reports of some kinds; a kind nothing could be predicted for has no overall scores."""
    return tuple(evaluate(predictor(catalog), kind) for kind in kinds)


def predictor(catalog: Catalog, machine: Machine | None = None) -> Predict:
    """Return what predicts a measurement of any kind.

    Args:
        machine: the detected machine, for runs on it.
    """

    def predict(measurement: Measurement) -> Prediction:
        answer = answered(measurement, catalog, machine)
        verdict = answer.estimate.verdict
        if measurement.quantity == _FITS:
            return Prediction(float(verdict.holds is not False), verdict=verdict)
        figure = measured_figure(answer.estimate, measurement)
        return Prediction(float(figure.value), float(figure.low), float(figure.high), verdict)

    return predict


def estimated_figure(measurement: Measurement, catalog: Catalog) -> Interval:
    """Return the figure that was measured as a catalogue estimates it; an array where its constants are arrays.

    Raises:
        PlanError: the figure is none that an estimate gives, or the run cannot be.
    """
    return measured_figure(answered(measurement, catalog).estimate, measurement)


def measured_figure(estimate: Estimate, measurement: Measurement) -> Interval:
    """Return the figure of an estimate that was measured.

    Raises:
        PlanError: the figure is none that this estimate gives.
    """
    if measurement.quantity == _CLAIMED:
        return _claimed(estimate)
    if measurement.quantity.endswith(_BYTES):
        return counted_memory(estimate.memory, measurement.quantity, measurement.tags.get("rank", ""))
    return _time_or_speed(estimate, measurement.quantity)


def figure_name(quantity: str) -> FigureName:
    """Return which range a measured quantity has: that of a step, of prefill, of decode, or of memory."""
    if quantity.endswith(_BYTES):
        return "memory"
    return _FIGURES.get(quantity, "step")


def sign_of(quantity: str) -> int:
    """Return 1 for a time or for bytes, -1 for a rate, which has the inverse range of its time."""
    return -1 if quantity.endswith("_per_second") else 1


def answered(measurement: Measurement, catalog: Catalog, machine: Machine | None = None) -> Answer:
    """Return the estimate of a measured run.

    Raises:
        PlanError: it cannot be estimated.
    """
    try:
        plan = Plan.model_validate(measurement.plan)
    except ValidationError as error:
        raise PlanError("a plan of this measurement is not valid", str(error.errors()[0]["msg"])) from error
    return estimate_plan(plan, machine, catalog)


def counted_memory(memory: MemoryEstimate, counted: str, stage: str = "") -> Interval:
    """Return memory in the way a publisher counted it.

    Args:
        counted: ``allocated_bytes`` are what tensors took, ``reserved_bytes`` what the caching allocator held,
            ``device_bytes`` what the driver showed.
        stage: the pipeline stage that was measured, ``first`` or ``last``; the fullest where empty.
    """
    shown = memory.reserved_bytes
    if counted == "allocated_bytes":
        counted_range = memory.per_device_bytes
    elif counted == "reserved_bytes":
        counted_range = shown.scaled(1.0 - memory.parts["context"] / shown.value)
    else:
        counted_range = shown
    looked_at = memory.stages.get(stage)
    if looked_at is None:
        return counted_range
    stage_bytes = looked_at.per_device_bytes if counted == "allocated_bytes" else looked_at.reserved_bytes
    value = stage_bytes - memory.parts["context"] if counted == "reserved_bytes" else stage_bytes
    return counted_range.scaled(value / counted_range.value)


def _claimed(estimate: Estimate) -> Interval:
    """Return the memory an engine takes for itself, whatever it needs; what it takes is set, not estimated."""
    taken = estimate.details.get(CLAIMED)
    if taken is None:
        raise PlanError("this engine takes only what it needs", estimate.basis.calibration)
    return estimate.range_of(Figure.MEMORY_RESERVED_BYTES).around(taken)


def _time_or_speed(estimate: Estimate, quantity: str) -> Interval:
    if quantity == "step_seconds":
        return estimate.computation.step_seconds
    if quantity == _SAMPLES:
        rate = METRICS[f"computation.{_SAMPLES}"].read(estimate)
        if not isinstance(rate, Interval):
            raise PlanError("this figure is not estimated", quantity)
        return rate
    if quantity == "output_tokens_per_second":
        return _output_rate(estimate)
    speed = estimate.computation.infer
    figure: Interval | None = getattr(speed, quantity) if quantity in _SPEEDS and speed is not None else None
    if figure is None:
        raise PlanError("this figure is not estimated", quantity)
    return figure


def _output_rate(estimate: Estimate) -> Interval:
    """Return the output tokens of all replicas a second, the time of their prompts included."""
    speed = estimate.computation.infer
    if speed is None or speed.output_tokens_per_second is None:
        raise PlanError("this model generates nothing", estimate.basis.method)
    return speed.output_tokens_per_second
