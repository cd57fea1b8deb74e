"""What suits some hardware: settings of frameworks and of the system, and the largest models that it tunes and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from capacity_tui.engine.catalog import Accelerator as CatalogueAccelerator
from capacity_tui.engine.catalog import Catalog, Instance, load_catalog
from capacity_tui.engine.cluster import resolve_cluster, usable_devices
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, figure
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.machine import (
    Accelerator,
    Machine,
    NetworkInterface,
    Setting,
    collectives_of,
    data_centre,
    find_generation,
    generation_of,
    lacks_peer_access,
    templates,
)
from capacity_tui.engine.plan import FASTEST, Plan, edited
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.answers import fitting_models, open_plan, proposal, usual_models
from capacity_tui.engine.solve.candidate import MEMORY
from capacity_tui.engine.units import PERCENT

NEAR = ("PIX", "PXB")  # how an adapter must be reached to carry a device's traffic past the host bridge
RDMA = ("infiniband", "roce")
LOADERS_AT_MOST = 16  # more worker processes for one device wait for each other


def settings_for(machine: Machine) -> tuple[Setting, ...]:
    """Return what suits a detected machine: its devices, the links between them, its processor."""
    devices = usable_devices(machine)
    gpus = [device.accelerator for device in devices]
    settings: list[Setting] = []
    if gpus:
        generation = generation_of(gpus[0])
        settings += (
            *(generation.settings if generation else ()),
            *_data_centre(gpus[0].vendor, gpus[0].name.value or ""),
        )
    if len(gpus) > 1:
        linked = all(device.linked for device in devices)
        settings += _between_devices(machine, gpus) if linked else [_filled("links", "slices")]
    return (*settings, *_processor(machine, len(gpus)))


def settings_for_plan(plan: Plan, machine: Machine | None, catalog: Catalog) -> tuple[Setting, ...]:
    """Return what suits a plan's hardware; what the plan decides stands as it decides it, with what would suit."""
    if machine is not None:
        settings = settings_for(machine)
    else:
        row = catalog.find_hardware(plan.hardware.name)
        name = row.accelerator if isinstance(row, Instance) else None
        device = row if name is None else catalog.accelerators.find(name)
        settings = settings_for_row(device) if isinstance(device, CatalogueAccelerator) else ()
    return tuple(as_planned(plan, settings))


def as_planned(plan: Plan, settings: Sequence[Setting]) -> Iterator[Setting]:
    """Yield settings with those that a plan decides as it decides them, and what would suit beside it.

    Args:
        plan: every default filled in.
    """
    training = plan.training
    decided: dict[str, str] = {}
    if plan.is_training:
        decided = {"precision": str(training.precision), "compile": "on" if training.compile else "off"}
        if training.attention != FASTEST:
            decided["attention"] = training.attention
    for setting in settings:
        value = decided.get(setting.name, setting.value)
        if value == setting.value:
            yield setting
        else:
            yield Setting(setting.name, value, f"as planned; {setting.value} suits the device: {setting.reason}")


def settings_for_row(row: CatalogueAccelerator) -> tuple[Setting, ...]:
    """Return what suits a device of the catalogue; links and processor around it are not known."""
    generation = find_generation(row.vendor, row.name, row.compute_capability)
    return (*(generation.settings if generation else ()), *_data_centre(row.vendor, row.name))


def _data_centre(vendor: str, name: str) -> tuple[Setting, ...]:
    """Return what suits cards that are built for servers and workstations, shared and watched by operators."""
    section = data_centre()
    return section.settings if section.covers(vendor, name) else ()


def _between_devices(machine: Machine, gpus: Sequence[Accelerator]) -> Iterator[Setting]:
    """Yield the collective library and what the topology asks of it."""
    library = collectives_of(gpus[0])
    yield Setting("backend", library.backend, library.reason)
    for name in library.links:
        yield from LINK_RULES[name](machine, gpus)


def _no_rdma(machine: Machine, _: Sequence[Accelerator]) -> Iterator[Setting]:
    if not any(card.kind in RDMA for card in _cards(machine)):
        yield _filled("links", "no_rdma")


def _adapters(machine: Machine, gpus: Sequence[Accelerator]) -> Iterator[Setting]:
    near = _near_adapters(machine, gpus, _cards(machine))
    if near:
        yield _filled("links", "adapters", ",".join(near), near=", ".join(near))


def _socket(machine: Machine, _: Sequence[Accelerator]) -> Iterator[Setting]:
    wired = [card for card in _cards(machine) if card.kind == "ethernet" and card.speed_mbps.value]
    if wired:
        fastest = max(wired, key=lambda card: card.speed_mbps.value or 0)
        yield _filled("links", "socket", fastest.name, speed=f"{(fastest.speed_mbps.value or 0) / 1000:g} Gb/s")


def _no_peer_access(_: Machine, gpus: Sequence[Accelerator]) -> Iterator[Setting]:
    if not _directly_linked(gpus) and lacks_peer_access(gpus[0]):
        yield _filled("links", "no_peer_access")


def _across_sockets(_: Machine, gpus: Sequence[Accelerator]) -> Iterator[Setting]:
    nodes = {gpu.numa_node.value for gpu in gpus if gpu.numa_node.value is not None}
    if not _directly_linked(gpus) and not lacks_peer_access(gpus[0]) and len(nodes) > 1:
        yield _filled("links", "across_sockets", nodes=len(nodes))


