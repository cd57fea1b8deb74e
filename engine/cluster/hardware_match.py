"""The hardware a plan names: an accelerator, a processor or an instance, as measured, and unlike ones combined."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from capacity_tui.engine.catalog import Accelerator, Catalog, Fabric, Instance, Processor
from capacity_tui.engine.catalog.rows import NODE, ClusterRow, LevelRow
from capacity_tui.engine.cluster.catalogue_devices import (
    UNKNOWN_SOURCE,
    accelerator_device,
    part_of_device,
    processor_device,
    row_provenance,
    shared,
)
from capacity_tui.engine.cluster.cluster import FIGURES, Device, Efficiency, Price
from capacity_tui.engine.cluster.levels import (
    UNKNOWN_HOST,
    Network,
    NodeHost,
    instance_host,
    instance_network,
    machine_network,
    usual_network,
)
from capacity_tui.engine.errors import CatalogError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import MeasuredEfficiency, MeasuredFacts, Provenance
from capacity_tui.engine.plan import DeviceGroup, HardwareSection, Mixed
from capacity_tui.engine.record import dataclass, record_of_data
from capacity_tui.engine.units import format_bytes, format_flops

NO_PRICE = Price()


@dataclass(frozen=True, slots=True)
class HardwareMatch:
    """A device with what its row says about its surroundings."""

    device: Device
    devices: int  # how many there are where a plan does not say
    per_node: int  # devices that share a node's fast link
    network: Network
    unit: str = NODE  # what holds those: node, or a rack or slice that is one
    levels: tuple[LevelRow, ...] = ()  # what usually stands around them, from the innermost out
    host_memory_bytes: float | None = None  # host memory for each device; None where unknown
    # its id where the plan names it and not an instance; its price is then that of instances
    accelerator: str | None = None
    instance: Instance | None = None
    assumed: tuple[str, ...] = ()  # what stands in for unknown figures, one line each
    host_memory_known: Provenance = UNKNOWN_SOURCE
    host: NodeHost = UNKNOWN_HOST
    is_joined: bool = True  # whether these devices reach others at all; slices of a device do not
    is_one_machine: bool = False  # whether all of them are in one machine
    parts: tuple[HardwareMatch, ...] = ()  # the groups of unlike devices that these stand for; ``mix`` names them
    mix: str = ""
    mix_reason: str = ""  # why these of the unlike devices are used
    price: Price = NO_PRICE  # an hour of one device by its row; without one the prices of its instances count


def match_hardware(name: str, catalog: Catalog, field: str = Key.HARDWARE_NAME) -> HardwareMatch:
    """Return what a field of a plan names in the catalogue.

    Raises:
        PlanError: nothing has that name.
        CatalogError: its peaks are not published.
    """
    try:
        row = catalog.find_hardware(name)
    except CatalogError as error:
        raise PlanError(error.title, error.detail, error.hint, Place(field=field)) from error
    if isinstance(row, Processor):
        return HardwareMatch(processor_device(row, catalog), 1, 1, machine_network(catalog), price=_row_price(row))
    if isinstance(row, Instance):
        return _instance(row, catalog)
    return _accelerator(row, catalog)


def _accelerator(row: Accelerator, catalog: Catalog) -> HardwareMatch:
    fabric: Fabric = catalog.fabric_of(row)
    network = usual_network(fabric, catalog)
    host = row.host_memory_gib or fabric.host_memory_gib
    usual_host = UNKNOWN_SOURCE if host is None else Provenance("assumed", f"the usual host memory of {fabric.name}")
    return HardwareMatch(
        device=accelerator_device(row, catalog),
        devices=1,
        per_node=fabric.node_devices,
        network=network,
        unit=fabric.unit,
        levels=fabric.levels,
        host_memory_bytes=None if host is None else host * 2**30,
        host_memory_known=usual_host if row.host_memory_gib is None else row_provenance(row),
        accelerator=row.id,
        price=_row_price(row),
    )


def _row_price(row: Accelerator | Processor) -> Price:
    return NO_PRICE if row.usd_per_hour is None else Price(row.usd_per_hour, f"row {row.id} of the catalogue")


def _instance(row: Instance, catalog: Catalog) -> HardwareMatch:
    provenance = Provenance("catalogue", f"instance {row.id}")
    return HardwareMatch(
        device=_instance_device(row, provenance, catalog),
        devices=row.sold_devices,
        per_node=row.node_devices or row.sold_devices,
        network=instance_network(row, catalog),
        host_memory_bytes=row.memory_gb * 2**30 / row.sold_devices if row.memory_gb else None,
        instance=row,
        host_memory_known=provenance,
        host=instance_host(row),
    )


def _instance_device(row: Instance, provenance: Provenance, catalog: Catalog) -> Device:
    """Return one device of an instance: an accelerator or a part of one, or all of its processors together."""
    if row.accelerator is None:
        socket = catalog.processors.find(row.processor or "")
        whole = processor_device(socket, catalog)
        share = float(row.cores or 0) / float(whole.units)
        memory = None if row.memory_gb is None else row.memory_gb * 2**30
        cores = replace(shared(whole, share, share), name=f"{row.cores_words} of {whole.name}", memory_bytes=memory)
        return cores.with_provenance(provenance, "memory_bytes")
    whole = accelerator_device(catalog.accelerators.find(row.accelerator), catalog)
    if row.in_node_gbs is not None:
        whole = replace(whole, link_bandwidth=row.in_node_gbs * 1e9).with_provenance(provenance, "link_bandwidth")
    return part_of_device(whole, row.device_share)


_HOST_MEMORY = "host_memory_gib"


def with_named_cluster(section: HardwareSection, catalog: Catalog) -> HardwareSection:
    """Return the hardware of a plan with what its name stands for, where that is a cluster; values it states stay."""
    row = catalog.clusters.known(section.name)
    if row is None:
        return section
    per_node = max(group.per_node for group in row.groups)
    ports = row.ports_per_node if section.interconnect is None else None
    spec = {} if row.host_memory_gib is None else {_HOST_MEMORY: row.host_memory_gib / per_node}
    return section.model_copy(
        update={
            **_devices(section, row),
            "interconnect": section.interconnect or row.interconnect,
            "ports_per_node": section.ports_per_node or ports,
            "levels": section.levels or row.levels,
            "spec": {**spec, **section.spec},
        }
    )


def _devices(section: HardwareSection, row: ClusterRow) -> dict[str, object]:
    """Return the fields that say which devices: of alike ones the plan may take fewer."""
    first = row.groups[0]
    if section.groups:
        return {}
    if len(row.groups) > 1:
        groups = (DeviceGroup(name=it.name, devices=it.devices, per_node=it.per_node) for it in row.groups)
        return {"groups": tuple(groups)}
    devices = section.devices or first.devices
    return {"name": first.name, "devices": devices, "per_node": section.per_node or min(first.per_node, devices)}


def combined(groups: Sequence[HardwareMatch], mixed: Mixed) -> HardwareMatch:
    """Return what a plan runs on of several groups of equal devices, with the reason where they are not all alike.

    Work is shared out evenly, so that every device waits for the slowest one: together they give as many times its
    arithmetic as there are devices. One group alone gives its own. ``best`` takes whichever is more.
    """
    if len(groups) == 1:
        return groups[0]
    strongest = max(groups, key=_arithmetic)
    joined = [group for group in groups if group.is_joined]
    together = _all_groups(joined) if len(joined) > 1 else None
    if together is None or (mixed != "all" and (mixed == "one" or _arithmetic(together) <= _arithmetic(strongest))):
        return _single_group(strongest, groups, together)
    return replace(
        together, mix=f"{_listed(joined)} at the pace of the slowest", mix_reason=_reason_for_all(together, strongest)
    )


def _single_group(
    chosen: HardwareMatch, groups: Sequence[HardwareMatch], together: HardwareMatch | None
) -> HardwareMatch:
    others = _listed(group for group in groups if group is not chosen)
    if together is None:
        reason = f"{others} left out: not joined to the others"
    else:
        reason = (
            f"{others} left out: all {together.devices} together would work at the pace of the slowest, "
            f"{_speed(together)} in all, {_count(chosen)} alone {_speed(chosen)}"
        )
    return replace(chosen, mix_reason=reason)


def _reason_for_all(together: HardwareMatch, strongest: HardwareMatch) -> str:
    memory = together.device.memory_bytes
    least = "" if memory is None else f", and with the least memory of them, {format_bytes(float(memory))}"
    return (
        f"all {together.devices} devices share the work evenly at the pace of the slowest{least}: "
        f"{_speed(together)} in all, {_count(strongest)} alone {_speed(strongest)}"
    )


def _all_groups(groups: Sequence[HardwareMatch]) -> HardwareMatch:
    """Return all groups as equal devices, each as slow, and each node as small, as the least of them."""
    slowest = min(groups, key=lambda group: _arithmetic(group) / group.devices)
    count = sum(group.devices for group in groups)
    hosts = [group.host_memory_bytes for group in groups]
    nodes = {group.per_node for group in groups}
    return replace(
        slowest,
        device=_least([group.device for group in groups], slowest.device, [group.devices for group in groups]),
        devices=count,
        per_node=count if slowest.is_one_machine else min(nodes),
        network=min((group.network for group in groups), key=lambda network: network.device_bandwidth(min(nodes))),
        host_memory_bytes=None if None in hosts else min(host for host in hosts if host is not None),
        accelerator=None,
        instance=None,
        parts=tuple(groups),
        assumed=tuple(dict.fromkeys(line for group in groups for line in group.assumed)),
    )


def _least(devices: Sequence[Device], slowest: Device, counts: Sequence[int]) -> Device:
    """Return a device that has of every figure the least among some; its power is their mean."""
    # A type that only some multiply in runs in another on the rest.
    kinds = [kind for kind in slowest.peaks if all(kind in device.peaks for device in devices)]
    peaks = {kind: min(device.peaks[kind] * float(device.clock) for device in devices) for kind in kinds}
    known: dict[str, Provenance] = dict(slowest.known)
    least: dict[str, float] = {}
    for name in FIGURES.keys() & slowest.known.keys() - {"tdp_watts"}:
        rated = [device for device in devices if getattr(device, name) is not None]
        if rated:
            device = min(rated, key=lambda device: float(getattr(device, name)))
            least[name], known[name] = float(getattr(device, name)), device.known[name]
    for kind in kinds:
        device = min(devices, key=lambda device: device.peaks[kind] * float(device.clock))
        known[f"peaks.{kind}"] = device.known[f"peaks.{kind}"]
    watts = [device.tdp_watts for device in devices]
    rated_watts = [float(watt) * count for watt, count in zip(watts, counts, strict=True) if watt is not None]
    return replace(
        slowest,
        name=" and ".join(dict.fromkeys(device.name for device in devices)),
        peaks=peaks,
        clock=1.0,
        tdp_watts=sum(rated_watts) / sum(counts) if len(rated_watts) == len(watts) else None,
        known={name: origin for name, origin in known.items() if not name.startswith("peaks.") or name[6:] in peaks},
        **least,  # type: ignore[arg-type]  # figures of a device by their names
    )


def _arithmetic(match: HardwareMatch) -> float:
    device = match.device
    return device.peaks[device.half_precision] * float(device.clock) * match.devices


def _speed(match: HardwareMatch) -> str:
    return f"{format_flops(_arithmetic(match), per_second=True)} {match.device.half_precision}"


def _count(match: HardwareMatch) -> str:
    return f"{match.devices} x {match.device.id}"


def _listed(groups: Iterable[HardwareMatch]) -> str:
    return " + ".join(map(_count, groups))


_OTHERS = frozenset({"gemm", "source", "curves", "errors", "runs", "plain"})
_CONSTANTS = frozenset(part.name for part in fields(Efficiency)) - _OTHERS


def device_key(device: Device) -> str:
    """Return the name a device's measurements go by: its catalogue id, or CPU model and usable cores."""
    if not device.is_processor:
        return device.id
    words = re.sub(r"[^a-z0-9]+", "-", device.name.lower()).strip("-")
    return f"cpu-{words}-{device.units:g}"


