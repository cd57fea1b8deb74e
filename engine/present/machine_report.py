"""All that is known about a machine as parts of a report: facts, benchmarks, score, what a plan meets, settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Score, placement_advice, score_machine
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Answer, Note
from capacity_tui.engine.machine import (
    Accelerator,
    Fact,
    Machine,
    MeasuredFacts,
    MemoryModule,
    NetworkInterface,
    Process,
    cooling_now,
    topology_lines,
)
from capacity_tui.engine.machine.benchmark import (
    MEASURING,
    NOT_MEASURED,
    BenchmarkReport,
    Measurement,
    Skipped,
    Unit,
    busy_text,
)
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.solve import answer, settings_for
from capacity_tui.engine.solve.advice import (
    job_notes,
    power_need,
    power_text,
    predicted_bottleneck,
    run_space,
    space_text,
)
from capacity_tui.engine.units import (
    format_bandwidth,
    format_bytes,
    format_flops,
    format_percent,
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


def benchmark_parts(report: BenchmarkReport, before: BenchmarkReport | None = None) -> Iterator[Part]:
    """Yield the figures, their spread and those of the time before, the verdict on cooling, and what is missing."""
    heads, rows = ("figure", "median", "10th to 90th percentile", "how"), [_figure_row(one) for one in report.measured]
    if before is None:
        yield table_part(heads, rows, right=(1,))
    else:
        earlier = ((one, before.find(one.id)) for one in report.measured)
        texts = ["–" if old is None else _figure_text(old.spread.median, one.unit) for one, old in earlier]
        rows = [(row[0], text, *row[1:]) for row, text in zip(rows, texts, strict=True)]
        yield table_part((heads[0], f"on {before.date[:10]}", "now", *heads[2:]), rows, right=(1, 2))
    if report.disturbed:
        yield TextPart(f"These figures are not used in estimates: {busy_text(report)}", "strong")
    for judged in report.cooling:
        yield TextPart(f"cooling of GPU {judged.index}: {judged.verdict}, {judged.evidence}")
    for entry in report.skipped:
        yield TextPart(f"{entry.id}: not measured, {entry.reason}", "quiet")


def benchmark_figure_text(figure: Measurement | Skipped | None) -> str:
    """Return a figure that just came in, with its spread, or why it was not measured; empty for none."""
    if figure is None:
        return ""
    if isinstance(figure, Skipped):
        return f"{figure.id}: not measured, {figure.reason}"
    median, low, high = _figure_ends(figure)
    return f"{figure.name} {median} ({low} – {high})"


def _figure_row(figure: Measurement) -> tuple[str, ...]:
    median, low, high = _figure_ends(figure)
    return figure.name, median, f"{low} – {high}", f"{figure.how}; {figure.spread.samples} samples"


def _figure_ends(figure: Measurement) -> tuple[str, str, str]:
    spread, unit = figure.spread, figure.unit
    return _figure_text(spread.median, unit), _figure_text(spread.p10, unit), _figure_text(spread.p90, unit)


def _figure_text(value: float, unit: Unit) -> str:
    if unit == "FLOP/s":
        return format_flops(value, per_second=True)
    if unit == "share":
        return format_percent(value)
    if unit == "B/s":
        return format_bandwidth(value)
    return format_seconds(value) if unit == "s" else format_rate(value, "accesses/s" if unit == "1/s" else unit)


def score_parts(score: Score) -> Iterator[Part]:
    """Yield the score with the rule behind it."""
    yield TextPart(f"Performance score: {score.value:.1f}/10, tier {score.tier} ({score.verdict})", "strong")
    rows = [
        (
            part.name,
            part.value_text(),
            "" if part.points is None else f"{part.points:.1f}",
            f"{part.weight:.0%}",
            part.known,
        )
        for part in score.parts
        if part.reason != NOT_MEASURED
    ]
    yield table_part(("part", "value", "points", "weight", "source"), rows, right=(2, 3))
    unmeasured = [part.name for part in score.parts if part.reason == NOT_MEASURED]
    if unmeasured:
        yield TextPart(f"{', '.join(unmeasured)}: {NOT_MEASURED}", "quiet")
    yield TextPart(f"{score.rule}; weakest: {score.weakest}", "quiet")


def job_parts(machine: Machine, result: Answer, catalog: Catalog, is_example: bool = False) -> Iterator[Part]:
    """Yield what limits a job on this machine, and what to do and to know about it.

    Args:
        result: the job, estimated.
        is_example: whether nobody asked about this job.
    """
    suggestions, warnings = job_notes(machine, result, catalog, is_example)
    name = result.plan.model.name or "the model"
    if is_example:
        yield TextPart(f"No job given: {name} is used as a small example (detect --job PLAN takes another)", "quiet")
    yield TextPart(f"Predicted bottleneck for {name}: {predicted_bottleneck(result)}", "strong")
    space = run_space(machine, result, catalog)
    if space is not None:
        yield TextPart(f"Disk space needed: {space_text(space)}")
    yield TextPart(f"Power: {power_text(power_need(machine, catalog, result.plan.watch.supply_watts))}")
    text = cooling_now(machine) or ("not known: no sensor",)
    yield TextPart(f"Cooling: {'; '.join(text)} (under load: {MEASURING})")
    if not suggestions:
        yield TextPart(f"Optimization suggestions: none, nothing tried improves {name} here")
    yield from _notes("Optimization suggestions", suggestions)
    yield from _notes("Warnings", warnings)


def surroundings_parts(machine: Machine, catalog: Catalog, ascii_only: bool) -> Iterator[Part]:
    """Yield topology and settings."""
    yield TextPart("Topology:", "strong")
    yield from (TextPart(f"  {line}") for line in topology_lines(machine, ascii_only))
    for advice in placement_advice(machine, catalog):
        yield TextPart(f"  - {advice.dimension}: {advice.where} ({advice.reason})")
    yield TextPart("Settings:", "strong")
    yield table_part(("setting", "value", "why"), [(s.name, s.value, s.reason) for s in settings_for(machine)])


def machine_report_parts(
    machine: Machine,
    plan: Plan,
    benchmarks: BenchmarkReport | None,
    catalog: Catalog,
    ascii_only: bool,
    before: BenchmarkReport | None = None,
) -> Iterator[Part]:
    """Yield benchmarks, facts, score, what a plan meets here, topology and settings."""
    if benchmarks is not None:
        yield TextPart("Benchmarks:", "strong")
        yield from benchmark_parts(benchmarks, before)
        yield TextPart()
    yield TextPart("Facts:", "strong")
    yield from machine_parts(machine)
    yield TextPart()
    yield from score_parts(score_machine(machine, catalog))
    yield TextPart()
    yield from _plan_parts(machine, plan, catalog)
    yield TextPart()
    yield from surroundings_parts(machine, catalog, ascii_only)


def _plan_parts(machine: Machine, plan: Plan, catalog: Catalog) -> Iterator[Part]:
    try:
        result = answer(plan, machine, catalog)
    except CapacityError as error:
        yield TextPart(f"n/a ({error.one_line()})", "quiet")
        return
    yield from job_parts(machine, result, catalog)


def _notes(title: str, notes: Sequence[Note]) -> Iterator[Part]:
    if notes:
        yield TextPart(f"{title}:", "strong")
        yield from (TextPart(f"  - {note.title}: {note.detail}") for note in notes)
