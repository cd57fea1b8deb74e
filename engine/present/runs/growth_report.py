"""Laws of growth for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.engine.growth import (
    POWER,
    Choice,
    Extrapolated,
    GrowthFit,
    Judged,
    Measurement,
    RankedSetting,
    Series,
    SizedJob,
    SizedMachines,
)
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.parts import Column, Part, TextPart, columns_part, table_part
from capacity_tui.engine.present.results import picked, to_builtins
from capacity_tui.engine.printable import csv_table
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import (
    NOT_AVAILABLE,
    count_in_words,
    format_bytes,
    format_count,
    format_number,
    format_percent,
    format_quantity,
    format_seconds,
    format_significant,
)

_LAW_HEADS = ("law", "start", "rate", "exponent", "score", "weight")
_LAW_RIGHT = (1, 2, 3, 4, 5)
_SIZE_HEADS = ("n", "value", "from", "to")
_SIZE_RIGHT = (0, 1, 2, 3)
_LABELS = {"seconds": "Time", "peak_memory_bytes": "Peak memory", "disk_bytes": "Disk", "cpu_seconds": "CPU time"}
_SHOWN_WEIGHT = 0.001
_WIDEST = 100.0  # From what ratio of its ends on the range of a size that no law is decided for tells nothing


def growth_as_dict(fits: Sequence[GrowthFit]) -> dict[str, object]:
    """Return fits as plain data, under the names that scripts rely on: the first at the top, all in ``fits``."""
    first = fits[0]
    return {**_fit_as_dict(first), "fits": {growth_fit.figure: _fit_as_dict(growth_fit) for growth_fit in fits}}


def growth_parts(fits: Sequence[GrowthFit]) -> Iterator[Part]:
    """Yield fits as tables and lines."""
    for number, growth_fit in enumerate(fits):
        if number:
            yield TextPart()
        yield from _fit_parts(growth_fit)


def _fit_as_dict(fit: GrowthFit) -> dict[str, object]:
    choice = fit.choice
    return {
        "figure": fit.figure,
        "unit": fit.unit,
        "laws": [_law_as_dict(law) for law in choice.laws],
        "chosen": None if choice.chosen is None else choice.chosen.fitted.law.name,
        **picked(choice, "decided", "reason", "next_size"),
        "noise": choice.measured.noise,
        "extrapolated": [to_builtins(entry) for entry in fit.extrapolated],
        "points": [{"n": size, "value": value} for size, value in fit.points],
    }


def _law_as_dict(judged: Judged) -> dict[str, object]:
    fitted = judged.fitted
    parameters = {"start": fitted.start}
    if fitted.law.grows:
        parameters["rate"] = fitted.rate
    if fitted.law is POWER:
        parameters["exponent"] = fitted.power
    return {"name": fitted.law.name, "parameters": parameters, "score": judged.score, "weight": judged.weight}


def _fit_parts(fit: GrowthFit) -> Iterator[Part]:
    choice = fit.choice
    label = _LABELS.get(fit.figure, fit.figure)
    yield TextPart(f"{label}: {_verdict(choice)}", "strong")
    if choice.chosen is not None:
        yield TextPart(_formula(choice.chosen, fit.unit))
    yield TextPart(f"{choice.reason[:1].upper()}{choice.reason[1:]}.{_advice(choice)}")
    sizes, measurements = len(choice.measured.sizes), choice.measured.measurements
    noise = format_percent(choice.measured.noise, 1)
    if choice.laws:
        yield TextPart(f"{measurements} measurements at {sizes} sizes, which spread by {noise}", "quiet")
    shown = [law for law in choice.laws if law.weight >= _SHOWN_WEIGHT or law is choice.chosen]
    if shown:
        yield table_part(_LAW_HEADS, [_law_cells(entry, fit.unit, choice) for entry in shown], _LAW_RIGHT)
    if len(shown) < len(choice.laws):
        left_out = ", ".join(law.fitted.law.name for law in choice.laws if law not in shown)
        yield TextPart(f"excluded: {left_out}", "quiet")
    if fit.extrapolated:
        yield table_part(_SIZE_HEADS, [_size_cells(entry, fit) for entry in fit.extrapolated], _SIZE_RIGHT)


def _size_cells(extrapolated: Extrapolated, fit: GrowthFit) -> tuple[str, ...]:
    """Return what a size takes; where laws that meet the measurements are too far apart, that it is not known."""
    if not fit.choice.decided and extrapolated.high > _WIDEST * extrapolated.low:
        return (format_count(extrapolated.n), *("not known",) * (len(_SIZE_HEADS) - 1))
    return (
        format_count(extrapolated.n),
        *(format_quantity(value, fit.unit) for value in (extrapolated.value, extrapolated.low, extrapolated.high)),
    )


def _verdict(choice: Choice) -> str:
    if choice.chosen is None:
        return "not decided"
    name = choice.chosen.fitted.law.name
    return name if choice.decided else f"probably {name}, not decided"


def _formula(judged: Judged, unit: str) -> str:
    """Return a law with its numbers."""
    fitted = judged.fitted
    growing = {"O(log n)": "ln n", "O(n)": "n", "O(n log n)": "n ln n", "O(n^2)": "n^2", "O(n^3)": "n^3"}
    start = format_quantity(fitted.start, unit)
    if not fitted.law.grows:
        return f"{start} at any size"
    shape = growing.get(fitted.law.name, f"n^{fitted.power:.3g}")
    return f"{start} + {_rate(fitted.rate, unit)} x {shape}"


def _advice(choice: Choice) -> str:
    if choice.decided:
        return ""
    if choice.next_size is None:
        return " No larger size would distinguish them: measure the same sizes more often."
    return f" Measure n = {format_significant(choice.next_size)} next."


def _rate(rate: float, unit: str) -> str:
    """Return a factor, which may be far below what its unit is usually written with."""
    return f"{format_significant(rate)} {unit}".strip()


def _law_cells(judged: Judged, unit: str, choice: Choice) -> tuple[str, ...]:
    fitted = judged.fitted
    return (
        fitted.law.name + (" *" if judged is choice.chosen else ""),
        format_quantity(fitted.start, unit),
        _rate(fitted.rate, unit) if fitted.law.grows else "",
        f"{fitted.power:.3f}" if fitted.law is POWER else "",
        f"{judged.score:.1f}",
        format_percent(judged.weight, 1),
    )


_LATER = ("efficiency", "metric", "time", "peak memory", "")


def measured_as_dict(series: Series) -> dict[str, object]:
    """Return the runs of a series as plain data."""
    return {"measured": to_builtins(series.measured), **picked(series, "wanted", "complete")}


def measured_parts(measured: Sequence[Measurement], size: str) -> Iterator[Part]:
    """Yield the runs of a series as a table, by the size that is one of their settings."""
    columns: Sequence[Column[Measurement]] = (
        Column("n", lambda run: format_significant(float(run.set[size])), is_right=True),
        Column("time", lambda run: format_seconds(run.seconds), is_right=True),
        Column("peak memory", lambda run: format_bytes(run.peak_memory_bytes), is_right=True),
        Column("disk", lambda run: format_bytes(run.disk_bytes), is_right=True),
        Column("CPU time", lambda run: format_seconds(run.cpu_seconds), is_right=True),
        Column("", lambda run: run.problem),
    )
    yield columns_part(columns, measured)


def measured_line(measurement: Measurement, is_known: bool) -> str:
    """Return one run as a line, as it is reported when it has ended."""
    words = " ".join(f"{key}={value}" for key, value in measurement.set.items())
    memory = f", {format_bytes(measurement.peak_memory_bytes)}" if measurement.peak_memory_bytes else ""
    metric = f", metric {format_significant(measurement.metric)}" if measurement.metric is not None else ""
    before = ", measured before" if is_known else ""
    return f"{words}: {measurement.problem or f'{format_seconds(measurement.seconds)}{memory}{metric}'}{before}"


def ranked_as_dict(series: Series, ranked: Sequence[RankedSetting]) -> dict[str, object]:
    """Return ranked settings as plain data, under the names that scripts rely on."""
    return {"ranked": to_builtins(ranked), **picked(series, "wanted", "complete")}


def ranked_parts(series: Series, ranked: Sequence[RankedSetting]) -> Iterator[Part]:
    """Yield ranked settings as a table and what there is to say of it."""
    keys = tuple(dict.fromkeys(key for ranked_setting in ranked for key in ranked_setting.set))
    rows = [(*(ranked_setting.set.get(key, "") for key in keys), *_cells(ranked_setting)) for ranked_setting in ranked]
    yield table_part((*keys, *_LATER), rows, range(len(keys) + len(_LATER) - 1))
    start = max((ranked_setting.start_seconds for ranked_setting in ranked), default=0.0)
    if start:
        yield TextPart(f"efficiency excludes the {format_seconds(start)} that every run takes to start", "quiet")
    failed = sum(1 for ranked_setting in ranked if ranked_setting.problem)
    if failed:
        yield TextPart(f"{failed} of {len(ranked)} settings failed", "strong")
    if not series.complete:
        yield TextPart(f"stopped after {len(series.measured)} of {series.wanted} runs", "quiet")


def _cells(ranked_setting: RankedSetting) -> tuple[str, ...]:
    metric = NOT_AVAILABLE if ranked_setting.metric is None else format_significant(ranked_setting.metric)
    done = NOT_AVAILABLE if ranked_setting.efficiency is None else f"{format_significant(ranked_setting.efficiency)}/s"
    return (
        done,
        metric,
        format_seconds(ranked_setting.seconds),
        format_bytes(ranked_setting.peak_memory_bytes),
        ranked_setting.problem,
    )


def ranked_as_csv(ranked: Sequence[RankedSetting]) -> str:
    """Return ranked settings as comma-separated values."""
    keys = tuple(dict.fromkeys(key for ranked_setting in ranked for key in ranked_setting.set))
    columns = ("efficiency", "metric", "seconds", "peak_memory_bytes", "exit_code")
    rows = (
        {**ranked_setting.set, **{name: getattr(ranked_setting, name) for name in columns}} for ranked_setting in ranked
    )
    return csv_table((*keys, *columns), rows)


def sized_job_parts(job: SizedJob) -> Iterator[Part]:
    """Yield what a job needs as lines and a table."""
    yield TextPart()
    head = f"For n = {format_count(job.n)} in {format_seconds(job.deadline_seconds)} you need"
    split = f", split into {job.parts} parts that run in parallel" if job.parts > 1 else ""
    yield TextPart(f"{head}{split}:", "strong")
    per_part = " each" if job.parts > 1 else ""
    yield TextPart(f"cores     {format_number(job.cores)}")
    yield TextPart(f"memory    {_ranged(job.memory_bytes, 'B')}{per_part if job.memory_bytes else ''}")
    yield TextPart(f"storage   {_ranged(job.storage_bytes, 'B')}")
    yield TextPart(f"time      {_ranged(job.seconds, 's')}{per_part}")
    if job.database is not None:
        base = job.database
        stored, held = format_quantity(base.storage_bytes, "B"), format_quantity(base.memory_bytes, "B")
        with_cores = f", {count_in_words(base.cores, 'core')}" if base.cores else ""
        yield TextPart(f"database  {base.kind}, {stored}, {held} RAM{with_cores}: {base.reason}")
    if not job.machines:
        yield TextPart("No CPU-only instance holds a part of it.", "strong")
        return
    yield columns_part(_MACHINES, job.machines)
    yield TextPart("The cheapest of each provider; a core is taken to be as fast as those here.", "quiet")
    yield TextPart(f"price: {job.machines[0].price_source}", "quiet")


_MACHINES: Sequence[Column[SizedMachines]] = (
    Column("machines", lambda one: f"{one.count} x {one.instance}"),
    Column("cores", lambda one: format_number(one.cores), is_right=True),
    Column("RAM", lambda one: format_quantity(one.memory_bytes, "B"), is_right=True),
    Column("cost", lambda one: _ranged(one.usd, "USD"), is_right=True),
    Column("$/h", lambda one: format_quantity(one.usd_per_hour, "USD"), is_right=True),
    Column("storage", lambda one: format_quantity(one.storage_usd, "USD"), is_right=True),
)


def _ranged(figure: Interval | None, unit: str) -> str:
    if figure is None:
        return f"{NOT_AVAILABLE} (not measured)"
    value, low, high = (format_quantity(mean(end), unit) for end in (figure.value, figure.low, figure.high))
    return f"{value} ({low} to {high})"