def _channels(_: Machine, gpus: Sequence[Accelerator]) -> Iterator[Setting]:
    row = templates("links")["channels"]
    if gpus[0].catalogue_id.value == row["device"] and len(gpus) == int(row["devices"]):
        yield _filled("links", "channels")


def _directly_linked(gpus: Sequence[Accelerator]) -> bool:
    return any(gpu.links.value for gpu in gpus)


def _cards(machine: Machine) -> list[NetworkInterface]:
    return [card for card in machine.networks if card.up.value is not False]


def _near_adapters(machine: Machine, gpus: Sequence[Accelerator], cards: Sequence[NetworkInterface]) -> list[str]:
    """Return the RDMA adapters on a switch with a device, by the names that the collective library knows."""
    usable = {card.name for card in cards if card.kind in RDMA and ":" in card.name}
    rows = [machine.topology.adapter_links[gpu.index] for gpu in gpus if machine.topology.adapter_links]
    columns = zip(machine.topology.adapters, zip(*rows, strict=True), strict=True)
    return [name for name, levels in columns if name in usable and any(level in NEAR for level in levels)]


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
        threads_a_device = max(1, cores // devices)
        yield _filled("processor", "threads_shared", str(threads_a_device), cores=cores, devices=devices)
        workers = min(LOADERS_AT_MOST, max(1, (cores - devices) // devices))
        yield _filled("processor", "loader", str(workers), cores=cores, devices=devices)
    else:
        yield from _number_types(cpu.simd.value or ())
        yield from _libraries(cpu.vendor.value, cpu.simd.value or ())
        row = "threads" if physical else "threads_alone"
        yield _filled("processor", row, str(min(fast, cores) if fast else cores), cores=cores)
        yield _filled("processor", "memory")
        yield _filled("processor", "affinity")
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


def _libraries(vendor: str | None, simd: Sequence[str]) -> Iterator[Setting]:
    """Yield flags of compilers, and of the libraries that multiply matrices on processors."""
    if any("BF16" in name.upper() for name in simd):
        yield _filled("processor", "onednn")
    if vendor == templates("processor")["zendnn"]["vendor"] and any(name.startswith("AVX-512") for name in simd):
        yield _filled("processor", "zendnn")
    if simd:
        yield _filled("processor", "compiler", units=", ".join(simd[-2:]))


def _filled(section: str, key: str, value: str | None = None, **words: object) -> Setting:
    """Return a setting of the table with what was found put in."""
    row = templates(section)[key]
    given = value if value is not None else row["value"]
    return Setting(row["name"], str(given), row["reason"].format(**words))


LINK_RULES: Mapping[str, Callable[[Machine, Sequence[Accelerator]], Iterator[Setting]]] = {
    "no_rdma": _no_rdma,
    "adapters": _adapters,
    "socket": _socket,
    "no_peer_access": _no_peer_access,
    "across_sockets": _across_sockets,
    "channels": _channels,
}
"""When each row of the table's section ``links`` counts."""


@dataclass(frozen=True, slots=True)
class Rung:
    """The largest model of one way to use hardware."""

    way: str  # what is done and how, such as ``fine-tune: QLoRA``
    is_comfortable: bool  # whether the balanced mode holds it with room to spare; else it just fits
    model: str  # its name
    estimate: Estimate  # what it comes to
    values: Mapping[str, object]  # what makes the plan one of it, by path

    @property
    def room(self) -> str:
        """How it fits, in words."""
        return "comfortable" if self.is_comfortable else "on the edge"

    @property
    def share(self) -> str:
        """How much of the memory it takes."""
        return figure(self.estimate, Figure.MEMORY_UTILIZATION_PERCENT).text

    @property
    def speed(self) -> str:
        """How fast it is: tokens trained, or answered to one user, in a second."""
        is_served = self.estimate.computation.infer is not None
        return figure(self.estimate, Figure.DECODE_TOKENS_PER_SECOND if is_served else Figure.TOKENS_PER_SECOND).text


def ladder(plan: Plan, machine: Machine | None = None, catalog: Catalog | None = None) -> Iterator[Rung]:
    """Yield the largest models that the hardware of a plan takes, way by way, the comfortable one of each first."""
    from capacity_tui.engine.solve.need.bounds import Bounds  # noqa: PLC0415 - a search of its own, behind this one

    facts = catalog or load_catalog()
    names = usual_models(facts)
    resolve_cluster(plan.hardware, plan.pricing, facts, machine)
    for way in proposal()["ladder"]:
        values = {Key.TASK: way["task"], **way["values"]}
        start = open_plan(way["task"]).model_copy(update={"hardware": plan.hardware, "pricing": plan.pricing})
        try:
            start = edited(start, {Key.MODEL_NAME: names[-1], **values}, facts).plan
        except CapacityError:
            continue
        bounds = Bounds(start, facts, machine)
        held = [name for name in names if bounds.at_best({Key.MODEL_NAME: name}).get(MEMORY, 0.0) <= PERCENT]
        comfortable, edge = fitting_models(start, held, machine, facts)
        for fitting in (comfortable, edge):
            if fitting is not None:
                name, filled = fitting
                is_comfortable = fitting is comfortable
                yield Rung(way["name"], is_comfortable, name, filled.estimate, {**values, Key.MODEL_NAME: name})
