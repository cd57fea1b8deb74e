"""What may go wrong on a machine: memory, interruptions, networks, prices that do not hold, speeds nobody measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from capacity_tui.engine.fleet.assumptions import assumed
from capacity_tui.engine.fleet.migration.alternative import Alternative, Degree, Level
from capacity_tui.engine.fleet.migration.changes import level_of, replica_devices, spans_nodes
from capacity_tui.engine.fleet.migration.words import ends
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.units import HOUR_SECONDS, PERCENT, format_bytes
from capacity_tui.engine.verdict import Verdict

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Instance
    from capacity_tui.engine.fleet.migration.priced import Machine


def risk(found: Alternative, machine: Machine) -> Level:
    """Return how risky a machine is, with the reasons.

    Args:
        found: the machine with its prices.
        machine: the same before.
    """
    row = machine.row
    return level_of(
        (
            *_of_memory(machine),
            *_of_interruptions(found, machine),
            *_of_network(machine, row),
            *_of_speed(found),
            *_of_price(found, machine, row),
        )
    )


def _of_memory(machine: Machine) -> Iterator[tuple[Degree, str]]:
    estimate = machine.reached.estimate
    if estimate is None or estimate.memory.capacity_bytes is None or not machine.reached.fits:
        return
    capacity, needed = mean(estimate.memory.capacity_bytes), estimate.memory.reserved_bytes
    share = mean(needed.value) / capacity * PERCENT
    if share >= assumed("full_memory_percent"):
        yield "high", f"memory is full to {share:.0f} %"
    elif estimate.verdict is Verdict.TIGHT:
        yield "medium", f"memory is tight: up to {format_bytes(mean(needed.high))} of {format_bytes(capacity)}"


def _of_interruptions(found: Alternative, machine: Machine) -> Iterator[tuple[Degree, str]]:
    often = machine.cluster.price.interruptions
    if not found.is_spot or often is None:
        return
    hours = often.seconds_between / HOUR_SECONDS
    degree: Degree = "high" if hours < assumed("short_interval_hours") else "medium"
    yield degree, f"spot capacity is taken back about every {hours:.3g} h of running"
    if found.usd_per_hour and found.usd_per_hour_spot and found.usd_per_hour_spot >= found.usd_per_hour:
        yield "medium", "spot costs as much as on demand: there is hardly any free capacity"


def _of_network(machine: Machine, row: Instance | None) -> Iterator[tuple[Degree, str]]:
    if machine.reached.fits and spans_nodes(machine.cluster, replica_devices(machine)):
        if row is not None and row.network_link is None:
            yield (
                "high",
                f"{machine.count} instances exchange over the network of their hosts, without one of their own",
            )
        else:
            yield "medium", "nodes have to exchange at the speed that their network promises"
    if row is not None and row.device_share < 1.0:
        yield "low", "a part of a device, beside other users"


def _of_speed(found: Alternative) -> Iterator[tuple[Degree, str]]:
    if found.verdict is Verdict.MISSES_LIMIT:
        yield "high", found.reason
    ratio = found.performance_ratio
    if ratio is not None and mean(ratio.low) > 0 and mean(ratio.high) / mean(ratio.low) >= assumed("wide_range"):
        yield "medium", f"its speed is uncertain: {ends(ratio)} times the present one"


def _of_price(found: Alternative, machine: Machine, row: Instance | None) -> Iterator[tuple[Degree, str]]:
    if row is None:
        return
    if machine.cluster.price.usd_per_hour is None:
        yield "medium", "no on-demand price is known: capacity comes in blocks, by contract or on spot"
    for quote in machine.cluster.price.rate_quotes:
        if not quote.verified:
            yield "medium", "its price was recalled, not seen"
        if quote.age.is_old:
            yield "low", f"its price is {quote.age.words}"
        if quote.remark:
            yield "low", quote.remark
    if not found.usd_per_hour and not found.usd_per_hour_spot:
        yield "high", "no price is known"
