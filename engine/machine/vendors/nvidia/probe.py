"""NVIDIA GPUs through NVML: each device queried in its own thread, so that a hung one hides no other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import takewhile

from capacity_tui.engine.machine import topology
from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.known_devices import BY_GENERATION, match_named
from capacity_tui.engine.machine.machine import (
    Accelerator,
    GpuProcess,
    LinkMatrix,
    LinkPeer,
    MigInstance,
    PcieLink,
    unknown_accelerator,
)
from capacity_tui.engine.machine.main_memory import probe_memory, shared_memory
from capacity_tui.engine.machine.probing import Host, NotPresentError, Running
from capacity_tui.engine.machine.system import gpu_process
from capacity_tui.engine.machine.vendors.nvidia import nvml
from capacity_tui.engine.machine.vendors.vendor import ProbedDevices
from capacity_tui.engine.record import dataclass

DEVICE_SECONDS = 3.0  # a healthy GPU answers all questions in under 0.1 s


@dataclass(frozen=True, slots=True)
class Answer:
    """One device's answers; the far ends of its NVLinks are PCI addresses until all devices answered."""

    accelerator: Accelerator
    address: str | None = None
    link_ends: tuple[str | None, ...] = ()


def probe_nvidia(host: Host) -> ProbedDevices:
    """Return the NVIDIA GPUs and how they reach each other; raises NotPresentError where there are none."""
    nvml.initialise()
    devices = nvml.devices()
    if not devices:
        raise NotPresentError("the NVIDIA driver knows no GPU")
    probes = [Running("gpu", partial(_ask, host, *numbered), DEVICE_SECONDS) for numbered in enumerate(devices)]
    answers = tuple(_finish(*numbered) for numbered in enumerate(probes))
    accelerators = _with_peers(answers)
    if not all(running.done for running in probes):
        return ProbedDevices(accelerators, missing("NVML", "a GPU does not answer"))
    links = _matrix(devices, answers)
    nvml.shutdown()
    return ProbedDevices(accelerators, links)


def _ask(host: Host, index: int, device: Fact[nvml.Device]) -> Answer:
    if device.value is None:
        return Answer(unknown_accelerator(index, VENDOR, device.source, device.reason))
    links = device.value.link_targets()
    accelerator = _accelerator(host, index, device.value, links.map(lambda _: ()))
    return Answer(accelerator, device.value.bus().value, links.value or ())


def _finish(index: int, running: Running[Answer]) -> Answer:
    answer, probe = running.wait()
    return answer or Answer(unknown_accelerator(index, VENDOR, "NVML", probe.detail))


