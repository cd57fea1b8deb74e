"""Anomalies of a run and forecasts from its noisy samples.

Losses that jump or diverge, steps that stop, devices that are throttled or stand out; memory that grows without end, a
disk that fills up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval

Numbers = NDArray[np.float64]
_LOW, _HIGH = 0.1, 0.9


@dataclass(frozen=True, slots=True)
class Slope:
    """Change a second: the median over all pairs of points, and what eight of ten pairs far apart keep to."""

    value: float
    low: float
    high: float


def lower_envelope(times: Numbers, values: Numbers, blocks: int) -> tuple[Numbers, Numbers]:
    """Return the least value of each of some equal parts, with the time of the middle of the part."""
    parts = [part for part in np.array_split(np.arange(values.size), blocks) if part.size]
    return (np.asarray([times[part].mean() for part in parts]), np.asarray([values[part].min() for part in parts]))


def order(values: Numbers) -> float:
    """Return by how many standard deviations values rise more often than they would by chance (Mann and Kendall)."""
    n = values.size
    if n < 3:
        return 0.0
    signs = np.sign(values[None, :] - values[:, None])
    score = float(np.sum(np.triu(signs, 1)))
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float(np.sum(ties * (ties - 1) * (2 * ties + 5)))) / 18
    return 0.0 if variance <= 0 or score == 0 else (score - math.copysign(1, score)) / math.sqrt(variance)


def slope(times: Numbers, values: Numbers) -> Slope:
    """Return the slope through points in order of time (Theil and Sen)."""
    first, second = np.triu_indices(values.size, 1)
    apart = times[second] - times[first]
    usable = apart > 0
    if not np.any(usable):
        return Slope(0.0, 0.0, 0.0)
    slopes = (values[second] - values[first])[usable] / apart[usable]
    distant = slopes[apart[usable] >= apart[usable].max() / 3]
    low, high = np.quantile(distant, (_LOW, _HIGH))
    return Slope(float(np.median(slopes)), float(low), float(high))


def scatter(times: Numbers, values: Numbers, line: Slope) -> float:
    """Return the standard deviation around a line, from the median of what is off it."""
    off = values - line.value * times
    return float(1.4826 * np.median(np.abs(off - np.median(off))))


def width(values: Numbers) -> float:
    """Return the distance from the median that nine of ten values keep to."""
    return float(np.quantile(np.abs(values - np.median(values)), _HIGH))


@dataclass(frozen=True, slots=True)
class Growth:
    """Memory that grows steadily."""

    slope: Slope  # bytes a second
    level: float  # bytes of the lower envelope at the end
    swing: float  # bytes by which memory goes above that envelope now and then
    since_seconds: float  # how long it has been watched growing


def growth(times: Numbers, values: Numbers, limits: Mapping[str, float]) -> Growth | None:
    """Return how memory grows without end; None where it does not, or not for long enough yet.

    A window counts where its lower envelope rises in order and steadily, the window before it was flat or rose alike,
    and it ends well above everything before, now as a while ago: garbage collection has a floor, warm-up slows down, a
    season turns.
    """
    finite = np.isfinite(values)
    times, values = times[finite], values[finite]
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
    is_steady = limits["steadiness"] <= line.value / max(slope(at, floor).value, 1e-9) <= 1.0 / limits["least_before"]
    return is_steady and _is_straight(*lower_envelope(times[-2 * window :], values[-2 * window :], 2 * blocks), limits)


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


@dataclass(frozen=True, slots=True)
class DiskFilling:
    """When a disk is full."""

    free_bytes: float
    rise_bytes: float  # the largest that it took at once; 0 where it takes little by little
    seconds: float  # until it is full at this rate; infinite where it never is


def filling(times: Numbers, free: Numbers, total: float, limits: Mapping[str, float]) -> DiskFilling | None:
    """Return that a disk will be full soon; None where it will not."""
    finite = np.isfinite(free)
    times, free = times[finite], free[finite]
    if free.size < 2 or total <= 0:
        return None
    now = float(free[-1])
    rises = _rises(-free, limits["rise_share"] * total)
    largest = max(rises, default=0.0)
    middle = int(np.searchsorted(times, (times[0] + times[-1]) / 2))
    # What is deleted again makes the newer half slower.
    rate = min(_rate(times, free, 0), _rate(times, free, middle))
    seconds = now / rate if rate > 0 else np.inf
    soon = len(rises) >= limits["rises"] and seconds <= limits["soon"]
    little = rate > 0 and len(rises) > 1 and now < limits["fits"] * largest
    if soon or little or now < limits["least_free_share"] * total:
        return DiskFilling(now, largest, seconds)
    return None


def _rate(times: Numbers, free: Numbers, start: int) -> float:
    """Return bytes taken a second since a sample."""
    passed = float(times[-1] - times[start])
    return float(free[start] - free[-1]) / passed if passed > 0 else 0.0


def _rises(used: Numbers, least: float) -> list[float]:
    """Return how much each stretch of growth added, where that is worth telling."""
    changes = np.diff(used)
    starts = np.flatnonzero(np.diff(np.concatenate(([False], changes > 0, [False]))))
    rises = [float(used[end] - used[start]) for start, end in zip(starts[::2], starts[1::2], strict=True)]
    return [rise for rise in rises if rise >= least]


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
    """Return that the newest losses jumped above those before them; None where they did not."""
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
    """Return that the loss climbs away from its best; None where it does not."""
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
    """Return why a device's clocks were throttled recently; None where they were not, or by its settings alone."""
    window = round(limits["window"])
    if len(reasons) < window:
        return None
    newest = reasons[-window:]
    for cause, words in causes.items():
        matched = [tuple(text for text in texts if any(word in text.lower() for word in words)) for texts in newest]
        share = sum(map(bool, matched)) / window
        if share >= limits["share"]:
            return Throttling(cause, tuple(sorted({text for texts in matched for text in texts})), share)
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
    """Return the devices that stood out all the time recently, below or above; readings are a row a sample."""
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
