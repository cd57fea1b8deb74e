"""Hardware as facts of the screen: this machine, the cluster of a plan, the load, the sensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import ceil

from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.machine import Accelerator, Disk, Fact, Machine, NetworkInterface, Quantity, Sampler
from capacity_tui.engine.machine import Sample as EngineSample
from capacity_tui.engine.machine.vendors import GpuSample
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.units import (
    count_in_words,
    format_bandwidth,
    format_bytes,
    format_flops,
    format_money,
    format_percent,
    format_power,
    format_temperature,
)
from capacity_tui.tui.shown.comparison import HardwareRow, Row
from capacity_tui.tui.view import Reading

_PEAKS = ("bf16", "fp16", "fp32")
_LOADS = {"GPU", "VRAM", "CPU", "RAM"}


def cluster_rows(plan: Plan, cluster: Cluster, machine: Machine | None) -> tuple[HardwareRow, ...]:
    """Return what is planned for; of this machine's own hardware what was found."""
    device = cluster.device
    is_here = plan.hardware.name == "detected"
    rows = list(machine_rows(machine)) if is_here and machine else []
    known = cluster.figures()
    if not is_here:
        count = f"{int(cluster.devices)}×" if cluster.devices > 1 else ""
        memory = device.memory_bytes
        size = f"  {format_bytes(float(memory))}" if memory is not None else ""
        rows.append(HardwareRow(device.kind.upper(), f"{count}{device.name}{size}", _origin(known, "memory_bytes")))
        if cluster.devices > cluster.per_node:
            rows.append(HardwareRow(f"{cluster.levels[0].name.capitalize()}s", _nodes_text(cluster), "given"))
    peak = next((name for name in _PEAKS if name in device.peaks), None)
    if peak is not None:
        text = f"{format_flops(device.peaks[peak], per_second=True)} {peak}"
        rows.append(HardwareRow("Peak", text, _origin(known, f"peaks.{peak}")))
    rows.append(HardwareRow("Memory", format_bandwidth(float(device.bandwidth)), _origin(known, "bandwidth")))
    if cluster.per_node > 1:
        text = f"{format_bandwidth(float(device.link_bandwidth))} a direction"
        rows.append(HardwareRow("Link", text, _origin(known, "link_bandwidth")))
    for below, level in pairwise(cluster.levels):
        if cluster.devices > below.devices:
            label = "Network" if len(cluster.levels) == 2 else level.name.capitalize()
            rows.append(HardwareRow(label, f"{level.holds}, {level.speed}", level.known.origin))
    if cluster.price.rate is not None:
        rented = f"{cluster.rented}, " if cluster.rented else ""
        origin = "catalogue" if plan.pricing.usd_per_hour is None else "given"
        hour = f"{format_money(cluster.price.rate)} an hour"
        rows.append(HardwareRow("Price", f"{hour}, {rented}{cluster.price.rate_source}", origin))
    return tuple(rows)


def _nodes_text(cluster: Cluster) -> str:
    """Return how many nodes of how many devices there are, and what of the last one is idle."""
    nodes = ceil(float(cluster.devices / cluster.per_node))
    idle = nodes * cluster.per_node - cluster.devices
    return f"{nodes} × {cluster.per_node:g} {cluster.device.kind.upper()}s{f' ({idle:g} idle)' if idle else ''}"


def run_words(plan: Plan) -> str:
    """Return what is done, such as ``qlora`` or ``infer``."""
    return (plan.is_finetuning and plan.training.method) or plan.task or ""


def hardware_words(plan: Plan, cluster: Cluster) -> str:
    """Return what it is done on, whose it is where it is rented, and its price an hour."""
    count = f"{int(cluster.devices)}×" if cluster.devices > 1 else ""
    rented = plan.hardware.name if cluster.rented else ""
    price = "" if cluster.price.rate is None else f"{format_money(cluster.price.rate)}/h"
    return " ".join(word for word in (f"{count}{cluster.device.name}", rented, price) if word)