def _accelerator(host: Host, index: int, device: nvml.Device, links: Fact[tuple[LinkPeer, ...]]) -> Accelerator:
    name, uuid = device.text("nvmlDeviceGetName"), device.text("nvmlDeviceGetUUID")
    mig = device.ask("nvmlDeviceGetMigMode", read=lambda modes: bool(modes[0]))
    memory, integrated = device.memory(), name.map(lambda text: bool(UNIFIED_NAMES.search(text)))
    memory_total = memory.map(lambda info: info.total)
    total, free, used = (
        shared_memory(probe_memory(host))
        if integrated.value
        else (memory_total, memory.map(lambda info: info.free), memory.map(lambda info: info.used))
    )
    visibility = visible(host.environment, index, uuid)
    slices = _mig_instances(host.environment, device, mig, bool(visibility.value))
    if any(entry.visible for entry in slices.value or ()):
        visibility = detected(True, visibility.source)
    address = device.bus()
    path = f"{topology.DEVICES}/{address.value}"
    return Accelerator(
        index=index,
        vendor=VENDOR,
        name=name,
        catalogue_id=match_named(name, None if integrated.value else memory_total.value),
        memory_total_bytes=total,
        memory_free_bytes=free,
        memory_used_bytes=used,
        processes=device.holders().map(partial(_processes, host)),
        driver=nvml.driver_version(),
        runtime=nvml.cuda_version(),
        compute_capability=device.ask("nvmlDeviceGetCudaComputeCapability", read=lambda pair: f"{pair[0]}.{pair[1]}"),
        matrix_units=BY_GENERATION,
        precisions=BY_GENERATION,
        pci_path=topology.path_of(host, path) if address.value else missing(address.source, address.reason),
        pcie=PcieLink(
            generation=device.integer("nvmlDeviceGetCurrPcieLinkGeneration"),
            lanes=device.integer("nvmlDeviceGetCurrPcieLinkWidth"),
            generation_max=device.integer("nvmlDeviceGetMaxPcieLinkGeneration"),
            lanes_max=device.integer("nvmlDeviceGetMaxPcieLinkWidth"),
        ),
        numa_node=topology.numa_node(host, path) if address.value else missing(address.source, address.reason),
        links=links,
        mig_enabled=mig,
        mig_instances=slices,
        power_default_watts=device.watts("nvmlDeviceGetPowerManagementDefaultLimit"),
        power_limit_watts=device.watts("nvmlDeviceGetEnforcedPowerLimit"),
        power_watts=device.watts("nvmlDeviceGetPowerUsage"),
        temperature_celsius=device.temperature(),
        temperature_limit_celsius=device.ask("nvmlDeviceGetTemperatureThreshold", nvml.SLOWDOWN_THRESHOLD, read=float),
        throttle=device.throttle(),
        clock_mhz=device.clock(),
        clock_max_mhz=device.integer("nvmlDeviceGetMaxClockInfo", nvml.SM_CLOCK),
        integrated=integrated,
        visible=visibility,
        uuid=uuid,
    )


def _processes(host: Host, holders: tuple[tuple[int, int | None], ...]) -> tuple[GpuProcess, ...]:
    return tuple(gpu_process(host, pid, _used_memory(used)) for pid, used in holders)


def _used_memory(used: int | None) -> Fact[int]:
    source = "NVML nvmlDeviceGetComputeRunningProcesses"
    return missing(source, "the driver does not tell here") if used is None else detected(used, source)


def _mig_instances(
    environment: Mapping[str, str], device: nvml.Device, enabled: Fact[bool], whole: bool
) -> Fact[tuple[MigInstance, ...]]:
    """Return the slices; those of a GPU that is not visible as a whole may be named one by one."""
    if not enabled.value:
        return missing(enabled.source, enabled.reason or "MIG is off")
    slices = device.integer("nvmlDeviceGetMaxMigDeviceCount").value
    entries = _visible_entries(environment) or []
    instances = []
    for instance in device.mig_devices():
        memory = instance.memory().value
        owned = instance.ask(
            "nvmlDeviceGetAttributes", read=lambda attributes: int(attributes.gpuInstanceSliceCount)
        ).value
        name = instance.text("nvmlDeviceGetName").value or "MIG instance"
        share = owned / slices if owned and slices else slice_share(name)
        is_visible = whole or _is_named(entries, instance.text("nvmlDeviceGetUUID"))
        instances.append(MigInstance(name, memory.total if memory else None, share, is_visible))
    return detected(tuple(instances), "NVML nvmlDeviceGetMigDeviceHandleByIndex")


def visible(environment: Mapping[str, str], index: int, uuid: Fact[str]) -> Fact[bool]:
    """Return whether CUDA_VISIBLE_DEVICES leaves the device to programs."""
    entries = _visible_entries(environment)
    if entries is None:
        return detected(True, "CUDA_VISIBLE_DEVICES is not set")
    return detected(str(index) in entries or _is_named(entries, uuid), "environment CUDA_VISIBLE_DEVICES")


def _visible_entries(environment: Mapping[str, str]) -> list[str] | None:
    """Return the entries that CUDA reads, which stops at a wrong one; None where all devices are visible."""
    listed = environment.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return None
    stripped = (entry.strip() for entry in listed.split(","))
    return list(takewhile(lambda entry: entry.isdigit() or entry.startswith(("GPU-", "MIG-")), stripped))


def _is_named(entries: list[str], uuid: Fact[str]) -> bool:
    return any((uuid.value or "").startswith(entry) for entry in entries)


