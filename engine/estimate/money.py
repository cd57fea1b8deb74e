"""What a run costs: hours times price, spot interruptions, electricity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog.rows import owned_usd_per_hour
from capacity_tui.engine.cluster import Cluster, Interruptions, Price, grid_of
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.result import CostEstimate, EnergyEstimate
from capacity_tui.engine.estimate.timing.reliability import checkpoint_period, checkpoint_seconds, interruption_surplus
from capacity_tui.engine.keys import DeviceFact, Figure
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import PricingSection
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS, KILO, MEGA, format_seconds

MOST_SURPLUS = 100.0
"""A job that interruptions make a hundred times as long is not run on spot capacity, and has no price there."""


job_usd = formula(
    "usd = seconds / 3600 · usd_per_hour",
    unit="USD",
    source="price of the catalogue or the plan",
    seconds=("seconds of the job", "s", "job_seconds"),
    usd_per_hour=("price of all devices for an hour, USD", "USD", "machines_hour_usd"),
)


@equation(
    "watts = devices · limit · (idle + (1 - idle) · (arithmetic · computing + memory · moving + wait · waiting)), "
    "waiting = 1 - computing - moving",
    unit="W",
    source="Patel et al. 2024: power between idle and limit, by what bounds the kernels; shares in coefficients.yaml",
    part=Figure.ENERGY_WATTS_AVERAGE,
    devices="how many",
    limit=("power limit of one, W", "W", DeviceFact.TDP_WATTS),
    idle="share of it that a device draws idle",
    arithmetic=("share of the rest that kernels bound by arithmetic draw", "", "coefficients.arithmetic-power"),
    computing="share of the time in such kernels",
    memory=("share of the rest that kernels bound by memory draw", "", "coefficients.memory-power"),
    moving="share of the time in such kernels",
    wait=("share of the rest that a device draws while it waits", "", "coefficients.waiting-power"),
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
    """Mean power of all devices."""
    busy = arithmetic * computing + memory * moving + wait * (1.0 - computing - moving)
    return devices * limit * (idle + (1.0 - idle) * busy)


# Price of a job on capacity that may be taken back.
spot_usd = formula(
    "spot = seconds · (1 + surplus) / 3600 · usd_per_hour",
    unit="USD",
    source="spot price of the catalogue, checkpoints and interruptions included",
    part=Figure.COST_USD_SPOT,
    seconds=("seconds without interruptions", "s", "job_seconds"),
    surplus=("extra time, as a share of the job", "", "interruption_surplus"),
    usd_per_hour=("spot price of all devices for an hour, USD", "USD", "machines_hour_usd"),
)


@equation(
    "kwh = watts · seconds / 3 600 000",
    unit="kWh",
    source="power times time",
    part=Figure.ENERGY_KWH,
    watts=("mean power of all devices, W", "W", "average_watts"),
    seconds=("seconds of the job", "s", "job_seconds"),
)
def job_kwh(watts: Number, seconds: Number) -> Number:
    return watts * seconds / HOUR_SECONDS / KILO


# Energy of the machines around the devices.
host_kwh = formula(
    "host_kwh = kwh · (host - 1)",
    unit="kWh",
    source="energy of processors, memory, network cards and fans of the nodes",
    part=Figure.ENERGY_KWH_HOST,
    kwh=("energy of the devices, kWh", "kWh", "job_kwh"),
    host=("power of a node over that of its devices", "", "coefficients.host-power"),
)

network_kwh = formula(
    "network_kwh = kwh · network",
    unit="kWh",
    source="energy of switches and optics between nodes; none where there is one node",
    part=Figure.ENERGY_KWH_NETWORK,
    kwh=("energy of the devices, kWh", "kWh", "job_kwh"),
    network=("power of switches and optics over that of the devices", "", "coefficients.network-power"),
)

cooling_kwh = formula(
    "cooling_kwh = (kwh + host_kwh + network_kwh) · (cooling - 1)",
    unit="kWh",
    source="energy of cooling and supply of the building: its PUE above one",
    part=Figure.ENERGY_KWH_COOLING,
    kwh=("energy of the devices, kWh", "kWh", "job_kwh"),
    host_kwh=("energy of the machines around them, kWh", "kWh", "host_kwh"),
    network_kwh=("energy of the network, kWh", "kWh", "network_kwh"),
    cooling=("power with cooling and supply over that of the machines (PUE)", "", "coefficients.cooling-power"),
)

system_kwh = formula(
    "system = kwh + host_kwh + network_kwh + cooling_kwh",
    unit="kWh",
    source="energy as a meter of the building counts it",
    part=Figure.ENERGY_KWH_SYSTEM,
    kwh=("energy of the devices, kWh", "kWh", "job_kwh"),
    host_kwh=("energy of the machines around them, kWh", "kWh", "host_kwh"),
    network_kwh=("energy of the network, kWh", "kWh", "network_kwh"),
    cooling_kwh=("energy of cooling and supply, kWh", "kWh", "cooling_kwh"),
)

# Emissions of a job's electricity, as CO2; what was emitted to make the machines is not in it.
carbon_kg = formula(
    "kg = system · grams_per_kwh / 1000",
    unit="kg",
    source="location-based: what the grid emits from which the machines draw",
    part=Figure.CARBON_KG,
    system=("energy of the job with all around it, kWh", "kWh", "system_kwh"),
    grams_per_kwh=("grams of CO2 equivalent of a kilowatt-hour", "g/kWh", "grids"),
)

electricity_usd = formula(
    "usd = kwh · usd_per_kwh",
    unit="USD",
    source="pricing.usd_per_kwh of the plan",
    part=Figure.ENERGY_USD,
    kwh=("energy of the job, kWh", "kWh", "job_kwh"),
    usd_per_kwh=("price of a kilowatt-hour, USD", "USD"),
)


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


owned_hour_usd = equation(
    "usd = purchase / (lifetime · use) + kilowatts · overhead · usd_per_kwh",
    unit="USD",
    source="straight-line depreciation over the hours of work, and electricity",
    purchase=("price it was bought for, USD", "USD"),
    lifetime="hours until it is worth nothing",
    use="share of them in which it works",
    kilowatts="power it draws, kW",
    overhead="power with cooling and supply, over its own",
    usd_per_kwh=("price of a kilowatt-hour, USD", "USD"),
)(owned_usd_per_hour)


machines_hour_usd = formula(
    "usd = machines · usd_per_hour",
    unit="USD",
    source="owned machines, all alike",
    machines="how many",
    usd_per_hour=("price of an hour of one, USD", "USD", "owned_usd_per_hour"),
)


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
