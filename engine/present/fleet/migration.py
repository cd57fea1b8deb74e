"""What moving a job would bring, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Derivation, recording
from capacity_tui.engine.fleet.migration import Alternative, Migration, MigrationQuestion, WorkloadRun, migrate
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.explanation import ExplanationText, FormulaInput, derived_step
from capacity_tui.engine.present.parts import (
    Column,
    Part,
    TextPart,
    columns_part,
    difference_text,
    table_part,
    write_parts,
)
from capacity_tui.engine.present.results import picked, to_builtins
from capacity_tui.engine.printable import csv_table
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import PERCENT, format_bytes, format_count, format_percent, format_quantity

_WORK: Mapping[str, str] = {
    Figure.TOKENS_PER_SECOND: "tok/s",
    Figure.SAMPLES_PER_SECOND: "samples/s",
    Figure.REQUESTS_PER_SECOND: "req/s",
}
"""What a machine works through in a second, the first of it that is known, with its unit."""

# Figures of each machine that stand beside what moving there costs.
_FIGURES = (
    Figure.MEMORY_RESERVED_BYTES,
    Figure.MEMORY_CAPACITY_BYTES,
    Figure.TOKENS_PER_SECOND,
    Figure.REQUESTS_PER_SECOND,
    Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS,
    Figure.STEP_SECONDS,
)

_NONE = "-"


def migration_as_dict(migration: Migration) -> dict[str, object]:
    """Return what moving would bring as plain data, under the names that scripts rely on."""
    return {
        "current": _as_dict(migration.current),
        "alternatives": [_as_dict(alternative) for alternative in migration.alternatives],
        "verdict": migration.verdict,
        "reasons": list(migration.reasons),
        "recommendations": to_builtins(migration.recommendations),
        **picked(migration, "complete", "share_done", "seconds"),
    }


def runs_as_dict(runs: Sequence[WorkloadRun]) -> dict[str, object]:
    """Return what moving workloads would bring as plain data."""
    return {"runs": [_run_as_dict(run) for run in runs]}


def _run_as_dict(run: WorkloadRun) -> dict[str, object]:
    data: dict[str, object] = {**picked(run, "workload", "name", "expected_outcome"), "found_outcome": run.outcome}
    return data if run.migration is None else {**data, **migration_as_dict(run.migration)}


def _as_dict(alternative: Alternative) -> dict[str, object]:
    data = to_builtins(alternative)
    assert isinstance(data, dict)  # noqa: S101 - a dataclass becomes one
    figures = {key: to_builtins(alternative.figures[key]) for key in _FIGURES if key in alternative.figures}
    return {**data, "figures": figures}


def _saving(one: Alternative) -> str:
    """Return what moving saves; of a machine that does not do the job why, in a few words."""
    if one.fits:
        return _percent(one.saving_percent)
    return f"{format_bytes(one.short_bytes)} short" if one.short_bytes else one.verdict.words


def _price_day(one: Alternative) -> str:
    return f"{one.price_date or _NONE}{' (old)' if one.price_is_old and one.price_date else ''}"


def _work(alternative: Alternative) -> str:
    known = next(((alternative.figures[key], unit) for key, unit in _WORK.items() if key in alternative.figures), None)
    return _NONE if known is None else f"{format_count(mean(known[0].value))} {known[1]}"


def _usd_per_million(alternative: Alternative) -> str:
    usd = alternative.figures.get(Figure.COST_USD_PER_MILLION_TOKENS)
    return _NONE if usd is None else format_quantity(mean(usd.value), "USD/M")


_COLUMNS: Sequence[Column[Alternative]] = (
    Column("instance", lambda one: one.instance),
    Column("n", lambda one: str(one.count), is_right=True),
    Column("$/h", lambda one: _money(one.usd_per_hour_spot if one.is_spot else one.usd_per_hour), is_right=True),
    Column("saving", _saving, is_right=True),
    Column("$/M tok", _usd_per_million, is_right=True),
    Column("work/s", _work, is_right=True),
    Column("equal-work cost", lambda one: _money(one.usd_same_work), is_right=True),
    Column("performance", lambda one: _percent(one.performance_percent), is_right=True),
    Column("risk", lambda one: one.risk.level),
    Column("month", lambda one: _money(one.usd_month), is_right=True),
    Column("spot month", lambda one: _money(one.usd_month_spot), is_right=True),
    Column("migration cost", lambda one: _money(one.move_usd), is_right=True),
    Column(
        "payback", lambda one: _NONE if (hours := one.break_even_hours) is None else f"{hours:.0f} h", is_right=True
    ),
    Column("complexity", lambda one: one.complexity.level),
    Column("price source", _price_day),
)


def migration_parts(migration: Migration, most: int | None = None) -> Iterator[Part]:
    """Yield the answer: verdict, table of so many alternatives, what moving there takes, and what is recommended."""
    yield TextPart(
        f"{migration.verdict}: {migration.reasons[0] if migration.reasons else 'nothing was compared'}", "strong"
    )
    yield from (TextPart(reason) for reason in migration.reasons[1:])
    if not migration.complete:
        yield TextPart(
            f"stopped after {format_percent(migration.share_done)} of the instances: the best so far", "quiet"
        )
    paid = migration.current.price_source or "its price is not known"
    yield TextPart(f"now: {migration.current.count} x {migration.current.instance}, {paid}", "quiet")
    yield columns_part(_COLUMNS, (migration.current, *migration.alternatives[:most]))
    more = len(migration.alternatives) - (most or len(migration.alternatives))
    if more > 0:
        yield TextPart(f"{more} more: --top {len(migration.alternatives)} shows them", "quiet")
    yield from _moving(migration)
    if migration.recommendations:
        yield TextPart("Recommended", "strong")
        rows = [
            (recommendation.priority, recommendation.title, recommendation.detail)
            for recommendation in migration.recommendations
        ]
        yield table_part(("for", "what", "why"), rows)


def _moving(migration: Migration) -> Iterator[Part]:
    """Yield what moving to where the verdict says takes, and what speaks against it."""
    best = migration.goes_to
    if best is None:
        return
    yield TextPart(f"Moving to {best.count} x {best.instance}", "strong")
    rows = [(part.name, _money(part.usd), f"{part.hours:.1f} h", part.detail) for part in best.move]
    yield table_part(("part", "once", "time", "derivation"), rows, (1, 2))
    yield TextPart(f"risk {best.risk.level}: {'; '.join(best.risk.reasons) or 'no concerns'}")
    yield TextPart(f"complexity {best.complexity.level}: {'; '.join(best.complexity.reasons) or 'nothing changes'}")


def runs_parts(runs: Sequence[WorkloadRun], most: int | None = None) -> Iterator[Part]:
    """Yield what moving workloads would bring, expected beside found first."""
    rows = [(run.workload, run.expected_outcome or _NONE, run.outcome) for run in runs]
    yield TextPart("Expected and found", "strong")
    yield table_part(("workload", "expected", "found"), rows)
    for run in runs:
        if run.migration is not None:
            yield TextPart()
            yield TextPart(run.name, "strong")
            yield from migration_parts(run.migration, most)


def _flat(alternative: Alternative, before: Mapping[str, object]) -> dict[str, object]:
    flat: dict[str, object] = dict(before)
    for key, value in _as_dict(alternative).items():
        if isinstance(value, dict) and value.keys() == {"value", "low", "high"}:
            flat |= {key: value["value"], f"{key}.low": value["low"], f"{key}.high": value["high"]}
        elif isinstance(value, dict) and key in ("risk", "complexity"):
            flat |= {key: value["level"], f"{key}.reasons": "; ".join(value["reasons"])}
        elif not isinstance(value, dict | list):
            flat[key] = value
    flat["remedies"] = "; ".join(remedy.words for remedy in alternative.remedies)
    return flat


def _csv(rows: Sequence[Mapping[str, object]]) -> str:
    return csv_table(list(dict.fromkeys(key for row in rows for key in row)), rows)


def write_migration(form: str, migration: Migration) -> str:
    """Return what moving would bring as json, yaml, csv, markdown or html."""
    if form == "csv":  # a row for each machine, the current one first; of figures with ranges value, low and high
        return _csv([_flat(entry, {}) for entry in (migration.current, *migration.alternatives)])
    title = f"Moving from {migration.current.count} x {migration.current.instance}"
    return write_parts(form, title, migration_parts(migration), lambda: migration_as_dict(migration))


def write_runs(form: str, runs: Sequence[WorkloadRun]) -> str:
    """Return what moving workloads would bring as json, yaml, csv, markdown or html."""
    if form == "csv":
        rows = [
            _flat(entry, {"workload": run.workload})
            for run in runs
            if run.migration is not None
            for entry in (run.migration.current, *run.migration.alternatives)
        ]
        return _csv(rows)
    return write_parts(form, "Moving workloads", runs_parts(runs), lambda: runs_as_dict(runs))


def _money(usd: float | Interval | None) -> str:
    value = usd.value if isinstance(usd, Interval) else usd
    return _NONE if value is None else format_quantity(mean(value), "USD")


def _percent(share: Interval | None) -> str:
    return _NONE if share is None else difference_text(mean(share.value) / PERCENT)


TITLES: Mapping[str, tuple[str, str]] = {
    "usd_per_hour": ("hourly price", "USD"),
    "usd_month": ("monthly price", "USD"),
    "usd_month_spot": ("monthly price on spot capacity", "USD"),
    "usd_same_work": ("equal-work cost", "USD"),
    "hours_same_work": ("equal-work hours", "h"),
    "performance_ratio": ("speed relative to the current machine", ""),
    "performance_percent": ("speedup", "%"),
    "saving_usd": ("monthly saving", "USD"),
    "saving_percent": ("saving", "%"),
    "move_usd": ("migration cost", "USD"),
    "break_even_hours": ("payback in hours", "h"),
}
"""Figures of an offer that are not of its estimate: what they are called, and their units."""

_CURRENT = "current"
_NEARLY = 1e-9


def offer_explanation(
    question: MigrationQuestion, instance: str, key: str, catalog: Catalog, machine: Machine | None = None
) -> ExplanationText:
    """Return where a figure of an offer comes from."""
    if key not in TITLES:
        raise PlanError("an offer has no such figure", repr(key)[:60], f"one of {', '.join(TITLES)}")
    with recording() as record:
        result = migrate(replace(question, instances=(instance,)), catalog, machine)
    offers = (*(alternative for alternative in result.alternatives if alternative.instance == instance), result.current)
    offer = offers[0]
    title, unit = TITLES[key]
    value, interval = _value(offer, key), getattr(offer, key)
    shown = ExplanationText(
        key=key,
        title=title,
        formula="",
        result="n/a" if value is None else format_quantity(value, unit),
        interval=_interval(interval, unit),
        remarks=tuple(text for text in (offer.price_source, offer.absence) if text),
    )
    if key == "move_usd":
        parts = tuple(FormulaInput(part.name, format_quantity(part.usd, "USD"), part.detail) for part in offer.move)
        return replace(shown, formula="usd = the sum of its parts", inputs=parts)
    if key == "usd_per_hour" or value is None:
        return replace(shown, formula=f"usd = {offer.count} · price of one instance")
    root = _root(record.derivations, key, value)
    if root is None:
        return replace(shown, remarks=("no formula gives it", *shown.remarks))
    step = derived_step(root)
    inputs = tuple(_linked(*pair, offer, result.current) for pair in zip(step.inputs, root.inputs, strict=True))
    return replace(shown, formula=step.formula, inputs=inputs, sources=(step.source,))


def _root(derivations: Iterable[Derivation], key: str, value: float) -> Derivation | None:
    """Return the equation that gave a value, the figure's own one before others."""
    same = [
        derivation
        for derivation in derivations
        if np.size(derivation.result) == 1 and _is(mean(derivation.result), value)
    ]
    named = [entry for entry in same if entry.part == key]
    priced = [entry for entry in same if entry.part.startswith("cost.")]
    return next(reversed([*priced, *named]), None)


def _linked(entry: FormulaInput, given: object, offer: Alternative, current: Alternative) -> FormulaInput:
    """Return what was put in, to be opened where it is another figure of the offer."""
    value = getattr(given, "value", None)
    if entry.name == _CURRENT:
        return replace(entry, source=f"{entry.source} ({current.count} × {current.instance})")
    if entry.step is not None or not isinstance(value, int | float):
        return entry
    key = next((key for key in TITLES if (own := _value(offer, key)) is not None and _is(own, float(value))), "")
    return replace(entry, key=key)


def _value(offer: Alternative, key: str) -> float | None:
    value = getattr(offer, key)
    return mean(value.value) if isinstance(value, Interval) else value


def _is(one: float, other: float) -> bool:
    return abs(one - other) <= _NEARLY * max(abs(one), abs(other))


def _interval(value: object, unit: str) -> str:
    if not isinstance(value, Interval) or mean(value.low) == mean(value.high):
        return ""
    return f"({format_quantity(mean(value.low), unit)} to {format_quantity(mean(value.high), unit)})"
