"""Anomalies of a run: losses that jump or diverge, steps that stop, devices that are throttled or stand out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.runs.monitor.forecast import Numbers, order, width


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


@dataclass(frozen=True, slots=True)
class Throttling:
    """Throttled clocks: the cause, the driver's reasons, and the share of the newest samples."""

    cause: str
    reasons: tuple[str, ...]
    share: float


def throttling(
    reasons: Sequence[tuple[str, ...]], limits: Mapping[str, float], causes: Mapping[str, Sequence[str]]
) -> Throttling | None:
    """Return why a device's clocks were held down of late; None where they were not, or by its settings alone.

    Args:
        reasons: the driver's reasons with each sample, the newest last.
        limits: thresholds of the detector ``throttling``.
        causes: words of drivers by what they mean, the graver causes first.
    """
    window = round(limits["window"])
    if len(reasons) < window:
        return None
    newest = reasons[-window:]
    for cause, words in causes.items():
        meant = [tuple(text for text in texts if any(word in text.lower() for word in words)) for texts in newest]
        share = sum(map(bool, meant)) / window
        if share >= limits["share"]:
            return Throttling(cause, tuple(sorted({text for texts in meant for text in texts})), share)
    return None


def held_over(readings: Numbers, limit: float, samples: int) -> bool:
    """Return whether every one of the newest readings of a device was at a limit or above it."""
    newest = readings[-samples:]
    return newest.size == samples and bool(np.all(newest >= limit))


@dataclass(frozen=True, slots=True)
class Straggler:
    """A device whose reading is not that of its peers; medians of both."""

    device: int
    value: float
    peers: float


def stragglers(readings: Numbers, limits: Mapping[str, float]) -> tuple[Straggler, ...]:
    """Return the devices that stood out all the time of late, below or above.

    Args:
        readings: one row a sample, one column a device; NaN where there was no reading.
        limits: thresholds of the detector ``straggler``.
    """
    window = round(limits["window"])
    if readings.ndim != 2 or readings.shape[0] < window or readings.shape[1] < 3:
        return ()
    newest = readings[-window:]
    newest = newest[np.all(np.isfinite(newest), axis=1)]
    if newest.shape[0] < window * limits["persistence"]:
        return ()
    middle = np.median(newest, axis=1, keepdims=True)
    medians = np.median(newest, axis=0)
    peers = float(np.median(medians))
    scatter = 1.4826 * float(np.median(np.abs(medians - peers)))
    least = max(limits["difference"] * abs(peers), limits["scatter"] * scatter)
    outliers = []
    for device, value in enumerate(medians):
        side = np.sign(value - peers) * (newest[:, device] - middle[:, 0]) > least / 2
        if abs(value - peers) > least and np.mean(side) >= limits["persistence"]:
            outliers.append(Straggler(device, float(value), peers))
    return tuple(outliers) if len(outliers) < (readings.shape[1] + 1) // 2 else ()
