"""A machine's facts as parts of a report, each with how it is known; nothing here needs numbers of estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from capacity_tui.engine.machine import (
    Accelerator,
    Fact,
    Machine,
    MeasuredFacts,
    MemoryModule,
    NetworkInterface,
    Process,
)
from capacity_tui.engine.machine.benchmark import MEASURING, NOT_MEASURED
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.units import (
    format_bandwidth,
    format_bytes,
    format_flops,
    format_power,
    format_rate,
    format_seconds,
    format_temperature,
)

_INDENT = "  "
_MEASURED = "Measured "
Row = tuple[str, Fact[Any], Callable[[Any], str]]


def machine_parts(machine: Machine) -> Iterator[Part]:
    """Yield what a machine is, each fact with how it is known; below what is not known, a line for each reason."""
    rows = [*_host_rows(machine)]
    for device in machine.accelerators:
        rows += _device_rows(device)
    for disk in machine.disks:
        rows += [(f"Disk {disk.mount}", disk.kind, str), ("  free", disk.free_bytes, format_bytes)]
    for card in machine.networks:
        if card.kind != "virtual":
            rows.append((f"Network {card.name}", card.speed_mbps, partial(_network, card)))
    if machine.benchmarked:
        rows += _measured_rows(machine.benchmarked)
    cells = [_cells(label, fact, show) for label, fact, show in _known(rows)]
    yield table_part(("what", "value", "source"), cells)
    yield from _unknown(rows)
    for probe in machine.troubles:
        yield TextPart(f"{probe.name} {probe.outcome}: {probe.detail}; what it reports is not known", "strong")
    if not machine.accelerators:
        yield TextPart("No accelerator was found; plans for this machine run on its CPU.")


def _known(rows: list[Row]) -> list[Row]:
    """Return the rows with a value, and those that such a row stands under."""
    kept: list[Row] = []
    for row in reversed(rows):
        has_child = bool(kept) and kept[-1][0].startswith(_INDENT) and not row[0].startswith(_INDENT)
        if row[1].value is not None or has_child:
            kept.append(row)
    return kept[::-1]


def _unknown(rows: list[Row]) -> Iterator[Part]:
    """Yield what has no value in a line for each reason, what was not measured first."""
    names: dict[str, list[str]] = {}
    parent = ""
    for label, fact, _ in rows:
        parent = parent if label.startswith(_INDENT) else label
        if fact.value is None:
            is_part = label.startswith(_INDENT) and not parent.startswith(_MEASURED)
            name = f"{parent} {label.strip()}" if is_part else label.removeprefix(_MEASURED).strip()
            names.setdefault(fact.reason, []).append(name)
    if unmeasured := names.pop(NOT_MEASURED, []):
        yield TextPart(f"Not measured yet: {', '.join(unmeasured)} ({MEASURING} does)", "quiet")
    for reason, labels in names.items():
        yield TextPart(f"Not known: {', '.join(labels)} ({reason})", "quiet")


def _host_rows(machine: Machine) -> Iterator[Row]:
    cpu, memory, power = machine.cpu, machine.memory, machine.power
    yield from (
        ("CPU", cpu.model, str),
        ("  microarchitecture", cpu.microarchitecture, str),
        ("  sockets", cpu.sockets, str),
        ("  cores", cpu.physical_cores, str),
        ("  threads", cpu.threads, str),
        ("  threads usable", cpu.usable_threads, str),
        ("  NUMA nodes", cpu.numa_nodes, lambda nodes: str(len(nodes))),
        ("  vector units", cpu.simd, ", ".join),
        ("  base clock", cpu.base_mhz, _megahertz),
        ("  boost clock", cpu.boost_mhz, _megahertz),
        ("  power limit", power.package_limit_watts, format_power),
        ("  temperature", power.package_celsius, format_temperature),
        ("  held back by heat", power.package_throttles, lambda count: f"{count} times since the system started"),
        ("RAM", memory.total_bytes, format_bytes),
        ("  available", memory.available_bytes, format_bytes),
        ("  held by system and programs", memory.held_bytes, format_bytes),
        ("  limit", memory.limit_bytes, format_bytes),
        ("  modules", machine.modules.modules, _modules),
        ("  bandwidth", machine.modules.bandwidth, format_bandwidth),
        ("  largest processes", machine.processes, _processes),
        ("Swap", machine.swap.total_bytes, format_bytes),
        ("  lies on", machine.swap.kind, str),
        ("  pages come back at", machine.swap.bandwidth, format_bandwidth),
        ("Container", machine.container.kind, str),
        ("Battery", power.battery_percent, lambda percent: f"{percent:.0f} %"),
        ("  on mains", power.on_mains, lambda on: "yes" if on else "no"),
    )
    yield from ((stack.name, stack.version, str) for stack in machine.stacks)


def _device_rows(device: Accelerator) -> list[Row]:
    return [
        (f"GPU {device.index}", device.name, str),
        ("  catalogue", device.catalogue_id, str),
        ("  memory", device.memory_total_bytes, format_bytes),
        ("  free", device.memory_free_bytes, format_bytes),
        ("  shares main memory", device.integrated, lambda shared: "yes" if shared else "no"),
        ("  slices", device.mig_instances, lambda slices: ", ".join(entry.name for entry in slices) or "none"),
        ("  compute capability", device.compute_capability, str),
        ("  matrix units", device.matrix_units, str),
        ("  number types", device.precisions, ", ".join),
        ("  boost clock", device.clock_max_mhz, _megahertz),
        ("  power", device.power_watts, format_power),
        ("  power limit", device.power_limit_watts, format_power),
        ("  temperature", device.temperature_celsius, format_temperature),
        ("  held back by", device.throttle, lambda reasons: ", ".join(reasons) or "nothing"),
        ("  driver", device.driver, str),
        ("  runtime", device.runtime, str),
    ]


def _measured_rows(measured_facts: MeasuredFacts) -> list[Row]:
    def flops(rate: float) -> str:
        return format_flops(rate, per_second=True)

    return [
        (f"{_MEASURED}fp32", measured_facts.fp32_flops, flops),
        ("  fp64", measured_facts.fp64_flops, flops),
        ("  core", measured_facts.core_speed, lambda share: f"{share:.2f} of a server's"),
        ("  memory bandwidth", measured_facts.memory_bandwidth, format_bandwidth),
        ("  disk read", measured_facts.disk_read, format_bandwidth),
        ("  disk write", measured_facts.disk_write, format_bandwidth),
        ("  random reads", measured_facts.random_reads, lambda rate: format_rate(rate, "accesses/s")),
        ("  loopback", measured_facts.loopback_seconds, format_seconds),
        ("  patterns stored", measured_facts.stored_patterns, lambda rate: format_rate(rate, "patterns/s")),
        ("  patterns found", measured_facts.found_patterns, lambda rate: format_rate(rate, "patterns/s")),
    ]


def _megahertz(clock: float) -> str:
    return f"{clock:.0f} MHz"


def _modules(modules: tuple[MemoryModule, ...]) -> str:
    kinds = {(module.size_bytes, module.kind, module.speed_mts) for module in modules}
    if len(kinds) > 1:
        return f"{len(modules)} of several kinds"
    size, kind, speed = next(iter(kinds))
    return f"{len(modules)} × {format_bytes(size)} {kind}" + (f"-{speed}" if speed else "")


def _processes(processes: tuple[Process, ...]) -> str:
    named = (f"{process.name} {format_bytes(process.memory_bytes)}" for process in processes)
    return ", ".join(named) or "none above 1 GiB"


def _network(card: NetworkInterface, speed: int) -> str:
    return f"{card.kind}, {speed / 1000:g} Gb/s" + ("" if card.up.value is not False else ", down")


def _cells(label: str, fact: Fact[Any], show: Callable[[Any], str]) -> tuple[str, str, str]:
    if fact.value is None:
        return label, f"n/a ({fact.reason})", ""
    return label, show(fact.value), f"{fact.origin}: {fact.source}"