def _origin(known: Mapping[str, Quantity], name: str) -> str:
    return known[name].origin if name in known else "catalogue"


def simulated(plan: Plan, cluster: Cluster, machine: Machine | None) -> str:
    """Return what the machine really has, where the plan is for something else; else an empty text."""
    if plan.hardware.name == "detected" or machine is None:
        return ""
    here = machine.accelerators
    same = [device for device in here if device.catalogue_id.value == cluster.device.id]
    if len(same) >= cluster.devices:
        return ""
    if not here:
        return "not this machine"
    return f"not this machine's {len(here)} GPU{'s' if len(here) > 1 else ''}"


def reading_of(sample: EngineSample) -> tuple[Reading, ...]:
    """Return a sample as graphs, the GPUs first; of disks and networks both directions together."""
    memory = sample.memory_total_bytes.value
    cpu = sample.cpu_percent
    used = sample.memory_used_bytes
    return (
        *_gpu_readings(sample.gpus),
        _reading("CPU", cpu, 100, _percent(cpu.value)),
        _reading("RAM", used, memory, format_bytes(used.value)),
        _rate("Disk", sample.disk_read_bytes_per_second, sample.disk_write_bytes_per_second),
        _rate("Net", sample.network_receive_bytes_per_second, sample.network_send_bytes_per_second),
    )


def load_rows(machine: Machine, readings: tuple[Reading, ...]) -> tuple[Row, ...]:
    """Return how busy devices and how full memories and disks are, each with its share."""
    rows = [
        Row("", reading.name, reading.text, share=reading.value / reading.maximum)
        for reading in readings
        if reading.value is not None and reading.maximum and reading.name in _LOADS
    ]
    for disk in machine.disks:
        total, free = disk.total_bytes.value, disk.free_bytes.value
        if total and free is not None:
            text = f"{format_bytes(total - free)} of {format_bytes(total)}"
            rows.append(Row("", f"Disk {disk.mount}", text, share=1 - free / total))
    return tuple(rows)


def _gpu_readings(gpus: Fact[tuple[GpuSample, ...]]) -> Iterator[Reading]:
    """Yield the readings of each GPU; of many GPUs their mean, and the hottest one."""
    devices = gpus.value
    if not devices:
        yield Reading("GPU", None, None, "", gpus.reason or "none here")
        return
    busy = [gpu.utilization_percent.value for gpu in devices]
    used = _total([gpu.memory_used_bytes for gpu in devices])
    total = _total([gpu.memory_total_bytes for gpu in devices])
    watts = _total([gpu.power_watts for gpu in devices])
    heat = [gpu.temperature_celsius.value for gpu in devices if gpu.temperature_celsius.value is not None]
    known = [value for value in busy if value is not None]
    mean = sum(known) / len(known) if known else None
    yield Reading("GPU", mean, 100, _percent(mean), devices[0].utilization_percent.reason)
    yield Reading("VRAM", used, total, format_bytes(used), devices[0].memory_used_bytes.reason)
    yield Reading("Power", watts, None, format_power(watts), devices[0].power_watts.reason)
    hottest = max(heat, default=None)
    yield Reading("Heat", hottest, 100, format_temperature(hottest), devices[0].temperature_celsius.reason)


def _total(facts: Sequence[Fact[int]] | Sequence[Fact[float]]) -> float | None:
    known = [fact.value for fact in facts if fact.value is not None]
    return float(sum(known)) if known else None


def _reading(name: str, fact: Fact[float] | Fact[int], maximum: float | None, text: str) -> Reading:
    return Reading(name, None if fact.value is None else float(fact.value), maximum, text, fact.reason)


def _rate(name: str, *ways: Fact[float]) -> Reading:
    total = _total(ways)
    return Reading(name, total, None, "" if total is None else format_bandwidth(total), ways[0].reason)


