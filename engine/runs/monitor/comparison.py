"""A run compared with its prediction, and why the two differ."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import numpy as np

from capacity_tui.engine.estimate import LESS, METRICS, MORE, Answer, Metric, figure
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.logs.run_curve import RunCurve
from capacity_tui.engine.runs.monitor.alarms import Alarm, RunSamples
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import PERCENT, format_bytes, format_number, format_percent, format_power

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
        Figure.REQUEST_SECONDS,
    }
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure predicted and measured."""

    metric: Metric  # the figure, in the words of the run
    predicted: Interval  # with its range; both ends are the value where no range is known
    actual: float
    side: Side  # on which side of the range it lies

    @property
    def key(self) -> str:
        return self.metric.key

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.actual / float(self.predicted.value) if self.predicted.value else math.nan


def measured(curve: RunCurve, samples: RunSamples, answer: Answer | None, newest: int) -> dict[str, float]:
    """Return the recent figures of a run, by result key.

    Args:
        answer: its plan as estimated; says how many devices there are and what is served, where given.
        newest: how many of the newest steps count.
    """
    is_served = curve.latest.keys() & {"running_requests", "prompt_tokens_per_second", "time_per_output_token_seconds"}
    served = bool(is_served) or (answer is not None and answer.estimate.computation.infer is not None)
    figures = _serving_figures(curve, answer) if served else _training_figures(curve, answer, newest)
    on_processor = answer is not None and answer.resolved.cluster.device.is_processor
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


def _serving_figures(curve: RunCurve, answer: Answer | None) -> dict[str, float]:
    names = {
        Figure.DECODE_TOKENS_PER_SECOND: "tokens_per_second",
        Figure.PREFILL_TOKENS_PER_SECOND: "prompt_tokens_per_second",
        Figure.TIME_PER_OUTPUT_TOKEN_SECONDS: "time_per_output_token_seconds",
        Figure.TIME_TO_FIRST_TOKEN_SECONDS: "time_to_first_token_seconds",
    }
    figures: dict[str, float] = {key: curve.latest[figure] for key, figure in names.items() if curve.latest.get(figure)}
    if answer is not None and (seconds := _request_seconds(figures, answer)) is not None:
        figures[Figure.REQUEST_SECONDS] = seconds
    return figures


_SIXTEEN_BITS = {"fp16", "bf16"}  # formats of keys and values that take the same memory and time


