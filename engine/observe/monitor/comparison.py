"""A run compared with its prediction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from capacity_tui.engine.estimate import LESS, METRICS, MORE, Answer, Metric, figure
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.observe.logs.run_curve import RunCurve
from capacity_tui.engine.observe.monitor.run_samples import RunSamples
from capacity_tui.engine.uncertainty import Interval

Side = Literal["inside", "slower", "faster", "less", "more"]
STEP, TOKENS, SAMPLES = Figure.STEP_SECONDS, Figure.TOKENS_PER_SECOND, Figure.SAMPLES_PER_SECOND
RESERVED, ALLOCATED, POWER = Figure.MEMORY_RESERVED_BYTES, Figure.MEMORY_PER_DEVICE_BYTES, Figure.ENERGY_WATTS_AVERAGE
SPEEDS = frozenset(
    {
        STEP,
        TOKENS,
        SAMPLES,
        Figure.DECODE_TOKENS_PER_SECOND,
        Figure.PREFILL_TOKENS_PER_SECOND,
        Figure.TIME_PER_OUTPUT_TOKEN_SECONDS,
        Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    }
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure predicted and measured.

    Attributes:
        metric: the figure, in the words of the run.
        predicted: with its range; both ends are the value where no range is known.
        side: on which side of the range it lies.
    """

    metric: Metric
    predicted: Interval
    actual: float
    side: Side

    @property
    def key(self) -> str:
        """Its result key."""
        return self.metric.key

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.actual / float(self.predicted.value) if self.predicted.value else math.nan


def measured(curve: RunCurve, samples: RunSamples, answer: Answer | None, newest: int) -> dict[str, float]:
    """Return what a run came to of late, by result key.

    Args:
        answer: its plan as estimated; says how many devices there are and what is served, where given.
        newest: how many of the newest steps count.
    """
    is_served = curve.latest.keys() & {"running_requests", "prompt_tokens_per_second", "time_per_output_token_seconds"}
    served = bool(is_served) or (answer is not None and answer.estimate.computation.infer is not None)
    figures = _serving_figures(curve) if served else _training_figures(curve, answer, newest)
    on_processor = answer is not None and answer.resolved.cluster.device.kind == "cpu"
    used = samples.memory() if on_processor else samples.of_gpus("memory_used_bytes")
    if used.size and np.any(np.isfinite(used)):
        figures[RESERVED] = float(np.nanmax(used))
    if curve.peak_bytes is not None:
        figures[ALLOCATED] = curve.peak_bytes
    return {key: value for key, value in figures.items() if math.isfinite(value)}


def compare(actual: Mapping[str, float], answer: Answer) -> tuple[Compared, ...]:
    """Return each measured figure beside the one that the plan's estimate predicts."""
    return tuple(_compared(actual, answer))


def _compared(actual: Mapping[str, float], answer: Answer) -> Iterator[Compared]:
    for key, value in actual.items():
        estimated = figure(answer.estimate, key)
        if estimated.value is None:
            continue
        predicted = estimated.value if isinstance(estimated.value, Interval) else Interval.exactly(estimated.value)
        low, high = mean(predicted.low), mean(predicted.high)
        if math.isfinite(low) and math.isfinite(high):
            yield Compared(
                estimated.metric, Interval(mean(predicted.value), low, high), value, _side(key, value, low, high)
            )


def _side(key: str, actual: float, low: float, high: float) -> Side:
    if low <= actual <= high:
        return "inside"
    if key not in SPEEDS:
        return "less" if actual < low else "more"
    better = METRICS[key].better
    return "faster" if (actual < low and better == LESS) or (actual > high and better == MORE) else "slower"


def _training_figures(curve: RunCurve, answer: Answer | None, newest: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    seconds = curve.step_seconds()[1]
    # The first step compiles, allocates and fills caches.
    steady = seconds[1:] if seconds.size > 1 else seconds
    step = float(np.median(steady[-newest:])) if steady.size else curve.latest.get("step_seconds", 0.0)
    if step > 0:
        figures[STEP] = step
    per_device = _recent(curve, "tokens_per_second_per_device", newest)
    total = _recent(curve, "tokens_per_second", newest)
    devices = curve.latest.get("devices") or (None if answer is None else mean(answer.estimate.computation.devices))
    if total is not None:
        figures[TOKENS] = total
    elif per_device is not None and devices is not None:
        figures[TOKENS] = per_device * devices
    elif (tokens := _per_step(curve, "tokens")) is not None and step > 0:
        figures[TOKENS] = tokens / step
    samples = _recent(curve, "samples_per_second", newest)
    batch = curve.latest.get("global_batch") or _per_step(curve, "samples")
    if samples is not None:
        figures[SAMPLES] = samples
    elif batch is not None and step > 0:
        figures[SAMPLES] = batch / step
    if not step and samples and curve.latest.get("global_batch"):
        figures[STEP] = curve.latest["global_batch"] / samples
    return figures


def _serving_figures(curve: RunCurve) -> dict[str, float]:
    names = {
        Figure.DECODE_TOKENS_PER_SECOND: "tokens_per_second",
        Figure.PREFILL_TOKENS_PER_SECOND: "prompt_tokens_per_second",
        Figure.TIME_PER_OUTPUT_TOKEN_SECONDS: "time_per_output_token_seconds",
        Figure.TIME_TO_FIRST_TOKEN_SECONDS: "time_to_first_token_seconds",
    }
    return {key: curve.latest[figure] for key, figure in names.items() if curve.latest.get(figure)}


def _recent(curve: RunCurve, figure: str, newest: int) -> float | None:
    values = curve.column(figure)[1]
    if values.size:
        return float(np.median(values[-newest:]))
    return curve.latest.get(figure)


def _per_step(curve: RunCurve, figure: str) -> float | None:
    """Return what a running total grows by with each step."""
    steps, values = curve.column(figure)
    if steps.size < 2 or steps[-1] <= steps[0]:
        return None
    grown = float(values[-1] - values[0]) / float(steps[-1] - steps[0])
    return grown if grown > 0 else None
