"""AMD GPUs from sysfs and the KFD topology, with AMD's tools only for what those lack."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field, replace
from importlib import import_module

from capacity_tui.engine.machine import topology
from capacity_tui.engine.machine.facts import Fact, detected, difference, missing
from capacity_tui.engine.machine.known_devices import BY_GENERATION, match_accelerator, match_named, match_pci
from capacity_tui.engine.machine.machine import Accelerator, GpuProcess, LinkPeer, unknown_accelerator
from capacity_tui.engine.machine.probing import Host, NotPresentError
from capacity_tui.engine.machine.system import gpu_process, installed
from capacity_tui.engine.machine.vendors.vendor import GpuSample, ProbedDevices, Vendor, first_value, listed_in, number
from capacity_tui.engine.record import dataclass

VENDOR = "AMD"
PCI_VENDOR = "1002"
KFD = "/sys/class/kfd/kfd"
ROCM_VERSION = "/opt/rocm/.info/version"
XGMI = "11"  # include/linux/kfd_topology.h, CRAT_IOLINK_TYPE_XGMI
WHOLE = missing("AMD", "partitions are not read")


@dataclass(frozen=True, slots=True)
class KfdNode:
    """A node of the compute driver's topology, and the nodes it has XGMI links to."""

    name: str
    gpu_id: str
    properties: dict[str, str] = field(default_factory=dict)
    xgmi: tuple[str, ...] = ()


def probe_amd(host: Host) -> ProbedDevices:
    """Return the AMD GPUs; raises NotPresentError if there are none."""
    cards = topology.cards(host, PCI_VENDOR)
    if not cards and host.exists(KFD):
        return ProbedDevices(listed_accelerators(host, VENDOR))
    if not cards:
        raise NotPresentError(f"no AMD card in {topology.CARDS}")
    nodes = {card.card: _node(host, card) for card in cards}
    order = [node.name if node else "" for node in nodes.values()]
    names = _product_names(host, cards)
    devices = (
        _accelerator(host, index, card, name=names[index], node=nodes[card.card], order=order)
        for index, card in enumerate(cards)
    )
    return ProbedDevices(tuple(devices))


