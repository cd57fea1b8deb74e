"""What moving a job takes: how complex a change it is, and what it costs in money and hours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from capacity_tui.engine.estimate import equation
from capacity_tui.engine.estimate.data import DataLocation, transfer_price
from capacity_tui.engine.fleet.database import assumed
from capacity_tui.engine.fleet.migration.priced import month_usd
from capacity_tui.engine.fleet.migration.question import SERVED, Degree, Level, MigrationQuestion, MovePart
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.units import GIGA, HOUR_SECONDS, format_bytes

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Accelerator, Catalog
    from capacity_tui.engine.cluster import Cluster
    from capacity_tui.engine.fleet.migration.priced import Machine
    from capacity_tui.engine.fleet.migration.question import Alternative

DEGREES: tuple[Degree, ...] = ("low", "medium", "high")


def level_of(reasons: Iterable[tuple[Degree, str]]) -> Level:
    """Return the level that reasons of several degrees make together: the highest of them, the weightiest first."""
    ordered = sorted(reasons, key=lambda alternative: -DEGREES.index(alternative[0]))
    return Level(ordered[0][0], tuple(words for _, words in ordered)) if ordered else Level()


def complexity(machine: Machine, now: Machine, catalog: Catalog) -> Level:
    """Return how hard it is to move, with what has to change."""
    return level_of(_changes(machine, now, catalog))


def is_same_region(machine: Machine, now: Machine) -> bool:
    """Whether both are of the same provider, in the same region."""
    return machine.provider == now.provider and (machine.region or now.region) == (now.region or machine.region)


def spans_nodes(cluster: Cluster, replica_devices: float) -> bool:
    """Whether the devices of one copy of a model exchange over a network."""
    return replica_devices > mean(cluster.direct_devices)


def replica_devices(machine: Machine) -> float:
    """Return the devices that work on one copy: all of a training, one replica of a service."""
    estimate = machine.reached.estimate
    if estimate is None or estimate.work.served is None:
        return mean(machine.cluster.devices)
    return mean(machine.cluster.devices) / max(1.0, machine.reached.replicas)


def _changes(machine: Machine, now: Machine, catalog: Catalog) -> Iterator[tuple[Degree, str]]:
    yield from _device_changes(
        catalog.accelerators.known(now.cluster.device.id), catalog.accelerators.known(machine.cluster.device.id)
    )
    if machine.provider != now.provider:
        yield "medium", f"another provider: {now.provider or 'own machine'} to {machine.provider}"
    elif not is_same_region(machine, now):
        yield "low", f"another region: {now.region} to {machine.region}"
    if spans_nodes(machine.cluster, replica_devices(machine)) and not spans_nodes(now.cluster, replica_devices(now)):
        yield "medium", "one copy of the model is spread over several nodes"
    served = machine.reached.estimate is not None and machine.reached.estimate.work.served is not None
    if served and machine.count > now.count and machine.reached.replicas > now.reached.replicas:
        yield "medium", f"{machine.count} instances share the requests of {now.count}"
    if machine.instance != now.instance:
        yield "low", f"another instance: {now.instance} to {machine.instance}"
    elif machine.cluster.devices != now.cluster.devices:
        yield "low", f"{mean(machine.cluster.devices):g} devices of the same kind in place of {now.reached.devices}"
    elif machine.reached.set:
        yield "low", "other settings on the same machine"


def _device_changes(before: Accelerator | None, after: Accelerator | None) -> Iterator[tuple[Degree, str]]:
    if before is None or after is None:
        if before is not after:
            yield "high", "CPUs instead of accelerators, or the other way round"
        return
    if (before.vendor, before.kind) != (after.vendor, after.kind):
        yield "high", f"another vendor: {before.vendor} to {after.vendor} ({after.name}), other kernels and libraries"
    elif before.generation != after.generation:
        yield "medium", f"another generation: {before.generation} to {after.generation}, kernels are rebuilt"
    if (before.host_link_gbs is None) != (after.host_link_gbs is None):
        yield "medium", f"a processor built in with the device ({after.name if after.host_link_gbs else before.name})"


BITS = 8.0
WEIGHTS_SHARDED = 3  # From this stage of ZeRO on every copy of the model holds a part of the weights


@equation(
    "hours = moved · 8 / (gbit · 1e9) / 3600",
    unit="h",
    source="bytes over bandwidth",
    part="move_hours.egress",
    moved=("bytes that are transferred", "B"),
    gbit="gigabits a second",
)
def transfer_hours(moved: Number, gbit: Number) -> Number:
    """Hours that data is under way."""
    return moved * BITS / (gbit * GIGA) / HOUR_SECONDS


def move_parts(
    question: MigrationQuestion, alternative: Alternative, machine: Machine, now: Machine, catalog: Catalog
) -> Iterator[MovePart]:
    """Yield what moving to a machine takes once, part by part; nothing where nothing moves."""
    if not is_same_region(machine, now):
        yield _transfer(_moved_bytes(question, now), machine, now, catalog)
    work = assumed(f"setup_hours_{alternative.complexity.level}")
    wage = assumed("usd_per_working_hour")
    yield MovePart(
        "set-up", work * wage, work, f"{work:g} working hours at ${wage:g}: {alternative.complexity.level} complexity"
    )
    rate = alternative.usd_per_hour_spot if alternative.is_spot else alternative.usd_per_hour
    check = assumed("validation_hours")
    usd_checked = None if rate is None else mean(month_usd(check, rate))
    yield MovePart("validation", usd_checked, check, f"{check:g} hours on the new machines to compare results")
    if question.kind == SERVED and machine.instance != now.instance:
        both = assumed("double_running_hours")
        usd_both = None if rate is None else mean(month_usd(both, rate))
        yield MovePart("double running", usd_both, both, f"{both:g} hours of old and new machines in parallel")


def _transfer(moved: float, machine: Machine, now: Machine, catalog: Catalog) -> MovePart:
    """Return what it takes to bring data from one place to the other; what leaves a machine of one's own is free."""
    hours = mean(transfer_hours(moved, assumed("transfer_gbit")))
    leaves = f"{format_bytes(moved)} of weights, states and data leave {now.provider or 'your own machine'}"
    if not now.provider:
        return MovePart("transfer", 0.0, hours, leaves)
    here, there = DataLocation(now.provider, now.region), DataLocation(machine.provider, machine.region)
    price = transfer_price(moved / GIGA, here, there, catalog)
    if price is None:
        return MovePart("transfer", None, hours, f"{leaves}; its egress price is not known")
    return MovePart("transfer", mean(price.usd), hours, f"{leaves} ({price.words})")


def _moved_bytes(question: MigrationQuestion, now: Machine) -> float:
    """Return the bytes that move along: weights of a service, states of a training, and the data that was given."""
    estimate = now.reached.estimate
    if estimate is None:
        return question.data_bytes
    reached = now.reached
    copies = max(1, reached.replicas)
    shards = {"weights": copies if reached.zero >= WEIGHTS_SHARDED else 1, "optimizer": copies if reached.zero else 1}
    kept = {"weights": assumed("weight_copies"), "optimizer": assumed("checkpoints_kept")}
    one = mean(now.cluster.devices) / copies
    return question.data_bytes + sum(
        mean(estimate.memory.parts.get(name, 0.0)) * one * shards[name] * kept[name] for name in kept
    )
