"""What a run costs: hours times price, spot interruptions, electricity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog.rows import owned_usd_per_hour
from capacity_tui.engine.cluster import Cluster, Interruptions, Price, grid_of
from capacity_tui.engine.estimate.derivation import Equation, equation, formula
from capacity_tui.engine.estimate.result import CostEstimate, EnergyEstimate
from capacity_tui.engine.estimate.timing.reliability import checkpoint_period, checkpoint_seconds, interruption_surplus
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import PricingSection
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS, KILO, MEGA, format_seconds

MOST_SURPLUS = 100.0
"""A job that interruptions make a hundred times as long is not run on spot capacity, and has no price there."""


job_usd = formula()


@equation
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
    """Mean power of all devices."""
    busy = arithmetic * computing + memory * moving + wait * (1.0 - computing - moving)
    return devices * limit * (idle + (1.0 - idle) * busy)


spot_usd = formula()  # Price of a job on capacity that may be taken back


@equation
def job_kwh(watts: Number, seconds: Number) -> Number:
    return watts * seconds / HOUR_SECONDS / KILO


host_kwh = formula()  # Energy of the machines around the devices
network_kwh = formula()
cooling_kwh = formula()
system_kwh = formula()
carbon_kg = formula()  # Emissions of a job's electricity, as CO2; what was emitted to make the machines is not in it
electricity_usd = formula()


def cost(
    cluster: Cluster,
    seconds: Interval | None,
    unit_seconds: Number,
    keeps_state: bool = True,
    state_bytes: Number | None = None,
) -> CostEstimate:
    """Return the price of a job the way it runs, on demand or on spot capacity.

    Args:
        seconds: length of the job; None where it is open, and so is its price.
        unit_seconds: seconds of one token or sample.
        keeps_state: whether an interruption loses work; serving only waits for the restart.
        state_bytes: model states that one device writes to a checkpoint; None where they are not known.
    """
    price = _writing(cluster.price, state_bytes)
    if price.rate is None:
        return CostEstimate(None, None, None, None, price.rate_source or "no price known: give pricing.usd_per_hour")
    rate = _owned_rate(price, price.rate)
    million_seconds, spot_rate = unit_seconds * MEGA, price.spot_usd_per_hour
    surplus = spot_surplus(price.interruptions, keeps_state)
    hopeless = _hopeless(price.interruptions, surplus)
    spot = None if spot_rate is None or seconds is None or hopeless else spot_usd(seconds.value, surplus, spot_rate)
    spot_range = None if spot is None else _spot_range(price, seconds, spot, keeps_state)
    if price.is_spot and hopeless:
        return CostEstimate(None, None, None, rate, price.rate_source, why_no_spot=hopeless)
    if price.is_spot:
        usd = None if seconds is None else spot_usd.for_part(Figure.COST_USD)(seconds.value, surplus, rate)
        million = spot_usd.for_part(Figure.COST_USD_PER_MILLION_TOKENS)(million_seconds, surplus, rate)
        return CostEstimate(usd, million, spot, rate, price.rate_source, spot_range, spot_range)
    million = job_usd.for_part(Figure.COST_USD_PER_MILLION_TOKENS)(million_seconds, rate)
    if seconds is None:
        return CostEstimate(None, million, None, rate, price.rate_source, why_no_spot=hopeless)
    usd = job_usd.for_part(Figure.COST_USD)(seconds.value, rate)
    hourly = Interval(usd, seconds.low / HOUR_SECONDS * rate, seconds.high / HOUR_SECONDS * rate)
    return CostEstimate(usd, million, spot, rate, price.rate_source, hourly, spot_range, hopeless)


def _hopeless(risk: Interruptions | None, surplus: Number) -> str:
    """Return why a job would not get on on spot capacity; empty where it would, or where one of several would."""
    if risk is None or np.min(surplus) < MOST_SURPLUS:
        return ""
    return f"interrupted every {format_seconds(risk.seconds_between)}, it would hardly get on"


owned_hour_usd = Equation(owned_usd_per_hour, __name__)


machines_hour_usd = formula()


def _owned_rate(price: Price, rate: float) -> Number:
    """Return the price of an hour as it follows from a purchase, where that is what it rests on."""
    quote = next(iter(price.rate_quotes), None)
    if quote is None or quote.purchase is None:
        return rate
    bought = quote.purchase
    hour = owned_hour_usd(
        bought.usd, bought.lifetime_hours, bought.use, bought.watts / KILO, bought.overhead, bought.usd_per_kwh
    )
    return machines_hour_usd(rate / quote.usd_per_hour, hour)


def _writing(price: Price, state_bytes: Number | None) -> Price:
    """Return the price with the time that checkpoints of so many bytes a device take."""
    risk = price.interruptions
    if risk is None or state_bytes is None:
        return price
    seconds = checkpoint_seconds(state_bytes, risk.checkpoint_bandwidth)
    return replace(price, interruptions=replace(risk, checkpoint_seconds=seconds))


def spot_surplus(interruptions: Interruptions | None, keeps_state: bool = True, spread: float = 1.0) -> Number:
    """Return the extra time on spot capacity, as a share of the job.

    Args:
        interruptions: how often it is taken back; None for never.
        spread: how many times rarer interruptions are than on average.
    """
    if interruptions is None:
        return 0.0
    interval = interruptions.seconds_between * spread
    if not keeps_state:
        return interruptions.restart_seconds / interval
    checkpoint = interruptions.checkpoint_seconds
    period = checkpoint_period(checkpoint, interval)
    return interruption_surplus(period, checkpoint, interruptions.restart_seconds, interval)


def _spot_range(price: Price, seconds: Interval | None, usd: Number, keeps_state: bool) -> Interval | None:
    """The range of a job's price on spot capacity: interruptions may come more often, and rarer."""
    risk, rate = price.interruptions, price.spot_usd_per_hour
    if seconds is None or rate is None:
        return None
    spread = 1.0 if risk is None else risk.spread
    low = seconds.low * (1.0 + spot_surplus(risk, keeps_state, spread))
    high = seconds.high * (1.0 + np.minimum(spot_surplus(risk, keeps_state, 1.0 / spread), MOST_SURPLUS))
    return Interval(usd, low / HOUR_SECONDS * rate, high / HOUR_SECONDS * rate)