def _accelerator(
    host: Host, index: int, card: topology.Card, *, name: Fact[str], node: KfdNode | None, order: list[str]
) -> Accelerator:
    integrated = _integrated(node)
    total, used = _memory(host, card, "total", integrated), _memory(host, card, "used", integrated)
    dedicated = None if integrated.value else total.value
    return Accelerator(
        index=index,
        vendor=VENDOR,
        name=name,
        catalogue_id=match_named(name, dedicated).or_else(match_pci(card.pci_id, dedicated)),
        memory_total_bytes=total,
        memory_free_bytes=difference(total, used),
        memory_used_bytes=used,
        processes=_processes(host, node),
        driver=host.text("/sys/module/amdgpu/version").or_else(host.text("/proc/sys/kernel/osrelease")),
        runtime=host.text(ROCM_VERSION),
        compute_capability=_target(node),
        matrix_units=BY_GENERATION,
        precisions=BY_GENERATION,
        pci_path=topology.path_of(host, card.base),
        pcie=topology.pcie_link(host, card),
        numa_node=topology.numa_node(host, card.base),
        links=_links(node, order),
        mig_enabled=WHOLE,
        mig_instances=WHOLE,
        power_default_watts=topology.hwmon(host, card, "power1_cap_default", scale=1e6),
        power_limit_watts=topology.hwmon(host, card, "power1_cap", scale=1e6),
        power_watts=power(host, card),
        temperature_celsius=temperature(host, card),
        temperature_limit_celsius=topology.hwmon(host, card, "temp2_crit", "temp1_crit", scale=1e3),
        throttle=missing(card.base, "the amdgpu driver does not tell"),
        clock_mhz=clock(host, card),
        clock_max_mhz=host.fact(f"{card.base}/pp_dpm_sclk", _highest_clock),
        integrated=integrated,
        visible=listed_in(host, index, "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
        uuid=host.text(f"{card.base}/unique_id"),
    )


def power(host: Host, card: topology.Card) -> Fact[float]:
    """Return the power drawn now in watts."""
    return topology.hwmon(host, card, "power1_average", "power1_input", scale=1e6)


def temperature(host: Host, card: topology.Card) -> Fact[float]:
    """Return the edge temperature in degrees Celsius, the junction's where there is no edge sensor."""
    return topology.hwmon(host, card, "temp1_input", "temp2_input", scale=1e3)


def clock(host: Host, card: topology.Card) -> Fact[int]:
    """Return the shader clock in MHz."""
    return topology.hwmon(host, card, "freq1_input", scale=1e6).map(round)


def _product_names(host: Host, cards: tuple[topology.Card, ...]) -> tuple[Fact[str], ...]:
    """Return each card's name; AMD's library and the slow rocm-smi are used once, if sysfs lacks any."""
    names = [host.text(f"{card.base}/product_name") for card in cards]
    if all(name.value is not None for name in names):
        return tuple(names)
    library = library_names()
    report = rocm_smi(host) if any(card.address not in library for card in cards) else None
    return tuple(name.or_else(_tool_name(library, report, card)) for name, card in zip(names, cards, strict=True))


def _tool_name(
    library: Mapping[str, str], report: Fact[tuple[dict[str, str], ...]] | None, card: topology.Card
) -> Fact[str]:
    if card.address in library:
        return detected(library[card.address], "amdsmi")
    if report is None or report.value is None:
        return missing("rocm-smi", report.reason if report else "not asked")
    row = next((row for row in report.value if row.get("PCI Bus", "").lower() == card.address), {})
    name = first_value(row, *NAMES)
    return detected(name, report.source) if name else missing(report.source, "not in its answer")


def _memory(host: Host, card: topology.Card, part: str, integrated: Fact[bool]) -> Fact[int]:
    """Return dedicated memory in bytes, with what the driver may map of main memory on an APU."""
    total = host.integer(f"{card.base}/mem_info_vram_{part}")
    mapped = host.integer(f"{card.base}/mem_info_gtt_{part}").value or 0
    return total.map(lambda size: size + mapped) if integrated.value else total


def _node(host: Host, card: topology.Card) -> KfdNode | None:
    renders = [name.removeprefix("renderD") for name in host.names(f"{card.base}/drm") if name.startswith("renderD")]
    for name in host.names(f"{KFD}/topology/nodes"):
        base = f"{KFD}/topology/nodes/{name}"
        properties = _properties(host, f"{base}/properties")
        if properties.get("drm_render_minor", "0") in renders:
            gpu_id = host.text(f"{base}/gpu_id").value or ""
            return KfdNode(name, gpu_id, properties, _xgmi(host, base))
    return None


def _xgmi(host: Host, base: str) -> tuple[str, ...]:
    links = (
        _properties(host, f"{base}/{kind}/{link}/properties")
        for kind in ("io_links", "p2p_links")
        for link in host.names(f"{base}/{kind}")
    )
    return tuple(link.get("node_to", "") for link in links if link.get("type") == XGMI)


def _properties(host: Host, path: str) -> dict[str, str]:
    lines = (line.split(maxsplit=1) for line in (host.text(path).value or "").splitlines())
    return {words[0]: words[1] for words in lines if len(words) == 2}


def _integrated(node: KfdNode | None) -> Fact[bool]:
    source = f"{KFD}/topology"
    if node is None:
        return missing(source, "the compute driver does not list the card")
    return detected(int(node.properties.get("cpu_cores_count", "0")) > 0, source)


def _target(node: KfdNode | None) -> Fact[str]:
    """Return the compiler target, such as gfx942 for version 90402."""
    source = f"{KFD}/topology gfx_target_version"
    number = int(node.properties.get("gfx_target_version", "0")) if node else 0
    if not number:
        return missing(source, "the compute driver does not list the card")
    return detected(f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}", source)


def _links(node: KfdNode | None, order: list[str]) -> Fact[tuple[LinkPeer, ...]]:
    source = f"{KFD}/topology io_links"
    peers = [order.index(name) for name in node.xgmi if name in order] if node else []
    if not peers:
        return missing(source, "no XGMI link to another GPU")
    return detected(tuple(LinkPeer("XGMI", peer, peers.count(peer)) for peer in sorted(set(peers))), source)


def _processes(host: Host, node: KfdNode | None) -> Fact[tuple[GpuProcess, ...]]:
    source = f"{KFD}/proc"
    if node is None:
        return missing(source, "the compute driver does not list the card")
    processes = []
    for name in host.names(source):
        used = host.integer(f"{source}/{name}/vram_{node.gpu_id}")
        if used.value and name.isdigit():
            processes.append(gpu_process(host, int(name), used))
    return detected(tuple(processes), source)


def _highest_clock(text: str) -> int:
    clocks = [int(number) for number in re.findall(r"(\d+)Mhz", text, re.IGNORECASE)]
    if not clocks:
        raise ValueError(text)
    return max(clocks)


ROCM_SMI = (
    "rocm-smi",
    "--showproductname",
    "--showbus",
    "--showmeminfo",
    "vram",
    "--showpower",
    "--showtemp",
    "--json",
)

FOLDER = "/opt/rocm/bin"
NAMES = ("Card Series", "Card series", "Device Name")


def library_names() -> Mapping[str, str]:
    """Return product names by PCI address from the amdsmi library; empty where it is not installed."""
    try:
        library = import_module("amdsmi")
        library.amdsmi_init()
    except Exception:
        return {}
    names: dict[str, str] = {}
    with suppress(Exception):
        for handle in library.amdsmi_get_processor_handles():
            address = str(library.amdsmi_get_gpu_device_bdf(handle)).lower()
            names[address] = str(library.amdsmi_get_gpu_asic_info(handle)["market_name"])
    with suppress(Exception):
        library.amdsmi_shut_down()
    return names


def rocm_smi(host: Host) -> Fact[tuple[dict[str, str], ...]]:
    """Return the cards as rocm-smi lists them, one row of text a card."""
    report = host.command(*ROCM_SMI, folder=FOLDER)
    if report.value is None:
        return missing(report.source, report.reason)
    try:
        return detected(json_cards(report.value), report.source)
    except ValueError:
        return missing(report.source, "an answer that is no table of cards")


def listed_accelerators(host: Host, vendor: str) -> tuple[Accelerator, ...]:
    """Return the cards of rocm-smi where the kernel's files are hidden, as in some containers."""
    rows = rocm_smi(host)
    if not rows.value:
        raise NotPresentError(rows.reason or "rocm-smi lists no card")
    return tuple(_smi_accelerator(index, vendor, row, rows.source) for index, row in enumerate(rows.value))


def _smi_accelerator(index: int, vendor: str, row: Mapping[str, str], source: str) -> Accelerator:
    bare = unknown_accelerator(index, vendor, source, "rocm-smi does not tell")

    def real(*columns: str) -> Fact[float]:
        value = number(row, *columns)
        return missing(source, "rocm-smi does not tell") if value is None else detected(value, source)

    name, target = first_value(row, *NAMES), first_value(row, "GFX Version")
    total, used = real("VRAM Total Memory (B)").map(round), real("VRAM Total Used Memory (B)").map(round)
    power = real("Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)")
    return replace(
        bare,
        name=detected(name, source) if name else bare.name,
        catalogue_id=match_accelerator(name, total.value) if name else bare.catalogue_id,
        memory_total_bytes=total,
        memory_used_bytes=used,
        memory_free_bytes=difference(total, used),
        compute_capability=detected(target, source) if target else bare.compute_capability,
        power_watts=power,
        power_limit_watts=real("Max Graphics Package Power (W)"),
        temperature_celsius=real("Temperature (Sensor edge) (C)", "Temperature (Sensor junction) (C)"),
        visible=detected(True, source),
    )


def json_cards(text: str) -> tuple[dict[str, str], ...]:
    """Return the cards of ``rocm-smi --json``, in the order of their numbers; raises ValueError for any other text."""
    start = text.find("{")
    loaded = json.loads(text[start:]) if start >= 0 else None
    if not isinstance(loaded, dict):
        raise ValueError("no table of cards")
    cards = ((int(name[4:]), row) for name, row in loaded.items() if re.fullmatch(r"card\d+", name))
    return tuple({str(key): str(value) for key, value in row.items()} for _, row in sorted(cards, key=lambda p: p[0]))


class AmdSensors:
    """The cards that the kernel lists; raises NotPresentError where there is none."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._cards = topology.cards(host, PCI_VENDOR)
        if not self._cards:
            raise NotPresentError(f"no AMD card in {topology.CARDS}")

    def read(self, first: int) -> tuple[GpuSample, ...]:
        return tuple(self._sample(index, card) for index, card in enumerate(self._cards, first))

    def close(self) -> None:
        """Sysfs lends nothing."""

    def _sample(self, index: int, card: topology.Card) -> GpuSample:
        return GpuSample(
            index=index,
            utilization_percent=self._host.fact(f"{card.base}/gpu_busy_percent", float),
            memory_used_bytes=self._host.integer(f"{card.base}/mem_info_vram_used"),
            memory_total_bytes=self._host.integer(f"{card.base}/mem_info_vram_total"),
            power_watts=power(self._host, card),
            temperature_celsius=temperature(self._host, card),
            throttle=missing(card.base, "the amdgpu driver does not tell"),
            memory_activity_percent=self._host.fact(f"{card.base}/mem_busy_percent", float),
            power_limit_watts=topology.hwmon(self._host, card, "power1_cap", scale=1e6),
            holders=missing(card.base, "the amdgpu driver lists no processes"),
        )


_CARD = "/sys/class/drm/card[0-9]*/device"
_READ = (
    *(f"{_CARD}/mem_info_{name}" for name in ("vram_total", "vram_used", "gtt_total", "gtt_used")),
    *(f"{_CARD}/{name}" for name in ("product_name", "pp_dpm_sclk")),
    *(f"{KFD}/topology/nodes/*/{name}" for name in ("gpu_id", "properties", "*_links/*/properties")),
    *("/sys/module/amdgpu/version", ROCM_VERSION),
)
AMD = Vendor(
    "amd",
    VENDOR,
    probe_amd,
    lambda host: installed(("ROCm", host.text(ROCM_VERSION))),
    lambda host, _: AmdSensors(host),
    packages=("amdsmi",),
    torch_backend="cuda",
    asked=(ROCM_SMI,),
    read=_READ,
    folders=(FOLDER,),
)
