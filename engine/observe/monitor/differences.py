"""Why a run is not as predicted, from evidence in its log and samples."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.observe.logs.run_curve import RunCurve
from capacity_tui.engine.observe.monitor.alarms import Alarm
from capacity_tui.engine.observe.monitor.comparison import Compared
from capacity_tui.engine.observe.monitor.run_samples import RunSamples
from capacity_tui.engine.units import PERCENT, format_bytes, format_number, format_percent, format_power


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
    """Return why figures lie outside of what was predicted; nothing where none does.

    Args:
        limits: thresholds of ``difference``.
    """
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
    for figure, planned, name in (
        ("global_batch", training.global_batch, "samples a step"),
        ("micro_batch", training.micro_batch, "samples a forward pass"),
    ):
        logged = curve.latest.get(figure)
        if logged and isinstance(planned, int) and abs(logged / planned - 1.0) > limits["batch"]:
            code = "smaller_batch" if logged < planned else "larger_batch"
            yield Reason(code, f"the log says {format_number(logged)} {name}, the plan {format_number(planned)}")
    if curve.precision and curve.precision != training.precision:
        yield Reason("precision", f"the log says {curve.precision}, the plan {training.precision}")
    devices = curve.latest.get("devices")
    planned_devices = mean(answer.estimate.computation.devices)
    if devices and devices != planned_devices:
        text = f"the log says {format_number(devices)} devices, the plan {format_number(planned_devices)}"
        yield Reason("devices", text)


def _clock_reasons(alarms: Iterable[Alarm]) -> Iterator[Reason]:
    for alarm in alarms:
        if alarm.kind == "throttling":
            code = "heat" if alarm.detail.startswith("for heat") else "power"
            yield Reason(code, f"clocks of {alarm.where} are held down {alarm.detail}")


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
            yield Reason("input", f"{waiting} while the run uses {cpu:.1f} of {cores} cores: its processor holds it up")
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
        held, total = gpu.memory_used_bytes.value, gpu.memory_total_bytes.value
        if held is None or not total or run_memory.value is None:
            continue
        others = held - run_memory.value
        if run_memory.value and others > limits["others"] * total:
            yield Reason("shared", f"others hold {format_bytes(others)} of GPU {gpu.index}")
    if answer.resolved.cluster.device.kind == "cpu":
        everybody = _middle(samples.system_cpu_percent()) / PERCENT * (os.cpu_count() or 1)
        used = everybody - _middle(samples.cpu_percent()) / PERCENT
        if used > limits["others"] * _cores():
            yield Reason("shared", f"others use {used:.1f} of {os.cpu_count()} cores")


def _cores() -> int:
    """Return how many cores a run may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _middle(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """Return the median of the newest readings; NaN, which no comparison holds for, without any."""
    newest = values[-60:]
    return float(np.nanmedian(newest)) if newest.size and np.any(np.isfinite(newest)) else float("nan")
