"""What benchmarks measure, as tables and in a line."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from capacity_tui.engine.api import (
    BenchmarkProgress,
    BenchmarkReport,
    Measurement,
    Skipped,
    Unit,
    busy_text,
    format_bandwidth,
    format_flops,
    format_rate,
    format_seconds,
)
from capacity_tui.tui.headless.tables.layout import table
from capacity_tui.tui.view import BenchmarkStep


def report_tables(report: BenchmarkReport) -> Iterator[RenderableType]:
    """Yield the figures with their spread, the verdict on the cooling, and what was not measured."""
    rows = [_row(figure) for figure in report.measured]
    yield table(("figure", "median", "10th to 90th percentile", "how"), rows, right=(1,))
    if report.disturbed:
        yield Text(f"These figures do not count in estimates: {busy_text(report)}", style="bold")
    for judged in report.cooling:
        yield Text(f"cooling of GPU {judged.index}: {judged.verdict}, {judged.evidence}")
    for entry in report.skipped:
        yield Text(f"{entry.id}: not measured, {entry.reason}", style="dim")


def step_of(step: BenchmarkProgress) -> BenchmarkStep:
    """Return how far the benchmarks are, in the words of the screen."""
    return BenchmarkStep(step.group, step.done + 1, step.total, _latest(step.latest))


def _latest(figure: Measurement | Skipped | None) -> str:
    if figure is None:
        return ""
    if isinstance(figure, Skipped):
        return f"{figure.id}: not measured, {figure.reason}"
    median, low, high = _spread(figure)
    return f"{figure.name} {median} ({low} – {high})"


def _row(figure: Measurement) -> tuple[str, ...]:
    median, low, high = _spread(figure)
    return figure.name, median, f"{low} – {high}", f"{figure.how}; {figure.spread.samples} samples"


def _spread(figure: Measurement) -> tuple[str, str, str]:
    """Return median, 10th and 90th percentile as shown."""
    spread, unit = figure.spread, figure.unit
    return _text(spread.median, unit), _text(spread.p10, unit), _text(spread.p90, unit)


def _text(value: float, unit: Unit) -> str:
    if unit == "FLOP/s":
        return format_flops(value, per_second=True)
    if unit == "B/s":
        return format_bandwidth(value)
    return format_seconds(value) if unit == "s" else format_rate(value, "accesses/s")
