"""The description of one machine: frozen records whose values carry their provenance.

Sizes are bytes, clocks MHz, power watts, temperatures degrees Celsius, network speeds Mb/s.
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, Literal, TypeVar

from capacity_tui.engine.machine.facts import Fact, missing
from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from capacity_tui.engine.machine.measured_constants import MeasuredEfficiency

DiskKind = Literal["NVMe", "SSD", "HDD", "network", "tmpfs", "overlay"]
SwapKind = Literal["NVMe", "SSD", "HDD", "file", "compressed memory"]
NetworkKind = Literal["ethernet", "wifi", "infiniband", "roce", "loopback", "virtual"]
ProbeOutcome = Literal["found", "absent", "denied", "failed", "timed out", "cancelled"]
LinkMatrix = tuple[tuple[str, ...], ...]  # row i, column j: how device i reaches device j
PciPath = tuple[str, ...]  # from the host bridge down to the device: ("pci0000:16", "0000:16:01.0", "0000:17:00.0")
PRIVATE = {"private": True}  # metadata of fields that identify the machine and are never printed


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node, its logical CPUs and its memory."""

    index: int
    cpus: tuple[int, ...]
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Cache:
    """``count`` equal caches of one level, each ``size_bytes`` large."""

    level: int
    kind: str
    size_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processors; ``usable_threads`` is the threads that affinity and the cgroup quota leave this process."""

    model: Fact[str]
    vendor: Fact[str]
    microarchitecture: Fact[str]
    sockets: Fact[int]
    physical_cores: Fact[int]
    performance_cores: Fact[int]
    efficiency_cores: Fact[int]
    threads: Fact[int]
    usable_threads: Fact[int]
    base_mhz: Fact[float]
    boost_mhz: Fact[float]
    current_mhz: Fact[float]
    simd: Fact[tuple[str, ...]]
    simd_bits: Fact[int]
    numa_nodes: Fact[tuple[NumaNode, ...]]
    caches: Fact[tuple[Cache, ...]]
    catalogue_id: Fact[str]


@dataclass(frozen=True, slots=True)
class Memory:
    """Main memory; ``total_bytes`` and ``available_bytes`` already respect the cgroup limit.

    ``held_bytes`` is what the operating system and everything that runs hold of the host's memory now.
    """

    total_bytes: Fact[int]
    available_bytes: Fact[int]
    limit_bytes: Fact[int]
    host_total_bytes: Fact[int]
    held_bytes: Fact[int]


@dataclass(frozen=True, slots=True)
class MemoryModule:
    """One memory module; ``speed_mts`` is the rate it runs at, in million transfers a second."""

    size_bytes: int
    kind: str
    speed_mts: int | None
    width_bits: int | None
    channel: str


@dataclass(frozen=True, slots=True)
class MemoryModules:
    """The memory modules, and the bandwidth in bytes a second that their channels carry together."""

    modules: Fact[tuple[MemoryModule, ...]]
    channels: Fact[int]
    bandwidth: Fact[float]


@dataclass(frozen=True, slots=True)
class Process:
    """A process that holds much main memory; ``own`` says whether this user started it."""

    pid: int
    name: str
    memory_bytes: int
    own: bool


@dataclass(frozen=True, slots=True)
class Swap:
    """Swap space; ``kind`` is what its pages go to, the slowest where there are several.

    ``bandwidth`` is the bytes a second at which such a disk usually gives pages back, in any order.
    """

    total_bytes: Fact[int]
    free_bytes: Fact[int]
    kind: Fact[SwapKind]
    bandwidth: Fact[float]


@dataclass(frozen=True, slots=True)
class Disk:
    """One mounted file system."""

    mount: str
    device: str
    file_system: str
    kind: Fact[DiskKind]
    total_bytes: Fact[int]
    free_bytes: Fact[int]
    model: Fact[str]


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """One network interface, and where on the PCI tree it sits."""

    name: str
    kind: NetworkKind
    speed_mbps: Fact[int]
    up: Fact[bool]
    pci_path: Fact[PciPath]
    numa_node: Fact[int]


@dataclass(frozen=True, slots=True)
class Power:
    """Battery and mains; what the processor's package may draw for long, how warm it is, how often heat throttled it.

    ``package_throttles`` counts since the system started, of the package that was throttled most often.
    """

    battery_percent: Fact[float]
    battery_watt_hours: Fact[float]
    on_mains: Fact[bool]
    package_limit_watts: Fact[float]
    package_celsius: Fact[float]
    package_throttles: Fact[int]


@dataclass(frozen=True, slots=True)
class PcieLink:
    """PCIe link of a device, as it runs now (idle devices train down) and at its most."""

    generation: Fact[int]
    lanes: Fact[int]
    generation_max: Fact[int]
    lanes_max: Fact[int]


@dataclass(frozen=True, slots=True)
class LinkPeer:
    """Direct links of a device to one peer, or to the switch when ``peer`` is None."""

    kind: str
    peer: int | None
    links: int


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One slice of a partitioned GPU; ``compute_share`` is its part of the GPU's multiprocessors."""

    name: str
    memory_bytes: int | None
    compute_share: float | None
    visible: bool = True


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory of a device; a container hides the names of others' processes."""

    pid: int
    name: Fact[str]
    memory_bytes: Fact[int]
    own: Fact[bool]


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator.

    ``runtime`` is the CUDA version the driver supports, the ROCm version and the like; ``integrated`` devices share
    main memory; ``visible`` says whether frameworks started from this environment see the device;
    ``temperature_limit_celsius`` is where the driver begins to lower the clock.
    """

    index: int
    vendor: str
    name: Fact[str]
    catalogue_id: Fact[str]
    memory_total_bytes: Fact[int]
    memory_free_bytes: Fact[int]
    memory_used_bytes: Fact[int]
    processes: Fact[tuple[GpuProcess, ...]]
    driver: Fact[str]
    runtime: Fact[str]
    compute_capability: Fact[str]
    matrix_units: Fact[str]
    precisions: Fact[tuple[str, ...]]
    pci_path: Fact[PciPath]
    pcie: PcieLink
    numa_node: Fact[int]
    links: Fact[tuple[LinkPeer, ...]]
    mig_enabled: Fact[bool]
    mig_instances: Fact[tuple[MigInstance, ...]]
    power_default_watts: Fact[float]
    power_limit_watts: Fact[float]
    power_watts: Fact[float]
    temperature_celsius: Fact[float]
    temperature_limit_celsius: Fact[float]
    throttle: Fact[tuple[str, ...]]
    clock_mhz: Fact[int]
    clock_max_mhz: Fact[int]
    integrated: Fact[bool]
    visible: Fact[bool]
    uuid: Fact[str] = field(repr=False, metadata=PRIVATE)


@dataclass(frozen=True, slots=True)
class Topology:
    """How accelerators reach each other and the network: row i, column j in the terms of ``nvidia-smi topo``.

    ``X`` itself, ``NV#`` that many NVLinks, ``XGMI``, ``PIX`` one PCIe bridge, ``PXB`` several, ``PHB`` the
    host bridge, ``NODE`` within a NUMA node, ``SYS`` across NUMA nodes, ``?`` unknown.
    """

    links: Fact[LinkMatrix]
    adapters: tuple[str, ...] = ()  # names of the network adapters with a place on the PCI tree
    adapter_links: LinkMatrix = ()


@dataclass(frozen=True, slots=True)
class Stack:
    """Software that programs reach accelerators through, such as CUDA or Vulkan."""

    name: str
    version: Fact[str]


@dataclass(frozen=True, slots=True)
class Container:
    """The container around this process, if any, and the limits it sets."""

    kind: Fact[str]
    cgroup_version: Fact[int]
    cpu_quota: Fact[float]
    memory_limit_bytes: Fact[int]


@dataclass(frozen=True, slots=True)
class Platform:
    """Operating system, and the machine below it where that is virtual."""

    system: Fact[str]
    release: Fact[str]
    architecture: Fact[str]
    python: Fact[str]
    wsl: Fact[bool]
    hypervisor: Fact[str]


@dataclass(frozen=True, slots=True)
class Probe:
    """How one probe went."""

    name: str
    seconds: float
    outcome: ProbeOutcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredFacts:
    """What benchmarks say about the machine, where they were run."""

    fp32_flops: Fact[float]  # matrix products on the processor, FLOP/s
    fp64_flops: Fact[float]  # matrix products in double precision, FLOP/s
    memory_bandwidth: Fact[float]  # bytes a second
    disk_read: Fact[float]  # bytes a second, in sequence
    disk_write: Fact[float]  # bytes a second, in sequence
    random_reads: Fact[float]  # reads of a page a second, one after the other
    loopback_seconds: Fact[float]  # one byte there and back through TCP on this machine
    download: Fact[float]  # bytes a second from the web address that was given
    core_speed: Fact[float]  # of one core in the work of a server's process, that of a server of 2024 being 1
    held_share: Fact[float]  # rate after seconds of full load on all threads, as a share of the rate at its beginning
    stored_patterns: Fact[float]  # patterns stored a second in an embedded database, one after the other
    found_patterns: Fact[float]  # patterns found in it by name a second, one after the other


@dataclass(frozen=True, slots=True)
class Machine(ShownInNotebooks):
    """Everything that was found, how each probe went, and what was measured here before."""

    cpu: Cpu
    memory: Memory
    modules: MemoryModules
    processes: Fact[tuple[Process, ...]]
    swap: Swap
    disks: tuple[Disk, ...]
    networks: tuple[NetworkInterface, ...]
    power: Power
    accelerators: tuple[Accelerator, ...]
    topology: Topology
    stacks: tuple[Stack, ...]
    container: Container
    platform: Platform
    probes: tuple[Probe, ...]
    measured: tuple[MeasuredEfficiency, ...] = ()
    benchmarked: MeasuredFacts | None = None

    @property
    def troubles(self) -> tuple[Probe, ...]:
        """The probes and tools that did not answer, broke, or were denied: their facts are unknown."""
        return tuple(probe for probe in self.probes if probe.outcome in ("timed out", "failed", "denied"))


R = TypeVar("R", Cpu, Memory, MemoryModules, Swap, Power, PcieLink, Container, Platform)


def unknown(record: type[R], source: str, reason: str) -> R:
    """Return a record all of whose facts are missing for one reason."""
    return record(**{part.name: missing(source, reason) for part in fields(record)})


def unknown_accelerator(index: int, vendor: str, source: str, reason: str) -> Accelerator:
    """Return a present accelerator of which nothing is known, for one reason."""
    values = {"index": index, "vendor": vendor, "pcie": unknown(PcieLink, source, reason)}
    missing_facts = {part.name: missing(source, reason) for part in fields(Accelerator) if part.name not in values}
    return Accelerator(**values, **missing_facts)  # type: ignore[arg-type]
