"""How long a run works between two checkpoints, once it is known how long saving one takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.catalog import named_numbers
from capacity_tui.engine.estimate import Answer, checkpoint_period
from capacity_tui.engine.keys import Key
from capacity_tui.engine.observe.guard.heat import NUMBERS
from capacity_tui.engine.units import HOUR_SECONDS, format_percent, format_seconds


@dataclass(frozen=True, slots=True)
class SaveInterval:
    """Work between two checkpoints.

    Attributes:
        steps: optimizer steps in that time, at least one; None where the time of a step is not known.
    """

    seconds: float
    steps: int | None
    reason: str


def save_interval(answer: Answer, save_seconds: float, step_seconds: float | None = None) -> SaveInterval | None:
    """Return how long to work between two checkpoints: as the plan says, else by what saving takes.

    Where the mode chose, work between checkpoints is never longer than its choice or than what loses least (Young,
    Daly), and never so short that saving takes more than a share of the time, unless failures make that pay.

    Args:
        answer: the plan, filled in and estimated.
        save_seconds: that saving a checkpoint takes, as measured.
        step_seconds: of an optimizer step, as measured.

    Returns:
        The interval; None where the plan has none.
    """
    every = answer.plan.recovery.checkpoint_every
    if not isinstance(every, float):
        return None
    if Key.RECOVERY_CHECKPOINT_EVERY not in answer.estimate.basis.running:
        return _interval(every, step_seconds, "the plan says so")
    numbers = named_numbers(NUMBERS)
    between = seconds_between_failures(answer)
    best = float(checkpoint_period(save_seconds, between))
    most = numbers["most_saving"].value
    bounded = save_seconds * (1.0 - most) / most
    wanted = min(every, best)
    takes = f"saving takes {format_seconds(save_seconds)}"
    if wanted < bounded and wanted < best:
        seconds = min(bounded, best)
        return _interval(seconds, step_seconds, f"{takes}: {format_percent(most)} of the time goes into it at most")
    if best < every:
        why = f"{takes}, something fails every {format_seconds(between)}: that loses least (Young, Daly)"
        return _interval(best, step_seconds, why)
    return _interval(every, step_seconds, answer.estimate.basis.running[Key.RECOVERY_CHECKPOINT_EVERY])


def seconds_between_failures(answer: Answer) -> float:
    """Return the mean time between two failures of a run: those of its devices, and spot capacity taken back."""
    cluster = answer.resolved.cluster
    hours = named_numbers(NUMBERS)["device_hours_between_failures"].value
    rate = float(np.max(cluster.devices)) / (hours * HOUR_SECONDS)
    taken_back = cluster.price.interruptions
    if cluster.price.is_spot and taken_back is not None:
        rate += 1.0 / taken_back.seconds_between
    return 1.0 / rate


def _interval(seconds: float, step_seconds: float | None, reason: str) -> SaveInterval:
    steps = None if not step_seconds else max(1, round(seconds / step_seconds))
    return SaveInterval(seconds, steps, reason)
