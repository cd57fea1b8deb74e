"""From a plan's hardware section, or a detected machine, to the cluster that formulas read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import Catalog, nearest
from capacity_tui.engine.catalog.rows import MIB, NODE
from capacity_tui.engine.cluster.catalogue_devices import (
    CLUSTER_FIGURES,
    SPEC_FIGURES,
    UNKNOWN_SOURCE,
    part_words,
    power_limited,
    sharing_memory,
    with_host_processor,
)
from capacity_tui.engine.cluster.cluster import Assumed, Cluster, Device, Failures, Price
from capacity_tui.engine.cluster.hardware_match import (
    HardwareMatch,
    combined,
    match_hardware,
    with_cluster_measurements,
    with_named_cluster,
)
from capacity_tui.engine.cluster.levels import Level, cluster_levels, named_network, processor_host, slower_outside
from capacity_tui.engine.cluster.pricing import (
    chosen_price,
    device_price,
    instance_price,
    instances_for,
    price_assumptions,
    total_price,
)
from capacity_tui.engine.errors import HardwareError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Machine, Provenance
from capacity_tui.engine.plan import DETECTED, DeviceGroup, HardwareSection, PricingSection
from capacity_tui.engine.units import count_in_words, parse_count

SMALLEST_FIGURE, LARGEST_FIGURE = 1e-6, 1e12
"""What a figure of hardware may be in the unit of its key; beyond that times leave the range of numbers."""


PAIR = 2  # Devices that a bridge joins
OWN_DEVICE = "own device"  # What a device is called that is given by its figures


def resolve_cluster(
    section: HardwareSection, pricing: PricingSection, catalog: Catalog, machine: Machine | None = None
) -> Cluster:
    """Return the cluster a plan runs on.

    Args:
        pricing: the plan's prices, which override the catalogue's.

    Raises:
        CatalogError: no hardware or link has that name.
        HardwareError: nothing was detected that could run anything.
        PlanError: an unknown or unreadable override.
    """
    name = section.name
    section = with_named_cluster(section, catalog)
    spec = _overrides(section.spec)
    match = _match(section, name, catalog, machine)
    devices = section.devices or match.devices
    unit = section.per_node or match.per_node
    per_node = min(unit, devices)
    if match.device.is_processor and "host_memory_gib" in spec:
        spec = {"memory_mib": spec["host_memory_gib"] * 2**30 / MIB / per_node} | spec  # a processor has the host's
    row = catalog.accelerators.get(match.device.id)
    if "usable_memory_mib" in spec and row is not None:
        if not row.unified_memory:
            place = Place(field=f"{Key.HARDWARE_SPEC}.usable_memory_mib")
            raise PlanError("shares no memory with its host", row.id, "leave it out, or give memory_mib", place)
        spec = {"memory_mib": row.memory_mib or math.inf} | spec
    device = _overridden(match.device, spec)
    if "memory_mib" in spec and "usable_memory_mib" not in spec and section.name != DETECTED:
        device = sharing_memory(device, row)
    if _is_another_device(spec):
        device = replace(device, name=f"{OWN_DEVICE} like {device.name}")
    processor = None if section.host is None or device.is_processor else catalog.processors.find(section.host)
    device = device if processor is None else with_host_processor(device, processor, catalog)
    if "link_gbs" not in spec and per_node > PAIR:
        device = replace(device, link_bandwidth=np.minimum(device.link_bandwidth, device.bus_bandwidth))
    network = match.network
    if section.interconnect is not None:
        network = named_network(section.interconnect, section.ports_per_node, catalog, Key.HARDWARE_INTERCONNECT)
    elif section.ports_per_node is not None:
        network = replace(network, ports_per_node=section.ports_per_node)
    host = spec["host_memory_gib"] * 2**30 if "host_memory_gib" in spec else match.host_memory_bytes
    nodes = math.ceil(devices / per_node)
    # Devices of one instance share its ports, also where a whole rack shares the fast link.
    sharing = per_node if match.instance is None else min(per_node, match.instance.sold_devices)
    if "node_gbs" in spec:
        network = replace(network, node_bandwidth=spec["node_gbs"] * 1e9 * sharing, known=_given("node_gbs"))
    inner = Level(
        name=match.unit,
        devices=float(unit),
        bandwidth=device.link_bandwidth,
        hop_seconds=device.efficiency.collective_hop_seconds,
        link="the devices' own",
        known=device.known.get("link_bandwidth", UNKNOWN_SOURCE),
        is_direct=True,
    )
    levels = cluster_levels(
        inner,
        section.levels or match.levels,
        network,
        devices,
        sharing,
        lambda name, field: named_network(name, section.ports_per_node, catalog, field),
    )
    sold = (
        Price() if _is_another_device(spec) else _known_price(match, devices, section.per_node, nodes, pricing, catalog)
    )
    price = chosen_price(sold, pricing, nodes, catalog)
    by_device = match.instance is None
    return Cluster(
        device=device,
        devices=float(devices),
        levels=levels,
        failures=_failures(catalog),
        host_memory_bytes=host,
        price=price,
        part=_part(match),
        rented=_rented(match, devices, section.per_node),
        mix=match.mix if devices == match.devices else "",
        mix_reason=match.mix_reason,
        assumed=(
            *match.assumed,
            *([match.mix_reason] if match.mix_reason else []),
            *device.assumptions(),
            *_assumed(section, match, devices, levels),
            *price_assumptions(price, pricing, by_device),
        ),
        host_memory_known=_given("host_memory_gib") if "host_memory_gib" in spec else match.host_memory_known,
        host=match.host if processor is None else processor_host(processor, per_node),
    )


def _failures(catalog: Catalog) -> Failures:
    rows = catalog.assumptions

    def known(name: str) -> Assumed:
        row = rows[name]
        return Assumed(row.value, row.low or row.value, row.high or row.value)

    return Failures(
        device_hours=known("device-hours-between-failures"),
        restart_seconds=known("restart-after-failure"),
        other_share=known("other-stops"),
        checkpoint_bandwidth=rows["checkpoint-bandwidth"].value * 1e9,
    )


def _match(section: HardwareSection, name: str, catalog: Catalog, machine: Machine | None) -> HardwareMatch:
    """Return what a plan's hardware is, which the plan itself calls by a name that may be that of a cluster."""
    if section.groups:
        groups = [_group(row, number, catalog) for number, row in enumerate(section.groups)]
        return combined([with_cluster_measurements(group, name, catalog) for group in groups], section.mixed)
    if section.name == DETECTED:
        return _detected(section, machine, catalog)
    return with_cluster_measurements(match_hardware(section.name, catalog), name, catalog)


