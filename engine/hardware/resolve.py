"""From a plan's hardware section, or a detected machine, to the cluster that formulas read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from capacity_tui.engine.catalog import Accelerator, Catalog, Instance, Processor
from capacity_tui.engine.catalog.names import nearest
from capacity_tui.engine.catalog.rows import MIB
from capacity_tui.engine.errors import CatalogError, HardwareError, Place, PlanError
from capacity_tui.engine.hardware.benchmark.applied import with_benchmarks
from capacity_tui.engine.hardware.cluster import Cluster, Device, Price, Reach
from capacity_tui.engine.hardware.machine import Accelerator as DetectedAccelerator
from capacity_tui.engine.hardware.machine import Machine
from capacity_tui.engine.hardware.measured import with_measured
from capacity_tui.engine.hardware.usable import slice_of, usable_devices
from capacity_tui.engine.units import parse_count
from capacity_tui.engine.workload.plan import HardwareSection, PricingSection

PEAKS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
# One lane carries this much in one direction, by PCIe generation (GB/s; PCI-SIG, after encoding).
PCIE_LANE_GBS = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563, 7: 15.13}
# Below this an idle device's "used" memory is the driver's own reserve (nvidia-smi shows up to some hundred MiB).
HELD_BY_OTHERS = 2**30
OVERRIDES = (
    "memory_mib", "bandwidth_gbs", "tdp_w", "link_gbs", "units", "host_gbs", "node_gbs", "host_memory_gib",
    "fp64_tflops", "fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops", "fp8_tflops", "int8_tops",
    "fp4_tflops",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """A device with what its row says about its surroundings."""

    device: Device
    devices: int
    per_node: int
    host_memory_bytes: float | None
    price: Price
    interconnect: str
    assumed: tuple[str, ...] = ()


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
    assumed = list(found.assumed)
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
    )


def reach_of(generation: str, catalog: Catalog) -> Reach:
    """Return what a hardware generation reaches of its datasheet; the row ``other`` where none covers it."""
    table = catalog.efficiencies
    row = next((row for row in table.values() if generation in row.generations), table["other"])
    return Reach(
        gemm=row.gemm,
        sustained=row.sustained,
        wave_fill=row.wave_fill,
        ramp_length=row.ramp_length,
        misaligned=row.misaligned,
        unaligned=row.unaligned,
        attention_forward=row.attention_forward,
        attention_portable=row.attention_portable,
        attention_half_length=row.attention_half_length,
        attention_backward=row.attention_backward,
        attention_unfused=row.attention_unfused,
        stream=row.stream,
        elementwise=row.elementwise,
        launch_seconds=row.launch_us * 1e-6,
        collective_share=row.collective_share,
        switch_reduction=row.switch_reduction,
        collective_half_bytes=row.collective_half_mib * MIB,
        network_share=row.network_share,
        collective_hop_seconds=row.collective_hop_us * 1e-6,
        communicator_bytes=row.communicator_mib * MIB,
        context_bytes=row.context_mib * MIB,
        idle_share=row.idle_share,
        source=f"{row.name}: {row.source} ({row.confidence})",
        row=row.id,
    )


def accelerator_device(row: Accelerator, catalog: Catalog) -> Device:
    """Return a catalogue accelerator as formulas see it."""
    peaks = {
        name: peak for name in PEAKS if (peak := row.peak_flops("int8_tops" if name == "int8" else f"{name}_tflops"))
    }
    if not peaks or row.bandwidth_gbs is None:
        raise CatalogError(
            "peaks or bandwidth of this accelerator are not published",
            row.id,
            "give them in hardware.spec: bf16_tflops, bandwidth_gbs",
            Place(field="hardware.name"),
        )
    host = PCIE_LANE_GBS.get(row.pcie_gen or 4, PCIE_LANE_GBS[4]) * (row.pcie_lanes or 16) * 1e9
    bandwidth = row.bandwidth_gbs * 1e9
    return Device(
        id=row.id,
        name=row.name,
        kind="tpu" if row.vendor in {"Google", "AWS"} else "gpu",
        memory_bytes=float(row.memory_bytes),
        bandwidth=bandwidth,
        peaks=peaks,
        units=float(row.units or 64),
        tdp_watts=row.tdp_w,
        clock=1.0,
        link_bandwidth=row.link_gbs * 1e9 if row.link_gbs else host,
        host_bandwidth=bandwidth if row.unified_memory else host,
        reach=reach_of(row.generation or "", catalog),
        checked=row.checked.isoformat(),
        confidence=row.confidence,
    )


def processor_device(row: Processor, catalog: Catalog) -> Device:
    """Return one socket of a catalogue CPU as formulas see it; its memory is not known."""
    clock = (row.base_ghz or 2.5) * 1e9
    cores = row.cores + row.efficiency_cores
    fp32 = (row.fp32_flops_per_cycle or 32.0) * cores * clock
    peaks = {"fp32": fp32, "fp64": (row.fp64_flops_per_cycle or 16.0) * cores * clock}
    if row.bf16_matrix_flops_per_cycle:
        peaks["bf16"] = row.bf16_matrix_flops_per_cycle * cores * clock
    bandwidth = (row.bandwidth_gbs or 40.0) * 1e9
    return Device(
        id=row.id,
        name=row.name,
        kind="cpu",
        memory_bytes=None,
        bandwidth=bandwidth,
        peaks=peaks,
        units=float(cores),
        tdp_watts=row.tdp_w,
        clock=1.0,
        link_bandwidth=bandwidth * 0.5,
        host_bandwidth=bandwidth,
        reach=reach_of("CPU", catalog),
        checked=row.checked.isoformat(),
        confidence=row.confidence,
    )


def _find(section: HardwareSection, catalog: Catalog, machine: Machine | None) -> Found:
    if section.name == "detected":
        if machine is None:
            raise HardwareError("no machine was detected", hint="name the hardware in hardware.name")
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
    return Found(device, count, count, memory, price, _network(accelerator))


def detected(machine: Machine, catalog: Catalog) -> Found:
    """Return the detected machine: its accelerators of the first kind, or its CPU."""
    visible = usable_devices(machine)
    usable = [found for found in visible if found.accelerator.catalogue_id.value in catalog.accelerators]
    memory = float(machine.memory.total_bytes.value or 0) or None
    if usable:
        first = usable[0]
        row_id = first.accelerator.catalogue_id.value
        linked = [found for found in usable if found.linked and found.accelerator.catalogue_id.value == row_id]
        alike = linked or [first]
        device = with_measured(_detected_accelerator(first.accelerator, catalog), machine.measured)
        host = memory / len(alike) if memory else None
        return Found(slice_of(device, first), len(alike), len(alike), host, Price(), "eth-10")
    unmatched = tuple(f"{found.accelerator.name} is not in the catalogue" for found in visible)
    processor = with_benchmarks(_detected_cpu(machine, catalog), machine.benchmarked)
    processor = with_measured(processor, machine.measured)
    return Found(processor, 1, 1, memory, Price(), "eth-10", unmatched)


def _detected_accelerator(found: DetectedAccelerator, catalog: Catalog) -> Device:
    row = catalog.accelerators[str(found.catalogue_id.value)]
    device = accelerator_device(row, catalog)
    total, used = found.memory_total_bytes.value, found.memory_used_bytes.value or 0
    if total:
        # What other processes hold is not there for the run; a little is the driver's own.
        device = replace(device, memory_bytes=float(total - used if used > HELD_BY_OTHERS else total))
    limit = found.power_limit_watts.value
    return _power_limited(device, limit) if limit else device


def _detected_cpu(machine: Machine, catalog: Catalog) -> Device:
    """The CPU as found: its catalogue row where it has one, else cores, clock and SIMD width."""
    cpu = machine.cpu
    row_id = cpu.catalogue_id.value
    memory = machine.memory.available_bytes.value or machine.memory.total_bytes.value
    cores = float(cpu.physical_cores.value or cpu.threads.value or 1)
    usable = min(cores, float(cpu.usable_threads.value or cores))
    generic = processor_device(catalog.processors["cpu-4c-2.5ghz-basic"], catalog)
    if row_id in catalog.processors:
        generic = processor_device(catalog.processors[str(row_id)], catalog)
        sockets = float(cpu.sockets.value or 1)
        scale = min(sockets, usable / float(generic.units))
    else:
        clock = (cpu.base_mhz.value or cpu.current_mhz.value or 2500.0) * 1e6
        # Two fused multiply-adds a cycle over the SIMD width, the common shape of today's cores.
        fp32 = (cpu.simd_bits.value or 128) / 32.0 * 4.0 * clock
        generic = replace(generic, peaks={"fp32": fp32, "fp64": fp32 / 2.0}, units=1.0)
        scale = usable
    return replace(
        generic,
        id="detected",
        name=str(cpu.model.value or "CPU"),
        memory_bytes=float(memory) if memory else None,
        peaks={name: peak * scale for name, peak in generic.peaks.items()},
        units=usable,
    )


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
        if key not in OVERRIDES:
            near = nearest(key, OVERRIDES) or OVERRIDES
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
    return _power_limited(device, spec["tdp_w"]) if "tdp_w" in spec else device


def _power_limited(device: Device, limit: float) -> Device:
    """Lower the clock to what a power limit leaves: dynamic power grows with its third power."""
    if device.tdp_watts is None:
        return replace(device, tdp_watts=limit)
    clock = min(1.0, (limit / device.tdp_watts) ** (1.0 / 3.0))
    return replace(device, tdp_watts=min(limit, float(device.tdp_watts)) if clock < 1 else limit, clock=clock)
