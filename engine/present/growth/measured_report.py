"""Runs of a series, and settings that were ranked, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.engine.growth import Measurement, RankedSetting, Series
from capacity_tui.engine.present.as_builtins import to_builtins
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.printable import csv_table
from capacity_tui.engine.units import NOT_AVAILABLE, format_bytes, format_seconds, format_significant

_RUN_HEADS = ("n", "time", "peak memory", "disk", "CPU time", "")
_RUN_RIGHT = (0, 1, 2, 3, 4)
_LATER = ("efficiency", "metric", "time", "peak memory", "")


def measured_as_dict(series: Series) -> dict[str, object]:
    """Return the runs of a series as plain data."""
    return {
        "measured": [to_builtins(each) for each in series.measured],
        "wanted": series.wanted,
        "complete": series.complete,
    }


def measured_parts(measured: Sequence[Measurement], size: str) -> Iterator[Part]:
    """Yield the runs of a series as a table, by the size that is one of their settings."""
    rows = [
        (
            format_significant(float(each.set[size])),
            format_seconds(each.seconds),
            format_bytes(each.peak_memory_bytes),
            format_bytes(each.disk_bytes),
            format_seconds(each.cpu_seconds),
            each.problem,
        )
        for each in measured
    ]
    yield table_part(_RUN_HEADS, rows, _RUN_RIGHT)


def measured_line(each: Measurement, is_known: bool) -> str:
    """Return one run as a line, as it is told when it has ended."""
    words = " ".join(f"{key}={value}" for key, value in each.set.items())
    memory = f", {format_bytes(each.peak_memory_bytes)}" if each.peak_memory_bytes else ""
    metric = f", metric {format_significant(each.metric)}" if each.metric is not None else ""
    before = ", measured before" if is_known else ""
    return f"{words}: {each.problem or f'{format_seconds(each.seconds)}{memory}{metric}'}{before}"


def ranked_as_dict(series: Series, ranked: Sequence[RankedSetting]) -> dict[str, object]:
    """Return ranked settings as plain data, under the names that scripts rely on."""
    return {"ranked": [to_builtins(each) for each in ranked], "wanted": series.wanted, "complete": series.complete}


def ranked_parts(series: Series, ranked: Sequence[RankedSetting]) -> Iterator[Part]:
    """Yield ranked settings as a table and what there is to say of it."""
    keys = tuple(dict.fromkeys(key for each in ranked for key in each.set))
    rows = [(*(each.set.get(key, "") for key in keys), *_cells(each)) for each in ranked]
    yield table_part((*keys, *_LATER), rows, range(len(keys) + len(_LATER) - 1))
    start = max((each.start_seconds for each in ranked), default=0.0)
    if start:
        yield TextPart(f"efficiency is without the {format_seconds(start)} that every run takes to start", "quiet")
    failed = sum(1 for each in ranked if each.problem)
    if failed:
        yield TextPart(f"{failed} of {len(ranked)} settings failed", "strong")
    if not series.complete:
        yield TextPart(f"stopped after {len(series.measured)} of {series.wanted} runs", "quiet")


def _cells(each: RankedSetting) -> tuple[str, ...]:
    metric = NOT_AVAILABLE if each.metric is None else format_significant(each.metric)
    done = NOT_AVAILABLE if each.efficiency is None else f"{format_significant(each.efficiency)}/s"
    return (done, metric, format_seconds(each.seconds), format_bytes(each.peak_memory_bytes), each.problem)


def ranked_as_csv(ranked: Sequence[RankedSetting]) -> str:
    """Return ranked settings as comma-separated values."""
    keys = tuple(dict.fromkeys(key for each in ranked for key in each.set))
    columns = ("efficiency", "metric", "seconds", "peak_memory_bytes", "exit_code")
    rows = ({**each.set, **{name: getattr(each, name) for name in columns}} for each in ranked)
    return csv_table((*keys, *columns), rows)
