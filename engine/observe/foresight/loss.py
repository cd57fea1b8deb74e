"""Losses that are no number, jump, or climb away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.observe.foresight.trends import Numbers, order, width


@dataclass(frozen=True, slots=True)
class LossRise:
    """A loss above what it was; ``widths`` says how far, in widths of the recent losses."""

    value: float
    usual: float
    widths: float


def not_finite(values: Numbers) -> bool:
    """Return whether the newest value is no number."""
    return bool(values.size) and not np.isfinite(values[-1])


def spike(values: Numbers, limits: Mapping[str, float]) -> LossRise | None:
    """Return that the newest losses jumped above those before them; None where they did not.

    Args:
        values: losses in their order.
        limits: thresholds of the detector ``loss_spike``.
    """
    recent = values[-round(limits["window"]) - 2 : -2]
    recent = recent[np.isfinite(recent)]
    newest = values[-2:]
    if recent.size < limits["least"] or not np.all(np.isfinite(newest)):
        return None
    usual, spread = float(np.median(recent)), width(recent)
    least = max(limits["widths"] * spread, limits["least_rise"] * abs(usual))
    rise = float(newest[-1]) - usual
    if rise <= least or newest[-1] <= recent.max() or (newest[0] - usual <= least and rise <= limits["alone"] * least):
        return None
    return LossRise(float(newest[-1]), usual, rise / spread if spread > 0 else np.inf)


def divergence(values: Numbers, limits: Mapping[str, float]) -> LossRise | None:
    """Return that the loss climbs away from its best; None where it does not.

    Args:
        values: losses in their order.
        limits: thresholds of the detector ``divergence``.
    """
    finite = values[np.isfinite(values)]
    size = round(limits["smooth"])
    whole = finite.size // size
    if whole < 3:
        return None
    blocks = finite[finite.size - whole * size :].reshape(whole, size)
    medians = np.median(blocks, axis=1)
    best = int(np.argmin(medians))
    if best == whole - 1:
        return None
    now, least, spread = float(medians[-1]), float(medians[best]), width(blocks[best])
    climbed = now - least
    if climbed <= max(limits["widths"] * spread, limits["least_rise"] * abs(least)):
        return None
    if medians[-2] >= now or order(finite[-2 * size :]) < limits["order"]:
        return None
    return LossRise(now, least, climbed / spread if spread > 0 else np.inf)
