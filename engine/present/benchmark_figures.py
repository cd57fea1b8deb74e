"""What benchmarks measure, as parts of a report and in a line."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.machine.benchmark import BenchmarkReport, Measurement, Skipped, Unit, busy_text
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.units import format_bandwidth, format_flops, format_rate, format_seconds


def benchmark_parts(report: BenchmarkReport, before: BenchmarkReport | None = None) -> Iterator[Part]:
    """Yield the figures with their spread, the verdict on the cooling, and what was not measured.

    Args:
        report: what was measured.
        before: what was measured the time before, to stand beside it.
    """
    heads, rows = ("figure", "median", "10th to 90th percentile", "how"), [_row(one) for one in report.measured]
    if before is None:
        yield table_part(heads, rows, right=(1,))
    else:
        earlier = ((one, before.find(one.id)) for one in report.measured)
        texts = ["–" if old is None else _text(old.spread.median, one.unit) for one, old in earlier]
        rows = [(row[0], text, *row[1:]) for row, text in zip(rows, texts, strict=True)]
        yield table_part((heads[0], f"on {before.date[:10]}", "now", *heads[2:]), rows, right=(1, 2))
    if report.disturbed:
        yield TextPart(f"These figures do not count in estimates: {busy_text(report)}", "strong")
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
    return format_seconds(value) if unit == "s" else format_rate(value, "accesses/s" if unit == "1/s" else unit)
