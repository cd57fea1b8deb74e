"""Settings of frameworks and of the system that suit the hardware, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.engine.catalog import Accelerator as CatalogueAccelerator
from capacity_tui.engine.cluster.usable import usable_devices
from capacity_tui.engine.machine.generations import Setting, find_generation, generation_of, templates
from capacity_tui.engine.machine.machine import Accelerator, Machine, NetworkInterface

BESIDE = ("PIX", "PXB")  # how an adapter must be reached to carry a device's traffic past the host bridge
RDMA = ("infiniband", "roce")
LOADERS_AT_MOST = 16  # more worker processes for one device wait for each other
ALL_MI300X = 8


def settings_for(machine: Machine) -> tuple[Setting, ...]:
    """Return what suits a detected machine: its devices, the links between them, its processor."""
    devices = usable_devices(machine)
    gpus = [device.accelerator for device in devices]
    found: list[Setting] = []
    if gpus:
        generation = generation_of(gpus[0])
        found += generation.settings if generation else ()
    if len(gpus) > 1:
        linked = all(device.linked for device in devices)
        found += _between_devices(machine, gpus) if linked else [_filled("links", "mig")]
    return (*found, *_processor(machine, len(gpus)))


def settings_for_row(row: CatalogueAccelerator) -> tuple[Setting, ...]:
    """Return what suits a device of the catalogue; links and processor around it are not known."""
    generation = find_generation(row.vendor, row.name, row.compute_capability)
    return generation.settings if generation else ()


def _between_devices(machine: Machine, gpus: Sequence[Accelerator]) -> Iterator[Setting]:
    """Yield the collective library and what the topology asks of it."""
    first = gpus[0]
    maker = "Gaudi" if (first.name.value or "").startswith("HL-") else first.vendor
    row = templates("collectives").get(maker, templates("collectives")["none"])
    yield Setting("backend", row["backend"], row["reason"])
    if row["backend"] != "nccl":
        return
    yield from _network(machine, gpus)
    sockets = {gpu.numa_node.value for gpu in gpus if gpu.numa_node.value is not None}
    direct = any(link.peer is not None or link.kind == "NVLink" for gpu in gpus for link in gpu.links.value or ())
    if first.vendor == "NVIDIA" and not direct:
        if _without_peer_access(first):
            yield _filled("links", "geforce_peer")
        elif len(sockets) > 1:
            yield _filled("links", "across_sockets", nodes=len(sockets))
    if first.catalogue_id.value == "mi300x" and len(gpus) == ALL_MI300X:
        yield _filled("links", "mi300x")


def _without_peer_access(gpu: Accelerator) -> bool:
    generation = generation_of(gpu)
    return generation is not None and generation.id in ("ada", "blackwell-rtx") and "RTX" in (gpu.name.value or "")


def _network(machine: Machine, gpus: Sequence[Accelerator]) -> Iterator[Setting]:
    cards = [card for card in machine.networks if card.up.value is not False]
    if not any(card.kind in RDMA for card in cards):
        yield _filled("links", "no_infiniband")
    near = _beside(machine, gpus, cards)
    if near:
        yield _filled("links", "adapters", ",".join(near), near=", ".join(near))
    wired = [card for card in cards if card.kind == "ethernet" and card.speed_mbps.value]
    if wired:
        fastest = max(wired, key=lambda card: card.speed_mbps.value or 0)
        yield _filled("links", "socket", fastest.name, speed=f"{(fastest.speed_mbps.value or 0) / 1000:g} Gb/s")


def _beside(machine: Machine, gpus: Sequence[Accelerator], cards: Sequence[NetworkInterface]) -> list[str]:
    """Return the RDMA adapters on a switch with a device, by the names NCCL knows."""
    usable = {card.name for card in cards if card.kind in RDMA and ":" in card.name}
    rows = [machine.topology.adapter_links[gpu.index] for gpu in gpus if machine.topology.adapter_links]
    columns = zip(machine.topology.adapters, zip(*rows, strict=True), strict=True)
    return [name for name, levels in columns if name in usable and any(level in BESIDE for level in levels)]


def _processor(machine: Machine, devices: int) -> Iterator[Setting]:
    """Yield threads and their places, and for machines without a device the type of numbers."""
    cpu = machine.cpu
    threads, physical = cpu.usable_threads.value, cpu.physical_cores.value
    if threads is None:
        return
    cores = min(physical or threads, threads)
    nodes = cpu.numa_nodes.value or ()
    fast = cpu.performance_cores.value
    if devices:
        each = max(1, cores // devices)
        yield _filled("processor", "threads_shared", str(each), cores=cores, devices=devices)
        workers = min(LOADERS_AT_MOST, max(1, (cores - devices) // devices))
        yield _filled("processor", "loader", str(workers), cores=cores, devices=devices)
    else:
        yield from _number_types(cpu.simd.value or ())
        row = "threads" if physical else "threads_alone"
        yield _filled("processor", row, str(min(fast, cores) if fast else cores), cores=cores)
        yield _filled("processor", "memory")
        yield _filled("processor", "affinity" if cpu.vendor.value == "Intel" else "affinity_gnu")
        yield _filled("processor", "places")
        if fast and fast < cores:
            yield _filled("processor", "hybrid", f"-c 0-{_last_fast_thread(machine)}", cores=fast)
    if len(nodes) > 1:
        yield _filled("processor", "numa", "--cpunodebind=N --membind=N", node="N", nodes=len(nodes))


def _last_fast_thread(machine: Machine) -> int:
    """Return the highest number of the performance cores' threads, which systems number first."""
    cpu = machine.cpu
    slow = cpu.efficiency_cores.value or 0
    return max(0, (cpu.threads.value or 1) - slow - 1)


def _number_types(simd: Sequence[str]) -> Iterator[Setting]:
    names = {name.upper() for name in simd}
    if any(name.startswith("AMX") for name in names):
        yield _filled("processor", "amx")
    elif any("BF16" in name for name in names):
        yield _filled("processor", "avx512_bf16")
    else:
        yield _filled("processor", "fp32")


def _filled(section: str, key: str, value: str | None = None, **words: object) -> Setting:
    """Return a setting of the table with what was found put in."""
    row = templates(section)[key]
    given = value if value is not None else row["value"]
    return Setting(row["name"], str(given), row["reason"].format(**words))
