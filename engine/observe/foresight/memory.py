"""Memory that grows: whether without end, and when it is full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.observe.foresight.trends import Numbers, Slope, lower_envelope, order, scatter, slope
from capacity_tui.engine.uncertainty import Interval


@dataclass(frozen=True, slots=True)
class Growth:
    """Memory that grows steadily.

    Attributes:
        slope: bytes a second.
        level: bytes of the lower envelope at the end.
        swing: bytes by which memory goes above that envelope now and then.
        since_seconds: how long it has been watched growing.
    """

    slope: Slope
    level: float
    swing: float
    since_seconds: float


def growth(times: Numbers, values: Numbers, limits: Mapping[str, float]) -> Growth | None:
    """Return how memory grows without end; None where it does not, or not for long enough yet.

    A window counts where its lower envelope rises in order and steadily, the window before it was flat or rose alike,
    and it ends well above everything before, now as a while ago: garbage collection has a floor, warm-up slows down, a
    season turns.

    Args:
        times: seconds, ascending.
        values: bytes at those times.
        limits: thresholds of the detector ``leak``.
    """
    kept = np.isfinite(values)
    times, values = times[kept], values[kept]
    window = round(limits["window"])
    while (back := round(limits["persistence"] * window)) + 2 * window <= values.size:
        result = _growth_in_window(times, values, window, limits)
        if result is not None and _growth_in_window(times[:-back], values[:-back], window, limits) is not None:
            return result
        window *= 2
    return None


def _growth_in_window(times: Numbers, values: Numbers, window: int, limits: Mapping[str, float]) -> Growth | None:
    blocks = round(limits["blocks"])
    at, floor = lower_envelope(times[-window:], values[-window:], blocks)
    if order(floor) < limits["order"]:
        return None
    line = slope(at, floor)
    grown = line.value * (at[-1] - at[0])
    level = float(np.median(floor[-3:]))
    least = max(limits["least_bytes"], limits["least_share"] * abs(level), limits["noise"] * scatter(at, floor, line))
    if grown < least:
        return None
    if not _is_straight(at, floor, limits) or not _follows(times, values, window, line, grown, limits):
        return None
    size = max(1, window // blocks)
    _, earlier = lower_envelope(times[:-window], values[:-window], max(1, (values.size - window) // size))
    if earlier.max() > level - limits["clearance"] * grown:
        return None
    swing = float(np.max(values[-window:] - np.interp(times[-window:], at, floor)))
    return Growth(line, float(floor[-1]), max(0.0, swing), float(times[-1] - times[-2 * window]))


def _follows(
    times: Numbers, values: Numbers, window: int, line: Slope, grown: float, limits: Mapping[str, float]
) -> bool:
    """Return whether the window before one was flat, or rose as it does: warm-up rose faster, a season turned."""
    blocks = round(limits["blocks"])
    at, floor = lower_envelope(times[-2 * window : -window], values[-2 * window : -window], blocks)
    if np.ptp(floor) <= limits["flat"] * grown:
        return True
    alike = limits["steadiness"] <= line.value / max(slope(at, floor).value, 1e-9) <= 1.0 / limits["least_before"]
    return alike and _is_straight(*lower_envelope(times[-2 * window :], values[-2 * window :], 2 * blocks), limits)


def _is_straight(times: Numbers, floor: Numbers, limits: Mapping[str, float]) -> bool:
    """Return whether memory rises in each part alike.

    Warm-up rises less and less, a season most in its middle: what never falls has to rise in thirds alike. Where it
    fell in between, a season turned and the rise outlived it, so that halves are enough.
    """
    falls = -float(np.min(np.diff(floor))) > limits["turn"] * (floor[-1] - floor[0])
    pieces = zip(*(np.array_split(axis, 2 if falls else 3) for axis in (times, floor)), strict=True)
    slopes = [slope(part_times, level).value for part_times, level in pieces]
    if falls:
        return slopes[-1] >= limits["steadiness"] * slopes[0]
    return min(slopes) >= limits["straightness"] * max(slopes)


def seconds_until_full(grows: Growth, capacity: float) -> Interval | None:
    """Return when growing memory reaches a capacity; None where its slope may be none at all."""
    room = max(0.0, capacity - grows.level - grows.swing)
    if grows.slope.value <= 0:
        return None
    low = room / max(grows.slope.high, grows.slope.value)
    high = room / grows.slope.low if grows.slope.low > 0 else np.inf
    return Interval(room / grows.slope.value, low, max(high, room / grows.slope.value))


def full(shares: Numbers, limits: Mapping[str, float]) -> bool:
    """Return whether the newest shares of a memory all lie above the threshold of ``memory_full``."""
    newest = shares[-round(limits["samples"]) :]
    return newest.size >= limits["samples"] and bool(np.all(newest >= limits["share"]))
