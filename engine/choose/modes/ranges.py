"""Where a configuration lies outside of the ranges its mode was made for, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from capacity_tui.engine.catalog.rows import Mode, Range
from capacity_tui.engine.estimate import Estimate, job_seconds
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.units import format_bytes, format_count, format_number, format_percent, format_seconds

_HOUR = 3600.0
# Models called 70M have 70.4 million parameters; hours are no sharper than that.
_ROUNDING = 1.02
MICRO_BATCH, LENGTH, TOKENS, MODEL = Key.TRAINING_MICRO_BATCH, Key.TRAINING_SEQ_LEN, Key.TRAINING_TOKENS, Key.MODEL_NAME


def outside_ranges(mode: Mode, plan: Plan, estimate: Estimate, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield what a training has outside of its mode's ranges.

    Args:
        plan: the plan as the mode filled it.
    """
    if plan.task == "infer" or estimate.computation.unit != "token":
        return
    training, size = plan.training, float(np.max(np.asarray(estimate.model.parameters)))
    given = "the plan says so"

    def why(path: str, reason: str) -> str:
        return reason if path in reasons else given

    yield from _outside(
        "parameters", size, mode.parameters_range, format_count, why(MODEL, "hardware and hours decide")
    )
    yield from _outside(
        "micro-batch",
        float(training.micro_batch),
        mode.batch_range,
        format_number,
        why(MICRO_BATCH, "others would cost memory or speed"),
    )
    yield from _outside(
        "sequence",
        float(training.seq_len),
        mode.sequence_range,
        format_number,
        reasons.get(LENGTH, given),
    )
    if isinstance(training.tokens, float):
        yield from _outside(
            "tokens a parameter",
            training.tokens / size,
            mode.tokens_per_parameter_range,
            "{:.3g}".format,
            reasons.get(TOKENS, given),
        )
    if estimate.computation.steps is not None:
        seconds = job_seconds(estimate.computation.steps, estimate.computation.step_seconds.value)
        hours = float(np.max(np.asarray(seconds))) / _HOUR
        yield from _outside(
            "time",
            hours,
            mode.training_hours_range,
            lambda length: format_seconds(length * _HOUR),
            "model and tokens are as large as the mode's" if MODEL in reasons else "the model is given",
        )


def reserve_text(mode: Mode) -> str:
    """Say what a mode keeps free beside the estimate."""
    reserve = mode.reserve
    return (
        f"keeps room for {format_bytes(reserve.context_gb * 1e9)} of driver context a device, for "
        f"{format_percent(reserve.fragmentation)} of fragmentation or {format_percent(reserve.spikes)} of spikes, "
        f"whichever is more, and {format_bytes(reserve.system_gb * 1e9)} of main memory for the system"
    )


def _outside(what: str, value: float, within: Range, shown: Callable[[float], str], why: str) -> Iterator[str]:
    low, high = within
    if (low or 0.0) / _ROUNDING <= value <= (float("inf") if high is None else high) * _ROUNDING:
        return
    ends = f"{shown(low or 0.0)} to {shown(high or 0.0)}"
    if low == high or high is None:
        ends = f"{shown(low or 0.0)}{' and more' if high is None else ''}"
    yield f"{what} {shown(value)}, the mode is made for {ends}: {why}"