def _percent(value: float | None) -> str:
    return "" if value is None else format_percent(value / 100)


def machine_rows(machine: Machine) -> Iterator[HardwareRow]:
    yield from _accelerator_rows(machine)
    cpu = machine.cpu
    cores = cpu.physical_cores.value or cpu.usable_threads.value
    sockets = f"{cpu.sockets.value}×" if (cpu.sockets.value or 1) > 1 else ""
    name = f"{sockets}{cpu.model.value}" if cpu.model.value else ""
    text = f"{name}  {count_in_words(cores, 'core')}" if name and cores else name
    yield HardwareRow("CPU", text, cpu.model.origin, cpu.model.reason)
    memory = machine.memory
    free = memory.available_bytes.value
    size = format_bytes(memory.total_bytes.value) if memory.total_bytes.value else ""
    text = f"{size}  {format_bytes(free)} free" if size and free else size
    yield HardwareRow("RAM", text, memory.total_bytes.origin, memory.total_bytes.reason)
    yield from _measured_row(machine)
    yield from (_disk_row(disk) for disk in machine.disks if disk.file_system != "tmpfs")
    yield from (_network_row(card) for card in machine.networks if card.kind not in {"virtual", "loopback"})
    yield from (HardwareRow(probe.name, "", "", f"{probe.outcome}: {probe.detail}") for probe in machine.troubles)


def _accelerator_rows(machine: Machine) -> Iterator[HardwareRow]:
    if not machine.accelerators:
        absent = (probe.detail for probe in machine.probes if probe.outcome != "found")  # those of devices come first
        yield HardwareRow("GPU", "", "", next(absent, "none found"))
        return
    for _, equal in groupby(machine.accelerators, key=lambda gpu: (gpu.name.value, gpu.memory_total_bytes.value)):
        yield _accelerator_row(list(equal))


def _accelerator_row(equal: list[Accelerator]) -> HardwareRow:
    first, last = equal[0], equal[-1]
    label = f"GPU {first.index}" if len(equal) == 1 else f"GPU {first.index}-{last.index}"
    size = first.memory_total_bytes.value
    text = f"{first.name.value}  {format_bytes(size)}" if first.name.value and size else first.name.value or ""
    return HardwareRow(label, text, first.name.origin, first.name.reason)


def _measured_row(machine: Machine) -> Iterator[HardwareRow]:
    """Yield what the benchmarks found, once they were run."""
    devices = machine.benchmarked
    if devices is None:
        return
    flops, bandwidth = devices.fp32_flops, devices.memory_bandwidth
    texts = [f"{format_flops(flops.value, per_second=True)} fp32"] if flops.value else []
    texts += [format_bandwidth(bandwidth.value)] if bandwidth.value else []
    if texts:
        yield HardwareRow("Measured", "  ".join(texts), "measured")


def _disk_row(disk: Disk) -> HardwareRow:
    size, free = disk.total_bytes, disk.free_bytes.value
    kind = disk.kind.value or disk.mount
    text = f"{kind} {format_bytes(size.value, 'GB')}" if size.value else ""
    return HardwareRow(
        "Disk", f"{text}  {format_bytes(free, 'GB')} free" if text and free else text, size.origin, size.reason
    )


def _network_row(card: NetworkInterface) -> HardwareRow:
    speed = card.speed_mbps
    text = f"{card.name}  {speed.value / 1000:g} Gb/s" if speed.value else ""
    return HardwareRow("Network", text, speed.origin, f"{card.name}: {speed.reason}" if speed.reason else "")


class LiveSampler:
    """The engine's sampler, in the words of the screen."""

    def __init__(self) -> None:
        self._sampler = Sampler()
        # Rates need a sample before the first one that is shown.
        self._sampler.sample()

    def sample(self) -> tuple[Reading, ...]:
        return reading_of(self._sampler.sample())
