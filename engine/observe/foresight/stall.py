"""A run that goes no further."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.observe.foresight.trends import Numbers


@dataclass(frozen=True, slots=True)
class Stall:
    """How long nothing came, and how long one usually waits."""

    waited_seconds: float
    usual_seconds: float


def stall(arrivals: Numbers, now: float, limits: Mapping[str, float]) -> Stall | None:
    """Return that no step came for much longer than usual; None where that is not so.

    Evaluations and checkpoints are waits that came before: only a much longer one counts. The first step compiles.

    Args:
        arrivals: when steps were logged, in seconds, ascending.
        now: seconds on the same clock.
        limits: thresholds of the detector ``stall``.
    """
    waits = np.diff(arrivals)[1:]
    if waits.size < limits["least_steps"]:
        return None
    usual = float(np.median(waits))
    waited = now - float(arrivals[-1])
    longest = float(waits.max())
    patience = max(limits["times_usual"] * usual, limits["times_longest"] * longest, limits["least_seconds"])
    return Stall(waited, usual) if waited > patience else None