def energy(
    cluster: Cluster, seconds: Number | None, computing: Number, moving: Number, pricing: PricingSection
) -> EnergyEstimate:
    """Return the electricity of a job, and what it emits.

    Args:
        seconds: length of the job; None where it is open.
        computing: share of the time in kernels bound by arithmetic.
        moving: share of the time in kernels bound by memory.
        pricing: price of a kilowatt-hour, and the region of the machines.
    """
    limit = cluster.device.tdp_watts
    if limit is None:
        return EnergyEstimate(None, None, None)
    efficiency = cluster.device.efficiency
    watts = average_watts(
        cluster.devices,
        limit,
        efficiency.idle_share,
        efficiency.arithmetic_power,
        computing,
        efficiency.memory_power,
        moving,
        efficiency.waiting_power,
    )
    if seconds is None:
        return EnergyEstimate(None, watts, None)
    kwh = job_kwh(watts, seconds)
    host = host_kwh(kwh, efficiency.host_power)
    network = network_kwh(kwh, efficiency.network_power * (cluster.devices > cluster.per_node))
    quote = next(iter(cluster.price.rate_quotes), None)
    bought = None if quote is None else quote.purchase
    # Of a machine of one's own its row says what cooling takes.
    cooling = cooling_kwh(kwh, host, network, efficiency.cooling_power if bought is None else bought.overhead)
    system = system_kwh(kwh, host, network, cooling)
    grid = grid_of(pricing.region or (None if quote is None else quote.region))
    parts = {"kwh_host": host, "kwh_network": network, "kwh_cooling": cooling, "kwh_system": system}
    emitted = {"carbon_kg": carbon_kg(system, grid.grams_per_kwh), "grams_per_kwh": grid.grams_per_kwh}
    return EnergyEstimate(kwh, watts, electricity_usd(kwh, pricing.usd_per_kwh), grid=grid.words, **parts, **emitted)
