"""From a plan's hardware section, or a detected machine, to the cluster that formulas read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Accelerator, Catalog, Instance, Link, Processor
from capacity_tui.engine.catalog.names import nearest
from capacity_tui.engine.catalog.rows import MIB
from capacity_tui.engine.errors import CatalogError, HardwareError, Place, PlanError
from capacity_tui.engine.hardware.cluster import Cluster, Device, Price
from capacity_tui.engine.hardware.devices import (
    CLUSTER_FIGURES,
    PEAKS,
    SPEC_FIGURES,
    Found,
    accelerator_device,
    power_limited,
    processor_device,
)
from capacity_tui.engine.hardware.facts import Provenance
from capacity_tui.engine.units import parse_count
from capacity_tui.engine.workload.plan import HardwareSection, PricingSection

if TYPE_CHECKING:
    from capacity_tui.engine.hardware.machine import Machine


def resolve_cluster(
    section: HardwareSection, pricing: PricingSection, catalog: Catalog, machine: Machine | None = None
) -> Cluster:
    """Return the cluster a plan runs on.

    Args:
        section: the plan's hardware.
        pricing: the plan's prices, which override the catalogue's.
        catalog: rows of accelerators, processors, instances and links.
        machine: the detected machine, for ``name: detected``.

    Raises:
        CatalogError: no hardware or link has that name.
        HardwareError: nothing was detected that could run anything.
        PlanError: an unknown or unreadable override.
    """
    spec = _overrides(section.spec)
    found = _find(section, catalog, machine)
    device = _overridden(found.device, spec)
    devices = section.devices or found.devices
    per_node = min(section.per_node or found.per_node, devices)
    assumed = [*found.assumed, *device.assumptions()]
    link = section.interconnect or found.interconnect
    try:
        row = catalog.links.find(link)
    except CatalogError as error:
        raise PlanError(error.title, error.detail, error.hint, Place(field="hardware.interconnect")) from error
    if devices > 1 and section.per_node is None and section.name != "detected":
        assumed.append(f"{per_node} devices in a node")
    if devices > per_node and section.interconnect is None:
        assumed.append(f"network between nodes: {row.name}")
    ports = section.ports_per_node or per_node
    share = {"node": 1.0 / per_node, "port": ports / per_node}.get(row.per, 1.0)
    network = spec.get("node_gbs", row.per_direction_gbs * share) * 1e9
    latency = (row.latency_us or 5.0) * 1e-6
    host = spec["host_memory_gib"] * 2**30 if "host_memory_gib" in spec else found.host_memory_bytes
    return Cluster(
        device=device,
        devices=float(devices),
        per_node=float(per_node),
        node_bandwidth=network,
        node_hop_seconds=max(latency, 5e-6),
        host_memory_bytes=host,
        price=_price(found.price, pricing, devices, found.devices),
        assumed=tuple(assumed),
        known={
            "node_bandwidth": _given("node_gbs") if "node_gbs" in spec else _network_known(section, row),
            "host_memory_bytes": _given("host_memory_gib") if "host_memory_gib" in spec else found.host_memory_known,
        },
    )


def _network_known(section: HardwareSection, row: Link) -> Provenance:
    """Return how the network between nodes is known: named in the plan, or the one usually built around the part."""
    if section.interconnect is not None:
        return Provenance("catalogue", f"link {row.id}, named in hardware.interconnect")
    return Provenance("assumed", f"the usual network: {row.name}")


def _find(section: HardwareSection, catalog: Catalog, machine: Machine | None) -> Found:
    if section.name == "detected":
        if machine is None:
            raise HardwareError("no machine was detected", hint="name the hardware in hardware.name")
        from capacity_tui.engine.hardware.own_machine import detected  # noqa: PLC0415 - other plans need none of it

        return detected(machine, catalog)
    try:
        row = catalog.find_hardware(section.name)
    except CatalogError as error:
        raise PlanError(error.title, error.detail, error.hint, Place(field="hardware.name")) from error
    if isinstance(row, Processor):
        return Found(processor_device(row, catalog), 1, 1, None, Price(), "eth-10")
    if isinstance(row, Instance):
        return _instance(row, catalog)
    device = accelerator_device(row, catalog)
    price = _cheapest(row.id, catalog)
    return Found(device, 1, _node_size(row), None, price, _network(row))


def _instance(row: Instance, catalog: Catalog) -> Found:
    accelerator = catalog.accelerators.find(row.accelerator)
    device = accelerator_device(accelerator, catalog)
    count = max(1, round(row.accelerator_count))
    memory = row.memory_gb * 2**30 / count if row.memory_gb else None
    price = Price(row.on_demand_usd_per_hour, row.spot_usd_per_hour, _price_source(row))
    known = Provenance("catalogue", f"instance {row.id}")
    return Found(device, count, count, memory, price, _network(accelerator), host_memory_known=known)


def _node_size(row: Accelerator) -> int:
    """Devices that share the fast link: a rack for NVL72 parts, a slice for TPUs, else eight."""
    if row.generation and row.generation.endswith("(Grace)"):
        return 72 if row.id.startswith("gb") else 1
    if row.vendor == "Google":
        return 256
    return 16 if row.vendor == "AWS" else 8


def _network(row: Accelerator) -> str:
    """The network usually built around a part: named as assumed wherever it is used."""
    generation = row.generation or ""
    if row.vendor == "Google":
        return row.link or "ici-v4"
    if row.vendor == "AWS":
        return "efa-v2"
    if row.link_gbs is None or row.link_gbs < 140:
        return "eth-25"
    if "Ultra" in generation or generation == "Rubin":
        return "ib-xdr"
    if generation.startswith(("Hopper", "Blackwell", "CDNA 3", "CDNA 4", "Gaudi")):
        return "ib-ndr"
    return "ib-hdr" if generation.startswith("Ampere") else "ib-edr"


def _cheapest(accelerator: str, catalog: Catalog) -> Price:
    """The cheapest on-demand price of one device among the instances of the catalogue."""
    row = catalog.cheapest_instance(accelerator)
    if row is None:
        return Price()
    spot = row.spot_usd_per_hour / row.accelerator_count if row.spot_usd_per_hour else None
    return Price(row.usd_per_device_hour, spot, "cheapest on demand: " + _price_source(row))


def _price_source(row: Instance) -> str:
    return ", ".join(part for part in (row.provider, row.name, row.region, row.price_date) if part)


def _price(price: Price, pricing: PricingSection, devices: int, priced_devices: int) -> Price:
    if pricing.usd_per_hour is not None:
        return Price(pricing.usd_per_hour, None, "given in the plan")
    scale = devices / priced_devices
    on_demand, spot = price.usd_per_hour, price.spot_usd_per_hour
    return Price(None if on_demand is None else on_demand * scale, None if spot is None else spot * scale, price.source)


def _overrides(spec: Mapping[str, object]) -> dict[str, float]:
    values: dict[str, float] = {}
    for key, value in spec.items():
        place = Place(field=f"hardware.spec.{key}")
        if key not in SPEC_FIGURES:
            near = nearest(key, SPEC_FIGURES) or SPEC_FIGURES
            raise PlanError("unknown key", key, f"known: {', '.join(near)}", place)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise PlanError("not a number", repr(value), "give a number in the unit of the key", place)
        number = parse_count(value, place=place) if isinstance(value, str) else value
        if not 0 < number < 1e12:
            raise PlanError("out of range", repr(value), "give a number above 0", place)
        values[key] = float(number)
    return values


def _overridden(device: Device, spec: Mapping[str, float]) -> Device:
    peaks = dict(device.peaks)
    for name in PEAKS:
        key = "int8_tops" if name == "int8" else f"{name}_tflops"
        if key in spec:
            peaks[name] = spec[key] * 1e12
    device = replace(
        device,
        peaks=peaks,
        memory_bytes=spec["memory_mib"] * MIB if "memory_mib" in spec else device.memory_bytes,
        bandwidth=spec["bandwidth_gbs"] * 1e9 if "bandwidth_gbs" in spec else device.bandwidth,
        link_bandwidth=spec["link_gbs"] * 1e9 if "link_gbs" in spec else device.link_bandwidth,
        host_bandwidth=spec["host_gbs"] * 1e9 if "host_gbs" in spec else device.host_bandwidth,
        units=spec.get("units", device.units),
    )
    device = power_limited(device, spec["tdp_w"]) if "tdp_w" in spec else device
    for key in spec:
        if SPEC_FIGURES[key] not in CLUSTER_FIGURES:
            device = device.known_by(_given(key), SPEC_FIGURES[key])
    return device


def _given(key: str) -> Provenance:
    return Provenance("given", f"hardware.spec.{key}")
