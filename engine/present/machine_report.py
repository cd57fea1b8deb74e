"""All that is known about a machine as parts of a report: facts, benchmarks, score, what a plan meets, settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Score, placement_advice, score_machine
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Answer, Note
from capacity_tui.engine.machine import Machine, cooling_now, topology_lines
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
from capacity_tui.engine.present.machine_facts import machine_parts
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
from capacity_tui.engine.units import format_bandwidth, format_flops, format_percent, format_rate, format_seconds


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
