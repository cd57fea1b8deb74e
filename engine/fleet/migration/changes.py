"""What has to change for a job to run on other machines, and how hard that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from capacity_tui.engine.fleet.migration.alternative import Degree, Level
from capacity_tui.engine.numeric import mean

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Accelerator, Catalog
    from capacity_tui.engine.cluster import Cluster
    from capacity_tui.engine.fleet.migration.priced import Machine

DEGREES: tuple[Degree, ...] = ("low", "medium", "high")


def level_of(reasons: Iterable[tuple[Degree, str]]) -> Level:
    """Return the level that reasons of several degrees make together: the highest of them, the weightiest first."""
    ordered = sorted(reasons, key=lambda alternative: -DEGREES.index(alternative[0]))
    return Level(ordered[0][0], tuple(words for _, words in ordered)) if ordered else Level()


def complexity(machine: Machine, now: Machine, catalog: Catalog) -> Level:
    """Return how hard it is to move, with what has to change."""
    return level_of(_changes(machine, now, catalog))


def is_same_place(machine: Machine, now: Machine) -> bool:
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
    yield from _device_changes(_row(now, catalog), _row(machine, catalog))
    if machine.provider != now.provider:
        yield "medium", f"another provider: {now.provider or 'own machine'} to {machine.provider}"
    elif not is_same_place(machine, now):
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
            yield "high", "processors in place of accelerators, or the other way round"
        return
    if (before.vendor, before.kind) != (after.vendor, after.kind):
        yield "high", f"another vendor: {before.vendor} to {after.vendor} ({after.name}), other kernels and libraries"
    elif before.generation != after.generation:
        yield "medium", f"another generation: {before.generation} to {after.generation}, kernels are built anew"
    if (before.host_link_gbs is None) != (after.host_link_gbs is None):
        yield "medium", f"a processor built in with the device ({after.name if after.host_link_gbs else before.name})"


def _row(machine: Machine, catalog: Catalog) -> Accelerator | None:
    match = catalog.accelerators.find_id(machine.cluster.device.id)
    return None if match is None else catalog.accelerators[match]
