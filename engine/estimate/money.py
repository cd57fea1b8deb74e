"""What a run costs: hours times price, spot interruptions, electricity."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.result import CostEstimate, EnergyEstimate
from capacity_tui.engine.hardware.cluster import Cluster
from capacity_tui.engine.numeric import Number

HOUR = 3600.0
# Spot capacity is taken back about once a day on busy types; restart and lost work cost minutes (Daly 2006).
SPOT_INTERRUPTION_HOURS, SPOT_RESTART_SECONDS, CHECKPOINT_SECONDS = 24.0, 600.0, 60.0


@equation("usd = seconds / 3600 · usd_per_hour", unit="USD", source="price of the catalogue or the plan")
def job_usd(seconds: Number, usd_per_hour: Number) -> Number:
    """Price of a job.

    Args:
        seconds: seconds of the job; of an hour where its length is open.
        usd_per_hour: price of all devices for an hour, USD.
    """
    return seconds / HOUR * usd_per_hour


@equation(
    "surplus = sqrt(2 · checkpoint / interval) + restart / interval",
    unit="share",
    source="Young 1974, Daly 2006: cost of checkpoints at the best period, and of restarts",
)
def interruption_surplus(checkpoint: Number, restart: Number, interval: Number) -> Number:
    """Extra time through interruptions, as a share of the job.

    Args:
        checkpoint: seconds to write a checkpoint.
        restart: seconds lost with each interruption.
        interval: seconds between interruptions.
    """
    return np.sqrt(2.0 * checkpoint / interval) + restart / interval


@equation(
    "watts = devices · limit · (idle + (1 - idle) · (arithmetic · computing + memory · moving + wait · waiting)), "
    "waiting = 1 - computing - moving",
    unit="W",
    source="Patel et al. 2024: power between idle and limit, by what bounds the kernels; shares in coefficients.yaml",
    part="energy.watts_average",
)
def average_watts(
    devices: Number,
    limit: Number,
    idle: Number,
    arithmetic: Number,
    computing: Number,
    memory: Number,
    moving: Number,
    wait: Number,
) -> Number:
    """Mean power of all devices.

    Args:
        devices: how many.
        limit: power limit of one, W.
        idle: share of it that a device draws idle.
        arithmetic: share of the rest that kernels bound by arithmetic draw.
        computing: share of the time in such kernels.
        memory: share of the rest that kernels bound by memory draw.
        moving: share of the time in such kernels.
        wait: share of the rest that a device draws while it waits.
    """
    busy = arithmetic * computing + memory * moving + wait * (1.0 - computing - moving)
    return devices * limit * (idle + (1.0 - idle) * busy)


@equation(
    "spot = seconds · (1 + surplus) / 3600 · usd_per_hour",
    unit="USD",
    source="spot price of the catalogue, checkpoints and interruptions included",
    part="cost.usd_spot",
)
def spot_usd(seconds: Number, surplus: Number, usd_per_hour: Number) -> Number:
    """Price of a job on capacity that may be taken back.

    Args:
        seconds: seconds without interruptions; of an hour where the length is open.
        surplus: extra time, as a share of the job.
        usd_per_hour: spot price of all devices for an hour, USD.
    """
    return seconds * (1.0 + surplus) / HOUR * usd_per_hour


@equation("kwh = watts · seconds / 3 600 000", unit="kWh", source="power times time", part="energy.kwh")
def job_kwh(watts: Number, seconds: Number) -> Number:
    """Energy of a job.

    Args:
        watts: mean power of all devices, W.
        seconds: seconds of the job.
    """
    return watts * seconds / HOUR / 1000.0


@equation("usd = kwh · usd_per_kwh", unit="USD", source="pricing.usd_per_kwh of the plan", part="energy.usd")
def electricity_usd(kwh: Number, usd_per_kwh: Number) -> Number:
    """Price of a job's electricity.

    Args:
        kwh: energy of the job, kWh.
        usd_per_kwh: price of a kilowatt-hour, USD.
    """
    return kwh * usd_per_kwh


def cost(cluster: Cluster, seconds: Number | None, unit_seconds: Number) -> CostEstimate:
    """Return the price of a job.

    Args:
        cluster: devices and their price.
        seconds: length of the job; None prices an hour.
        unit_seconds: seconds of one token or sample.
    """
    price = cluster.price
    per_hour = price.usd_per_hour
    if per_hour is None:
        return CostEstimate(None, None, None, None, "no price known: give pricing.usd_per_hour")
    length = HOUR if seconds is None else seconds
    surplus = interruption_surplus(CHECKPOINT_SECONDS, SPOT_RESTART_SECONDS, SPOT_INTERRUPTION_HOURS * HOUR)
    spot = None
    if price.spot_usd_per_hour is not None:
        spot = spot_usd(length, surplus, price.spot_usd_per_hour)
    million = job_usd.for_part("cost.usd_per_million_tokens")(unit_seconds * 1e6, per_hour)
    return CostEstimate(job_usd.for_part("cost.usd")(length, per_hour), million, spot, per_hour, price.source)


def energy(
    cluster: Cluster, seconds: Number | None, computing: Number, moving: Number, usd_per_kwh: Number
) -> EnergyEstimate:
    """Return the electricity of a job.

    Args:
        cluster: devices and their power limit.
        seconds: length of the job; None where it is open.
        computing: share of the time in kernels bound by arithmetic.
        moving: share of the time in kernels bound by memory.
        usd_per_kwh: price of a kilowatt-hour, USD.
    """
    limit = cluster.device.tdp_watts
    if limit is None:
        return EnergyEstimate(None, None, None)
    reach = cluster.device.reach
    watts = average_watts(
        cluster.devices,
        limit,
        reach.idle_share,
        reach.arithmetic_power,
        computing,
        reach.memory_power,
        moving,
        reach.waiting_power,
    )
    if seconds is None:
        return EnergyEstimate(None, watts, None)
    kwh = job_kwh(watts, seconds)
    return EnergyEstimate(kwh, watts, electricity_usd(kwh, usd_per_kwh))
