"""Predictions of measured runs, and how often their verdicts are right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from pydantic import ValidationError

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import METRICS, Answer, Estimate, MemoryEstimate, estimate_plan
from capacity_tui.engine.estimate.serving import CLAIMED
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.accuracy.published import DESCRIBED, Kind, Measurement, parallelism_class
from capacity_tui.engine.runs.accuracy.scoring import (
    GROUPS,
    AccuracyReport,
    Predict,
    Prediction,
    evaluate,
    scored_measurements,
)
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Verdict

_SPEEDS = (
    "prefill_tokens_per_second",
    "decode_tokens_per_second",
    "time_to_first_token_seconds",
    "time_to_first_token_percentile_seconds",
    "time_per_output_token_percentile_seconds",
)

_BYTES = "_bytes"
_FITS = "fits"  # Whether a run fits: all that is known of one that ran out of memory
_CLAIMED = "claimed_bytes"  # What an engine sets aside before any request comes
_SAMPLES = "samples_per_second"


def accuracy_of(
    kinds: Sequence[Kind], predict: Predict, stopped: Callable[[], bool] = lambda: False
) -> tuple[AccuracyReport, ...]:
    """Return the reports of some kinds; a kind nothing could be predicted for has no overall scores.

    Args:
        stopped: whether nobody waits for more; the reports are on what was predicted by then.
    """
    return tuple(evaluate(predict, kind, stopped=stopped) for kind in kinds)


def predictor(catalog: Catalog, machine: Machine | None = None) -> Predict:
    """Return what predicts a measurement of any kind."""

    def predict(measurement: Measurement) -> Prediction:
        return prediction(answered(measurement, catalog, machine).estimate, measurement)

    return predict


def prediction(estimate: Estimate, measurement: Measurement) -> Prediction:
    """Return what a run's estimate says of what was measured; raises PlanError where it gives no such figure."""
    if measurement.quantity == _FITS:
        return Prediction(float(estimate.verdict.holds is not False), verdict=estimate.verdict)
    figure = measured_figure(estimate, measurement)
    return Prediction(float(figure.value), float(figure.low), float(figure.high), estimate.verdict)


def measured_figure(estimate: Estimate, measurement: Measurement) -> Interval:
    """Return the figure of an estimate that was measured; raises PlanError where it gives no such figure."""
    if measurement.quantity == _CLAIMED:
        return _claimed(estimate)
    if measurement.quantity.endswith(_BYTES):
        return counted_memory(estimate.memory, measurement.quantity, measurement.tags.get("rank", ""))
    return _time_or_speed(estimate, measurement.quantity)


def answered(measurement: Measurement, catalog: Catalog, machine: Machine | None = None) -> Answer:
    """Return the estimate of a measured run; raises PlanError if it cannot be estimated."""
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
        counted_range = memory.allocator_bytes
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
        rate = METRICS[Figure.SAMPLES_PER_SECOND].read(estimate)
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


@dataclass(frozen=True, slots=True)
class Judgement:
    """A published run and the verdict on its plan."""

    measurement: Measurement
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class VerdictReport:
    """Verdicts on runs whose end is known."""

    ran: tuple[Judgement, ...]
    failed: tuple[Judgement, ...]  # of runs that ran out of memory

    @property
    def refused(self) -> tuple[Judgement, ...]:
        """Runs that ran and were predicted not to fit."""
        return _with(self.ran, Verdict.DOES_NOT_FIT)

    @property
    def accepted(self) -> tuple[Judgement, ...]:
        """Runs that ran out of memory and were predicted to fit, not even tightly."""
        return _with(self.failed, Verdict.FITS)


def verdicts_of(
    reports: Iterable[AccuracyReport], predict: Predict, stopped: Callable[[], bool] = lambda: False
) -> VerdictReport:
    """Return the verdicts on all runs of some reports, each run once, and on those that ran out of memory."""
    ran: dict[tuple[str, str], Judgement] = {}
    for report in reports:
        for pair in report.pairs:
            if pair.prediction.verdict is not None:
                key = DESCRIBED[report.kind].file, pair.measurement.id
                ran.setdefault(key, Judgement(pair.measurement, pair.prediction.verdict))
    return VerdictReport(tuple(ran.values()), tuple(_failed(predict, stopped)))


def _failed(predict: Predict, stopped: Callable[[], bool]) -> Iterable[Judgement]:
    for row in takewhile(lambda _: not stopped(), scored_measurements("finetune_fit")):
        try:
            verdict = predict(row).verdict
        except CapacityError:
            continue
        if verdict is not None:
            yield Judgement(row, verdict)


def _with(judged: Sequence[Judgement], verdict: Verdict) -> tuple[Judgement, ...]:
    """Return the runs with a verdict; those that are refused for whatever reason count as not fitting."""
    is_refusal = verdict is Verdict.DOES_NOT_FIT
    return tuple(
        judgement
        for judgement in judged
        if judgement.verdict is verdict or (is_refusal and judgement.verdict.holds is False)
    )


def share(judged: Sequence[Judgement], verdict: Verdict) -> float:
    """Return the share of runs with a verdict; 0 of none."""
    return len(_with(judged, verdict)) / len(judged) if judged else 0.0


SOURCE = "own runs"


def user_measurements(
    plan: Mapping[str, object], step_seconds: float | None, peak_bytes: float | None, date: str, number: int
) -> Iterator[Measurement]:
    """Yield what was measured of one run: the time of its step, the memory the driver showed, or both."""
    if step_seconds is not None:
        yield _measurement(plan, "train_time", "step_seconds", step_seconds, "s", f"{date}, run {number}")
    if peak_bytes is not None:
        yield _measurement(plan, "train_memory", "device_bytes", peak_bytes, "bytes", f"{date}, run {number}")


def _measurement(
    plan: Mapping[str, object], kind: Kind, quantity: str, value: float, unit: str, name: str
) -> Measurement:
    return Measurement(
        id=name,
        kind=kind,
        quantity=quantity,
        value=value,
        unit=unit,
        source_key=SOURCE,
        source=SOURCE,
        url="",
        quality="A",
        plan=dict(plan),
        parameters=0,
        model_flops=None,
        tags={**dict.fromkeys(GROUPS, ""), "source": SOURCE, "parallelism": parallelism_class(plan)},
    )
