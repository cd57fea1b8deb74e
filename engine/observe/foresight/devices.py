"""Devices that are held back, and one that stands out among its peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.observe.foresight.trends import Numbers


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
