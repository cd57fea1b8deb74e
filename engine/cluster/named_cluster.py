"""A cluster of the catalogue as the hardware of a plan: what the plan leaves open is as the cluster is."""

from __future__ import annotations

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import ClusterGroup, ClusterRow
from capacity_tui.engine.plan import DeviceGroup, HardwareSection

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