def _request_seconds(figures: Mapping[str, float], answer: Answer) -> float | None:
    """Return what a request of a plan takes at the speeds of those that were served; None where these do not say.

    A log that gives the speed of reading prompts does not say how long they wait, as they do under a load.
    """
    wanted = answer.plan.inference
    first, further = (
        figures.get(key) for key in (Figure.TIME_TO_FIRST_TOKEN_SECONDS, Figure.TIME_PER_OUTPUT_TOKEN_SECONDS)
    )
    prompts = figures.get(Figure.PREFILL_TOKENS_PER_SECOND)
    if first is None and prompts and not wanted.is_load:
        first = float(wanted.prompt_tokens) * (1.0 - wanted.prefix_cache_hit_rate) / prompts
    return None if first is None or further is None else first + (float(wanted.output_tokens) - 1.0) * further


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


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a run differs: a word for scripts, and the evidence in a sentence."""

    code: str
    text: str


def reasons(
    compared: Iterable[Compared],
    curve: RunCurve,
    samples: RunSamples,
    answer: Answer,
    alarms: Iterable[Alarm],
    limits: Mapping[str, float],
) -> tuple[Reason, ...]:
    """Return why figures lie outside of what was predicted; nothing where none does."""
    sides = {figure.side for figure in compared}
    if not sides - {"inside"}:
        return ()
    result = [*_setting_reasons(curve, answer, limits)]
    if "slower" in sides:
        result += [*_clock_reasons(alarms), *_input_reasons(curve, limits), *_waiting_reasons(samples, answer, limits)]
    if sides & {"slower", "more"}:
        result += _sharing_reasons(samples, answer, limits)
    return tuple(result)


def _setting_reasons(curve: RunCurve, answer: Answer, limits: Mapping[str, float]) -> Iterator[Reason]:
    """Yield what ran with other settings than the plan has."""
    training = answer.plan.training
    for name, planned, words in (
        ("global_batch", training.global_batch, "samples a step"),
        ("micro_batch", training.micro_batch, "samples a forward pass"),
    ):
        logged = curve.latest.get(name)
        if logged and isinstance(planned, int) and abs(logged / planned - 1.0) > limits["batch"]:
            code = "smaller_batch" if logged < planned else "larger_batch"
            yield Reason(code, f"the log says {format_number(logged)} {words}, the plan {format_number(planned)}")
    is_served = answer.estimate.computation.infer is not None
    precision = answer.plan.inference.kv_cache if is_served else training.precision
    same = curve.precision == precision or (is_served and {curve.precision, precision} <= _SIXTEEN_BITS)
    if curve.precision and not same:
        what = "keys and values in " if is_served else ""
        yield Reason("precision", f"the log says {what}{curve.precision}, the plan {precision}")
    devices = curve.latest.get("devices")
    planned_devices = mean(answer.estimate.computation.devices)
    if devices and devices != planned_devices:
        text = f"the log says {format_number(devices)} devices, the plan {format_number(planned_devices)}"
        yield Reason("devices", text)


def _clock_reasons(alarms: Iterable[Alarm]) -> Iterator[Reason]:
    for alarm in alarms:
        if alarm.kind == "throttling":
            code = "heat" if alarm.detail.startswith("for heat") else "power"
            yield Reason(code, f"clocks of {alarm.where} are throttled {alarm.detail}")


def _input_reasons(curve: RunCurve, limits: Mapping[str, float]) -> Iterator[Reason]:
    waits, steps = curve.column("input_seconds")[1], curve.step_seconds()[1]
    if waits.size and steps.size:
        share = float(np.median(waits[-50:])) / float(np.median(steps[-50:]))
        if share >= limits["input_share"]:
            yield Reason("input", f"{format_percent(share)} of a step waits for data, as the log says")


def _waiting_reasons(samples: RunSamples, answer: Answer, limits: Mapping[str, float]) -> Iterator[Reason]:
    """Yield what devices wait for: the processor and its input, or each other."""
    if samples.latest is None:
        return
    cores = _cores()
    cpu = _middle(samples.cpu_percent()) / PERCENT
    busy = _middle(samples.of_gpus("utilization_percent")) / PERCENT
    crowded = cpu >= limits["busy_cores"] * cores
    if busy <= limits["idle"]:
        waiting = f"devices compute {format_percent(busy)} of the time"
        if crowded:
            yield Reason("input", f"{waiting} while the run uses {cpu:.1f} of {cores} cores: the CPU is the bottleneck")
        else:
            yield Reason("input", f"{waiting}, the run uses {cpu:.1f} of {cores} cores: it waits for data or launches")
    power = _middle(samples.of_gpus("power_watts"))
    predicted = answer.estimate.energy.watts_average
    devices = mean(answer.estimate.computation.devices)
    if busy >= limits["busy"] and devices > 1 and predicted is not None:
        expected = mean(predicted) / devices
        if power <= limits["weak_power"] * expected:
            text = f"devices are busy but draw {format_power(power)} each, predicted {format_power(expected)}"
            yield Reason("communication", f"{text}: they wait for each other")


def _sharing_reasons(samples: RunSamples, answer: Answer, limits: Mapping[str, float]) -> Iterator[Reason]:
    """Yield that others use the same devices."""
    if samples.latest is None:
        return
    for gpu, run_memory in zip(samples.gpus, samples.latest.gpu_memory_bytes, strict=False):
        used_bytes, total = gpu.memory_used_bytes.value, gpu.memory_total_bytes.value
        if used_bytes is None or not total or run_memory.value is None:
            continue
        used_elsewhere = used_bytes - run_memory.value
        if run_memory.value and used_elsewhere > limits["others"] * total:
            yield Reason("shared", f"others use {format_bytes(used_elsewhere)} of GPU {gpu.index}")
    if answer.resolved.cluster.device.is_processor:
        share = others_share(samples)
        if share > limits["others"]:
            yield Reason("shared", f"others use {share * _cores():.1f} of {os.cpu_count()} cores")


def others_share(samples: RunSamples) -> float:
    """Return the cores that others use, as a share of those that a run may use; NaN where it is not known."""
    everybody = _middle(samples.system_cpu_percent()) / PERCENT * (os.cpu_count() or 1)
    return max(everybody - _middle(samples.cpu_percent()) / PERCENT, 0.0) / _cores()


def _cores() -> int:
    """Return how many cores a run may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _middle(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """Return the median of the newest readings; NaN, which no comparison holds for, without any."""
    newest = values[-60:]
    return float(np.nanmedian(newest)) if newest.size and np.any(np.isfinite(newest)) else float("nan")
