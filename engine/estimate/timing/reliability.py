"""What failures cost a long training: how often they come, what they lose, and its time on the calendar.

Daly, A higher order estimate of the optimum checkpoint interval, 2006;
rates of failures as published of clusters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS

# Where interruptions come so often that hardly any work is done, more of them make no difference to the answer.
MOST_RESTARTS = 50.0


@dataclass(frozen=True, slots=True)
class ReliabilityEstimate:
    """What failures make of a training."""

    failures: Interval  # interruptions that are expected
    mtbf_hours: Interval  # mean hours between two of them
    goodput: Interval  # share of the time on the calendar in which steps are done that count
    calendar_seconds: Interval  # length of the job, all stops included
    calendar_usd: Interval | None = None  # its price; None where no price is known


@equation
def checkpoint_period(checkpoint: Number, interval: Number) -> Number:
    """Seconds of work between two checkpoints."""
    return np.where(checkpoint < interval / 2.0, np.sqrt(2.0 * checkpoint * interval) - checkpoint, interval)


@equation
def interruption_surplus(period: Number, checkpoint: Number, restart: Number, interval: Number) -> Number:
    """Extra time through checkpoints, lost work and restarts, as a share of the job."""
    restarts = np.minimum(restart / interval, MOST_RESTARTS)
    segment = np.minimum((period + checkpoint) / interval, MOST_RESTARTS)
    return interval / period * np.exp(restarts) * np.expm1(segment) - 1.0


checkpoint_seconds = formula()


@equation
def failure_interval(devices: Number, device_hours: Number, taken_back: Number = np.inf) -> Number:
    """Mean seconds between two interruptions of a job."""
    return HOUR_SECONDS / (devices / device_hours + HOUR_SECONDS / taken_back)


mtbf_hours = formula()  # Mean hours between two interruptions of a job
useful_share = formula()
calendar_seconds = formula()  # Seconds of a job from its start to its end, all stops included
expected_failures = formula()
calendar_usd = formula()


def reliability(
    cluster: Cluster, seconds: Interval, state_bytes: Number, usd_per_hour: Number | None
) -> ReliabilityEstimate:
    """Return what failures make of a job.

    Each unknown is moved to its ends alone; their effects add up as those of independent causes do.

    Args:
        cluster: devices, how often they fail, and whether they may be taken back.
        seconds: length of the job without interruptions.
        state_bytes: model states that one device writes to a checkpoint.
        usd_per_hour: price of all devices for an hour; None where unknown.
    """
    facts, spot = cluster.failures, cluster.price.interruptions
    taken_back = spot.seconds_between if spot is not None and cluster.price.is_spot else np.inf
    written = checkpoint_seconds(state_bytes, facts.checkpoint_bandwidth)

    def interval(device_hours: Number) -> Number:
        return failure_interval(cluster.devices, device_hours, taken_back)

    def share(device_hours: Number, restart: Number, other: Number) -> Number:
        between = interval(device_hours)
        period = checkpoint_period(written, between)
        return useful_share(interruption_surplus(period, written, restart, between), other)

    hours, restart, other = facts.device_hours, facts.restart_seconds, facts.other_share
    between = Interval(interval(hours.value), interval(hours.low), interval(hours.high))
    unknown: tuple[Callable[[bool], Number], ...] = (
        lambda worse: share(hours.low if worse else hours.high, restart.value, other.value),
        lambda worse: share(hours.value, restart.high if worse else restart.low, other.value),
        lambda worse: share(hours.value, restart.value, other.high if worse else other.low),
    )
    goodput = share(hours.value, restart.value, other.value)
    low, high = (np.sqrt(sum((of(worse) - goodput) ** 2 for of in unknown)) for worse in (True, False))
    useful = Interval(goodput, np.maximum(goodput - low, goodput / MOST_RESTARTS), np.minimum(goodput + high, 1.0))
    lost = Interval(1.0 / goodput, 1.0 / useful.high, 1.0 / useful.low)
    rate = Interval(1.0 / between.value, 1.0 / between.high, 1.0 / between.low)
    calendar = _around(calendar_seconds(seconds.value, goodput), seconds, lost)
    failures = _around(expected_failures(calendar.value, between.value), seconds, rate)
    mtbf = Interval(mtbf_hours(between.value), between.low / HOUR_SECONDS, between.high / HOUR_SECONDS)
    usd = None if usd_per_hour is None else _around(calendar_usd(calendar.value, usd_per_hour), seconds, lost)
    return ReliabilityEstimate(failures, mtbf, useful, calendar, usd)


def _around(value: Number, *factors: Interval) -> Interval:
    """Return a product with the range that its factors give it, which err independently of each other."""
    low, high = (
        np.exp(np.sqrt(sum(np.log(end / factor.value) ** 2 for end, factor in zip(ends, factors, strict=True))))
        for ends in ([factor.low for factor in factors], [factor.high for factor in factors])
    )
    return Interval(value, value / low, value * high)