def _with_peers(answers: tuple[Answer, ...]) -> tuple[Accelerator, ...]:
    """Return the accelerators with the far ends of their links as device indices."""
    indices = {answer.address: answer.accelerator.index for answer in answers if answer.address}

    def peers(ends: tuple[str | None, ...]) -> tuple[LinkPeer, ...]:
        counted = Counter(indices.get(end) if end else None for end in ends)
        ordered = sorted(counted.items(), key=lambda item: -1 if item[0] is None else item[0])
        return tuple(LinkPeer("NVLink", peer, links) for peer, links in ordered)

    def linked(answer: Answer) -> Accelerator:
        links = answer.accelerator.links.map(lambda _: peers(answer.link_ends))
        return replace(answer.accelerator, links=links)

    return tuple(linked(answer) for answer in answers)


def _matrix(devices: tuple[Fact[nvml.Device], ...], answers: tuple[Answer, ...]) -> Fact[LinkMatrix]:
    count = len(devices)
    if count == 1:
        return missing("NVML", "a single GPU")
    rows = [["X"] * count for _ in range(count)]
    for first in range(count):
        for second in range(first + 1, count):
            link = _nvlink(answers[first], answers[second]) or _pcie_level(devices[first], devices[second])
            rows[first][second] = rows[second][first] = link
    return detected(tuple(tuple(row) for row in rows), "NVML link states and common ancestors")


def _nvlink(first: Answer, second: Answer) -> str | None:
    """Return ``NV#`` for links straight to the other, or through switches that both are on."""
    direct = first.link_ends.count(second.address) if second.address else 0
    switched = min(first.link_ends.count(None), second.link_ends.count(None))
    return f"NV{direct or switched}" if direct or switched else None


def _pcie_level(first: Fact[nvml.Device], second: Fact[nvml.Device]) -> str:
    if first.value is None or second.value is None:
        return "?"
    return first.value.level_to(second.value).value or "?"


MODEL = "/proc/device-tree/model"
RELEASE = "/etc/nv_tegra_release"

# NVIDIA's CUDA GPU list: compute capability by chip.
CAPABILITIES = {"Orin": "8.7", "Xavier": "7.2", "Thor": "11.0", "TX2": "6.2", "Nano": "5.3"}


def probe_jetson(host: Host) -> ProbedDevices:
    """Return the GPU of a Jetson; raises NotPresentError elsewhere."""
    model = host.text(MODEL)
    if "Jetson" not in (model.value or ""):
        raise NotPresentError("not a Jetson board")
    chip = next((name for name in CAPABILITIES if name in str(model.value)), None)
    total, free, used = shared_memory(probe_memory(host))
    bare = unknown_accelerator(0, VENDOR, MODEL, "the board's driver does not tell")
    named = detected(CAPABILITIES[chip], MODEL) if chip else missing(MODEL, "a chip that is not known")
    board = replace(
        bare,
        name=model,
        memory_total_bytes=total,
        memory_free_bytes=free,
        memory_used_bytes=used,
        compute_capability=named,
        driver=host.fact(RELEASE, _release),
        integrated=detected(True, MODEL),
        visible=detected(True, MODEL),
    )
    return ProbedDevices((board,), missing("device tree", "a single GPU"))


def _release(text: str) -> str:
    """Return such as ``R36.4.3`` from ``# R36 (release), REVISION: 4.3, ...``."""
    match = re.search(r"# (R\d+) \(release\), REVISION: ([\d.]+)", text)
    if match is None:
        raise ValueError(text)
    return f"{match[1]}.{match[2]}"


VENDOR = "NVIDIA"
UNIFIED_NAMES = re.compile(r"\b(GB10|Orin|Xavier|Thor|Tegra)\b")  # memory shared with the CPU
MIG_SLICES = 7  # NVIDIA MIG user guide: compute slices of A100 and later; A30 has four and says so itself


def slice_share(name: str) -> float | None:
    """Return the part of a GPU's compute slices that a MIG profile such as ``3g.40gb`` has; most GPUs have seven."""
    profile = re.search(r"\b(\d)g\.\d+gb", name)
    return int(profile[1]) / MIG_SLICES if profile else None
