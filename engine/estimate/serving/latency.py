"""Limits of latency that a plan gives, and the figures that they are for."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.result import InferenceSpeed
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import InferenceSection

_INFER = "computation.infer."
FIRST, EACH = "time_to_first_token", "time_per_output_token"


def limits_of(inference: InferenceSection) -> dict[str, float]:
    """Return the limits that a plan gives, in seconds by the figure's first words."""
    given = {FIRST: inference.ttft_seconds, EACH: inference.tpot_seconds}
    return {name: limit for name, limit in given.items() if limit is not None}


def limited(speed: InferenceSpeed, name: str) -> tuple[str, Number] | None:
    """Return the figure that a limit is for, its key and value: at the percentile under a load; None without one."""
    for key in (f"{name}_percentile_seconds", f"{name}_seconds"):
        found = getattr(speed, key)
        if found is not None:
            return f"{_INFER}{key}", found.value
    return None


def missed(inference: InferenceSection, speed: InferenceSpeed) -> Number:
    """Return by how much limits are exceeded in all, as a share of each; 0 where all are kept."""
    total: Number = 0.0
    for name, limit in limits_of(inference).items():
        found = limited(speed, name)
        if found is not None:
            total = total + np.maximum(found[1] / limit - 1.0, 0.0)
    return total