def with_measured(device: Device, measurements: tuple[MeasuredEfficiency, ...], where: str = "this machine") -> Device:
    """Return a device with what was measured on it, if anything was."""
    key = device_key(device)
    match = next((measured for measured in measurements if measured.device == key), None)
    return device if match is None else replace(device, efficiency=_with_constants(device.efficiency, match, where))


def _with_constants(efficiency: Efficiency, measured: MeasuredEfficiency, where: str) -> Efficiency:
    """Return what a device reaches, with what was measured in place of the catalogue's constants."""
    numbers = {name: value for name, value in measured.constants.items() if name in _CONSTANTS}
    changed = replace(efficiency, **numbers)  # type: ignore[arg-type]  # only names of numeric fields
    source = f"measured on {where}, {measured.date}"
    return replace(
        changed,
        gemm={**efficiency.gemm, **measured.gemm},
        source=source,
        curves=measured.curves,
        errors=measured.errors,
        runs=measured.runs,
    )


def with_benchmarks(device: Device, benchmarks: MeasuredFacts | None) -> Device:
    """Return a processor with what was measured on it: its memory bandwidth, and the shares of its peaks it reaches.

    Peaks stay those of the datasheet or of the clock; what is measured is the share of them that is reached. All of a
    measured bandwidth is reached, and by elementwise work as much of it as before.
    """
    if benchmarks is None:
        return device
    efficiency = device.efficiency
    rates = {"fp32": benchmarks.fp32_flops, "fp64": benchmarks.fp64_flops}
    measured = {name: fact for name, fact in rates.items() if fact.value and name in device.peaks}
    shares = {name: (fact.value or 0.0) / device.peaks[name] for name, fact in measured.items()}
    bandwidth = benchmarks.memory_bandwidth
    if bandwidth.value:
        device = device.with_bandwidth(bandwidth.value, bandwidth.provenance)
        efficiency = replace(efficiency, stream=1.0, elementwise=efficiency.elementwise / efficiency.stream)
    sources = [fact.source for fact in (*measured.values(), bandwidth) if fact.value]
    if not sources:
        return device
    gemm = {**efficiency.gemm, **shares}
    return replace(device, efficiency=replace(efficiency, gemm=gemm, source=f"measured here: {'; '.join(sources)}"))


def with_cluster_measurements(match: HardwareMatch, name: str, catalog: Catalog) -> HardwareMatch:
    """Return hardware with what was measured on the cluster of a name, where that is one and something was."""
    cluster = catalog.clusters.find_id(name)
    rows = [row for row in catalog.measured_devices.values() if row.cluster == cluster]
    if cluster is None or not rows:
        return match
    data = ({**row.model_dump(), "date": str(row.checked)} for row in rows)
    measured = tuple(record_of_data(MeasuredEfficiency, constants) for constants in data)
    return replace(match, device=with_measured(match.device, measured, cluster))