def _group(row: DeviceGroup, number: int, catalog: Catalog) -> HardwareMatch:
    """Return a group of equal devices in equal nodes, as a plan lists it."""
    match = match_hardware(row.name, catalog, f"{Key.HARDWARE_GROUPS}.{number}.name")
    return replace(match, devices=row.devices, per_node=min(row.per_node or match.per_node, row.devices))


def _detected(section: HardwareSection, machine: Machine | None, catalog: Catalog) -> HardwareMatch:
    if machine is None:
        raise HardwareError("no machine was detected", hint="name the hardware in hardware.name")
    from capacity_tui.engine.cluster.detected_machine import cluster_of_machine  # noqa: PLC0415 - other plans need none of it

    return cluster_of_machine(machine, catalog, section.mixed)


def _assumed(section: HardwareSection, match: HardwareMatch, devices: int, levels: tuple[Level, ...]) -> Iterator[str]:
    """Yield what the plan does not say about nodes and the network between them."""
    if section.devices is None and match.unit != NODE and match.instance is None:
        yield f"one device of a {match.unit}: hardware.devices says how many"
    innermost, networks = levels[0], [level for level in levels if not level.is_direct]
    if devices > 1 and section.per_node is None and section.name != "detected" and match.instance is None:
        yield f"{count_in_words(float(innermost.devices))} in a {innermost.name}"
    if devices > innermost.devices and networks[0].known.origin == "assumed":
        yield f"network between {innermost.name}s: {networks[0].link}"
    yield from slower_outside(levels)
    if match.instance is not None:
        idle = _instances(match, devices, section.per_node) * match.instance.sold_devices - devices
        if idle:
            yield f"{_rented(match, devices, section.per_node)} rented whole, {idle} of its devices idle"


