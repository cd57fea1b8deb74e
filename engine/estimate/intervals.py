"""How sure a figure is: ranges from the errors seen on published measurements."""

from __future__ import annotations

from capacity_tui.engine.estimate.result import Interval
from capacity_tui.engine.numeric import Number

# Ratios of measured to predicted at the 10th and 90th percentile of published runs.
ALLOCATED = (0.85, 1.2)
RESERVED = (0.85, 1.2)
STEP = (0.8, 1.25)
DECODE = (0.7, 1.3)
PREFILL = (0.6, 1.4)


def interval(value: Number, ratios: tuple[float, float]) -> Interval:
    """Return a value with its range of eight in ten."""
    return Interval(value, value * ratios[0], value * ratios[1])
