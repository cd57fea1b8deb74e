"""Other accelerators that would do a plan's work for less money."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.catalog import Accelerator
from capacity_tui.engine.choose.advice.remedy import Remedy
from capacity_tui.engine.choose.whatif.trials import EstimatedPlan
from capacity_tui.engine.cluster.cluster import Price
from capacity_tui.engine.cluster.pricing import device_price
from capacity_tui.engine.units import format_number

CODE = "accelerator"
MOST_TRIED = 2
"""Each costs an estimate; those that promise most are tried."""
LEAST_SPEED = 0.5
"""What would be slower than this share, by arithmetic or by memory, is another job."""
MOST_COST = 0.9
"""Only what promises to save a tenth is tried: bandwidth and peak do not tell more exactly."""


def other_accelerators(case: EstimatedPlan) -> Iterator[Remedy]:
    """Yield as many of another accelerator of the same maker, those first that promise the lowest cost.

    What is promised is the price over what bounds the plan: dense 16-bit arithmetic, or memory bandwidth; a price that
    may not hold, as it is of another region or of nodes without a network, promises nothing. Devices that have a price
    of the user's own, that were detected, or that are of several kinds, have none in their place.

    Args:
        case: the estimated plan.
    """
    plan, cluster, catalog = case.plan, case.resolved.cluster, case.catalog
    mine = catalog.accelerators.find_id(cluster.device.id) and catalog.accelerators[cluster.device.id]
    rate = cluster.price.rate
    hardware = plan.hardware
    given = hardware.groups or hardware.spec or plan.pricing.usd_per_hour is not None
    fixed = given or hardware.name == "detected" or cluster.part
    speed = _speed(case, mine) if mine else None
    if fixed or not mine or not speed or not rate or cluster.price.is_spot:
        return
    needed, devices = float(np.max(case.estimate.memory.reserved_bytes.value)), int(cluster.devices)
    nodes = math.ceil(devices / float(np.max(cluster.direct_devices)))
    found: list[tuple[float, Accelerator, Price]] = []
    for row in catalog.accelerators.values():
        other = _speed(case, row)
        if row.id == mine.id or row.vendor != mine.vendor or not other or row.memory_bytes < needed:
            continue
        if other < LEAST_SPEED * speed:
            continue
        price = device_price(row.id, devices, nodes, plan.pricing, catalog)
        if price.rate is not None and not price.remarks and price.rate / other <= MOST_COST * rate / speed:
            found.append((price.rate / other, row, price))
    for _, row, price in sorted(found, key=lambda each: each[0])[:MOST_TRIED]:
        change = {"hardware.name": row.id, "hardware.devices": devices}
        yield Remedy(CODE, f"Use {format_number(devices)} x {row.name}", change, f"Price of {price.rate_source}.")


def _speed(case: EstimatedPlan, row: Accelerator) -> float | None:
    """Return what a device has of that which bounds the plan: FLOP/s, or B/s; None where its row does not tell."""
    bottleneck = case.estimate.bottleneck
    if np.mean(bottleneck.memory_bound) > 0.5:
        return row.bandwidth_gbs
    return row.bf16_tflops or row.fp16_tflops
