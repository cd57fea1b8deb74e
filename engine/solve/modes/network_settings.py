"""Open fields of models with parameters of their own: classical algorithms and networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.catalog.rows import Mode
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate import Estimate, ResolvedPlan
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import NETWORK_CHECKPOINTING, ClassicalSpec, LinearRegressionNormal
from capacity_tui.engine.models.networks import NetworkSpec
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.solve.modes.mode_plan import Reasons
from capacity_tui.engine.solve.modes.serving_settings import BATCH, FORMATS, LARGEST_BATCH, WEIGHTS
from capacity_tui.engine.solve.space.axes import LARGEST_MICRO_BATCH, Values, powers_of_two
from capacity_tui.engine.units import format_bytes, format_percent

_PICTURES_OF_A_STEP = int(counted("pictures-of-an-adapter-step"))
_CORES, _PRECISION = f"{Key.MODEL_SPEC}.n_jobs", f"{Key.MODEL_SPEC}.precision"


def choose_spec_parameters(
    resolved: ResolvedPlan,
    wanted: tuple[str, ...],
    mode: Mode,
    budget: float | None,
    estimate: Callable[[Mapping[str, object]], Estimate],
) -> tuple[Values, Reasons]:
    """Return values and reasons for the open fields of a classical algorithm or a network.

    Of a network the type is chosen first, then the fastest micro-batch and checkpointing inside the mode's memory.
    Adapters of models that draw have as few pictures in a step as their trainers.
    """
    if isinstance(resolved.spec, ClassicalSpec):
        return _classical(resolved.spec, resolved.cluster, wanted, mode)
    device, dp = resolved.cluster.device, int(resolved.plan.parallelism.dp or 1)
    values: Values = {}
    reasons: Reasons = {}
    if Key.TRAINING_PRECISION in wanted:
        values[Key.TRAINING_PRECISION] = device.native("bf16")
        reasons[Key.TRAINING_PRECISION] = f"widest range of the 16-bit types {device.name} runs natively"
    micro_batches: tuple[object, ...] = (resolved.plan.training.micro_batch,)
    is_sampled = isinstance(resolved.spec, NetworkSpec) and max(resolved.spec.passes) > 1
    is_drawing = is_sampled and resolved.plan.training.adapter is not None
    of_replica = _PICTURES_OF_A_STEP if is_drawing else mode.replica_batch
    if Key.TRAINING_MICRO_BATCH in wanted:
        most = _PICTURES_OF_A_STEP if is_drawing else mode.batch_range[1]
        micro_batches = powers_of_two(most or LARGEST_MICRO_BATCH)
    ways = NETWORK_CHECKPOINTING if Key.TRAINING_CHECKPOINTING in wanted else (resolved.plan.training.checkpointing,)
    trials: list[tuple[float, float, Values]] = []
    held_without: set[object] = set()  # micro-batches inside without recomputing, which only slows them
    for checkpointing in ways:
        for micro_batch in micro_batches:
            if micro_batch in held_without:
                continue
            trial = {**values, Key.TRAINING_MICRO_BATCH: micro_batch, Key.TRAINING_CHECKPOINTING: checkpointing}
            if Key.TRAINING_GLOBAL_BATCH in wanted:
                trial[Key.TRAINING_GLOBAL_BATCH] = dp * max(of_replica, int(str(micro_batch)))
            estimated = estimate(trial)
            held = largest(estimated.memory.reserved_bytes.value)
            speed = largest(estimated.computation.units_per_step / estimated.computation.step_seconds.value)
            trials.append((held, speed, trial))
            held_without |= {micro_batch} if budget is None or held <= budget else set()
    inside = [trial for trial in trials if budget is None or trial[0] <= budget]
    held, _, chosen = max(inside, key=lambda trial: trial[1]) if inside else min(trials, key=lambda trial: trial[0])
    limit = "no memory limit known" if budget is None else f"{format_bytes(budget)}, {format_percent(mode.utilization)}"
    settings = len(ways) * len(micro_batches)
    verdict = f"fastest of {settings} settings inside {limit}: {format_bytes(held)}"
    if not inside:
        verdict = f"none of {settings} settings stays inside {limit}; this needs least: {format_bytes(held)}"
    for path, value in chosen.items():
        if path in wanted and path not in reasons:
            values[path], reasons[path] = value, verdict
    return values, reasons


def choose_served_batch(
    wanted: tuple[str, ...], mode: Mode, budget: float | None, estimate: Callable[[Mapping[str, object]], Estimate]
) -> tuple[Values, Reasons]:
    """Return values and reasons for the open fields of serving a network: format of the weights, then the batch."""
    values: Values = {}
    reasons: Reasons = {}

    def inside(estimate: Estimate) -> bool:
        return budget is None or largest(estimate.memory.reserved_bytes.value) <= budget

    if WEIGHTS in wanted:
        trials: list[Values] = [{WEIGHTS: name} for name in FORMATS]
        values |= next((trial for trial in trials if inside(estimate(trial))), trials[-1])
        reasons[WEIGHTS] = "least quantized format that stays inside the mode's memory"
    if BATCH in wanted:
        batches = powers_of_two(mode.batch_range[1] or LARGEST_BATCH)
        estimates = {batch: estimate({**values, BATCH: batch}) for batch in batches}
        fitting = [batch for batch in batches if inside(estimates[batch])] or [1]
        best, why = {
            "latency": (lambda batch: -_seconds(estimates[batch]), "least time of a batch"),
            "devices": (float, "largest batch"),
            "throughput": (lambda batch: batch / _seconds(estimates[batch]), "most answers a second"),
        }[mode.serving.goal]
        values[BATCH] = max(fitting, key=best)
        reasons[BATCH] = f"{why} inside the mode's memory and range"
    return values, reasons


def _seconds(estimate: Estimate) -> float:
    return largest(estimate.computation.step_seconds.value)


def _classical(spec: ClassicalSpec, cluster: Cluster, wanted: tuple[str, ...], mode: Mode) -> tuple[Values, Reasons]:
    values: Values = {}
    reasons: Reasons = {}
    device = cluster.device
    if _CORES in wanted:
        cores = int(np.max(device.units))
        values[_CORES] = max(1, int(cores * mode.utilization)) if device.is_processor else None
        reasons[_CORES] = f"{format_percent(mode.utilization)} of {cores} cores, the mode's share"
    if _PRECISION in wanted:
        exact = isinstance(spec, LinearRegressionNormal) or mode.id == "conservative"
        exact = exact and "fp64" in device.peaks
        values[_PRECISION] = "fp64" if exact else "fp32"
        reasons[_PRECISION] = "full precision" if exact else "half the memory and traffic of fp64"
    return values, reasons
