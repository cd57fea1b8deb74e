"""The hardware a plan names: an accelerator, a processor or an instance."""

from __future__ import annotations

from dataclasses import dataclass, replace

from capacity_tui.engine.catalog import Accelerator, Catalog, Fabric, Instance, Processor
from capacity_tui.engine.catalog.rows import NODE, ClusterGroup, ClusterRow, LevelRow
from capacity_tui.engine.cluster.catalogue_devices import (
    UNKNOWN_SOURCE,
    accelerator_device,
    part_of_device,
    processor_device,
    row_provenance,
    shared,
)
from capacity_tui.engine.cluster.cluster import Device, Price
from capacity_tui.engine.cluster.levels import Network, fabric_of, instance_network, machine_network, usual_network
from capacity_tui.engine.cluster.node_host import UNKNOWN_HOST, NodeHost, instance_host
from capacity_tui.engine.errors import CatalogError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Provenance
from capacity_tui.engine.plan import DeviceGroup, HardwareSection

NO_PRICE = Price()


@dataclass(frozen=True, slots=True)
class HardwareMatch:
    """A device with what its row says about its surroundings.

    Attributes:
        device: one device.
        devices: how many there are where a plan does not say.
        per_node: devices that share a node's fast link.
        unit: what holds those: node, or a rack or slice that is one.
        levels: what usually stands around them.
        network: what joins nodes.
        host_memory_bytes: host memory for each device; None where unknown.
        accelerator: its id where it was named itself and so has no price of its own.
        instance: the cloud instance it belongs to.
        assumed: what was not found.
        host_memory_known: how the host memory came about.
        host: what else stands beside the devices of a node.
        is_joined: whether these devices reach others at all; slices of a device do not.
        is_one_machine: whether all of them sit in one machine.
        parts: the groups of unlike devices that these stand for.
        mix: what those are, in words.
        mix_reason: why these are used of unlike devices.
        price: what an hour of one device costs by its own row; without one its instances are asked.
    """

    device: Device
    devices: int
    per_node: int
    network: Network
    unit: str = NODE
    levels: tuple[LevelRow, ...] = ()
    host_memory_bytes: float | None = None
    accelerator: str | None = None
    instance: Instance | None = None
    assumed: tuple[str, ...] = ()
    host_memory_known: Provenance = UNKNOWN_SOURCE
    host: NodeHost = UNKNOWN_HOST
    is_joined: bool = True
    is_one_machine: bool = False
    parts: tuple[HardwareMatch, ...] = ()
    mix: str = ""
    mix_reason: str = ""
    price: Price = NO_PRICE


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
    fabric: Fabric = fabric_of(row, catalog)
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
        cores = replace(shared(whole, share, share), name=f"{row.cores} cores of {whole.name}", memory_bytes=memory)
        return cores.with_provenance(provenance, "memory_bytes")
    whole = accelerator_device(catalog.accelerators.find(row.accelerator), catalog)
    if row.in_node_gbs is not None:
        whole = replace(whole, link_bandwidth=row.in_node_gbs * 1e9).with_provenance(provenance, "link_bandwidth")
    return part_of_device(whole, row.device_share)


_HOST_MEMORY = "host_memory_gib"


def with_named_cluster(section: HardwareSection, catalog: Catalog) -> HardwareSection:
    """Return the hardware of a plan with what its name stands for, where that is a cluster; any other as it is.

    Args:
        section: the plan's hardware, whose own values stay.
        catalog: rows of clusters.
    """
    row_id = catalog.clusters.find_id(section.name)
    if row_id is None:
        return section
    row = catalog.clusters[row_id]
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
        return {"groups": tuple(map(_group, row.groups))}
    devices = section.devices or first.devices
    return {"name": first.name, "devices": devices, "per_node": section.per_node or min(first.per_node, devices)}


def _group(group: ClusterGroup) -> DeviceGroup:
    return DeviceGroup(name=group.name, devices=group.devices, per_node=group.per_node)