def _instances(match: HardwareMatch, devices: int, per_node: int | None) -> int:
    return 0 if match.instance is None else instances_for(match.instance, devices, per_node)


def _rented(match: HardwareMatch, devices: int, per_node: int | None) -> str:
    return "" if match.instance is None else f"{_instances(match, devices, per_node)} x {match.instance.id}"


def _part(match: HardwareMatch) -> str:
    """Return what part of the device each one is, in front of its name."""
    row = match.instance
    if row is None:
        return ""
    return part_words(row.device_share) if row.accelerator is not None else f"{row.cores_words} of "


def _known_price(
    match: HardwareMatch, devices: int, per_node: int | None, nodes: int, pricing: PricingSection, catalog: Catalog
) -> Price:
    """What the catalogue knows: of the instance that was named, else of the cheapest with such devices."""
    if match.parts and devices == match.devices:
        prices = (
            _known_price(part, part.devices, part.per_node, math.ceil(part.devices / part.per_node), pricing, catalog)
            for part in match.parts
        )
        return total_price(tuple(prices))
    if match.instance is not None:
        return instance_price(match.instance, _instances(match, devices, per_node), nodes, pricing, catalog)
    if match.price.usd_per_hour is not None:
        return replace(match.price, usd_per_hour=match.price.usd_per_hour * devices)
    if match.accelerator is None:
        return Price()
    return device_price(match.accelerator, devices, nodes, pricing, catalog)


def _overrides(spec: Mapping[str, object]) -> dict[str, float]:
    values: dict[str, float] = {}
    for key, value in spec.items():
        location = Place(field=f"{Key.HARDWARE_SPEC}.{key}")
        if key not in SPEC_FIGURES:
            near = nearest(key, SPEC_FIGURES) or SPEC_FIGURES
            raise PlanError("unknown key", key, f"known: {', '.join(near)}", location)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise PlanError("not a number", repr(value), "give a number in the unit of the key", location)
        number = parse_count(value, place=location) if isinstance(value, str) else value
        if not SMALLEST_FIGURE <= number <= LARGEST_FIGURE:
            allowed = f"allowed: {SMALLEST_FIGURE:g} to {LARGEST_FIGURE:g}"
            raise PlanError("out of range", repr(value), allowed, location)
        values[key] = float(number)
    return values


def _overridden(device: Device, spec: Mapping[str, float]) -> Device:
    peaks = dict(device.peaks)
    memory = min((spec[key] for key in ("usable_memory_mib", "memory_mib") if key in spec), default=None)
    is_whole = "memory_mib" in spec and device.shared_bytes is not None
    for key, value in spec.items():
        group, _, kind = SPEC_FIGURES[key].partition(".")
        if group == "peaks":
            peaks[kind] = value * 1e12
    device = replace(
        device,
        peaks=peaks,
        memory_bytes=memory * MIB if memory is not None else device.memory_bytes,
        shared_bytes=spec["memory_mib"] * MIB if is_whole else device.shared_bytes,
        bandwidth=spec["bandwidth_gbs"] * 1e9 if "bandwidth_gbs" in spec else device.bandwidth,
        link_bandwidth=spec["link_gbs"] * 1e9 if "link_gbs" in spec else device.link_bandwidth,
        host_bandwidth=spec["host_gbs"] * 1e9 if "host_gbs" in spec else device.host_bandwidth,
        units=spec.get("units", device.units),
    )
    device = power_limited(device, spec["tdp_w"]) if "tdp_w" in spec else device
    for key in spec:
        if SPEC_FIGURES[key] not in CLUSTER_FIGURES:
            device = device.with_provenance(_given(key), SPEC_FIGURES[key])
    return device


def _is_another_device(spec: Mapping[str, float]) -> bool:
    """Whether memory, bandwidth and arithmetic are all given: what is on sale under the name then is another device."""
    groups = {SPEC_FIGURES[key].partition(".")[0] for key in spec}
    return {"memory_bytes", "bandwidth", "peaks"} <= groups


def _given(key: str) -> Provenance:
    return Provenance("given", f"{Key.HARDWARE_SPEC}.{key}")
