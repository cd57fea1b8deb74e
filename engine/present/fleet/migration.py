"""What moving a job would bring, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Derivation, recording
from capacity_tui.engine.fleet.migration import Alternative, Migration, WorkloadRun, migrate
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.explanation import ExplanationText, FormulaInput, derived_step
from capacity_tui.engine.present.parts import Part, TextPart, table_part, write_parts
from capacity_tui.engine.present.results import to_builtins
from capacity_tui.engine.printable import csv_table
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_bytes, format_count, format_percent, format_quantity

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Catalog
    from capacity_tui.engine.fleet.migration import MigrationQuestion
    from capacity_tui.engine.machine import Machine

MIGRATION_HEADS = (
    "instance",
    "n",
    "$/h",
    "saving",
    "$/M tok",
    "work/s",
    "equal-work cost",
    "performance",
    "risk",
    "month",
    "spot month",
    "migration cost",
    "payback",
    "complexity",
    "price source",
)

MIGRATION_RIGHT = (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12)

_WORK: Mapping[str, str] = {
    Figure.TOKENS_PER_SECOND: "tok/s",
    Figure.SAMPLES_PER_SECOND: "samples/s",
    Figure.REQUESTS_PER_SECOND: "req/s",
}
"""What a machine works through in a second, the first of it that is known, with its unit."""

# Figures of each machine that stand beside what moving there costs.
_FIGURES = (
    Figure.MEMORY_RESERVED_BYTES, Figure.MEMORY_CAPACITY_BYTES, Figure.TOKENS_PER_SECOND,
    Figure.REQUESTS_PER_SECOND, Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS, Figure.STEP_SECONDS,
)  # fmt: skip

_NONE = "-"


def migration_as_dict(found: Migration) -> dict[str, object]:
    """Return what moving would bring as plain data, under the names that scripts rely on."""
    return {
        "current": _as_dict(found.current),
        "alternatives": [_as_dict(each) for each in found.alternatives],
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "recommendations": to_builtins(found.recommendations),
        "complete": found.complete,
        "share_done": found.share_done,
        "seconds": found.seconds,
    }


def runs_as_dict(runs: Sequence[WorkloadRun]) -> dict[str, object]:
    """Return what moving workloads would bring as plain data."""
    return {"runs": [_run_as_dict(run) for run in runs]}


def _run_as_dict(run: WorkloadRun) -> dict[str, object]:
    told: dict[str, object] = {
        "workload": run.workload,
        "name": run.name,
        "expected_outcome": run.expected_outcome,
        "found_outcome": run.found_outcome,
    }
    return told if run.migration is None else {**told, **migration_as_dict(run.migration)}


def _as_dict(each: Alternative) -> dict[str, object]:
    data = to_builtins(each)
    assert isinstance(data, dict)  # noqa: S101 - a dataclass becomes one
    figures = {key: to_builtins(each.figures[key]) for key in _FIGURES if key in each.figures}
    return {**data, "figures": figures}


def migration_rows(found: Migration, most: int | None = None) -> list[tuple[str, ...]]:
    """Return the current machine and the others as rows, under ``MIGRATION_HEADS``.

    Args:
        found: what moving would bring.
        most: how many alternatives; None for all.
    """
    return [_row(found.current), *(_row(each) for each in found.alternatives[:most])]


def _row(each: Alternative) -> tuple[str, ...]:
    rate = each.usd_per_hour_spot if each.is_spot else each.usd_per_hour
    return (
        each.instance,
        str(each.count),
        _money(rate),
        _percent(each.saving_percent) if each.fits else _misfit(each),
        _usd_per_million(each),
        _work(each),
        _money(each.usd_same_work),
        _percent(each.performance_percent),
        each.risk.level,
        _money(each.usd_month),
        _money(each.usd_month_spot),
        _money(each.move_usd),
        _NONE if each.break_even_hours is None else f"{each.break_even_hours:.0f} h",
        each.complexity.level,
        f"{each.price_date or _NONE}{' (old)' if each.price_is_old and each.price_date else ''}",
    )


def _misfit(each: Alternative) -> str:
    """Return why a machine does not do the job, in a few words."""
    return f"{format_bytes(each.short_bytes)} short" if each.short_bytes else each.verdict.words


def _work(each: Alternative) -> str:
    known = next(((each.figures[key], unit) for key, unit in _WORK.items() if key in each.figures), None)
    return _NONE if known is None else f"{format_count(mean(known[0].value))} {known[1]}"


def _usd_per_million(each: Alternative) -> str:
    usd = each.figures.get(Figure.COST_USD_PER_MILLION_TOKENS)
    return _NONE if usd is None else format_quantity(mean(usd.value), "USD/M")


def migration_parts(found: Migration, most: int | None = None) -> Iterator[Part]:
    """Yield the answer: verdict, table, what moving there takes, and what is recommended.

    Args:
        found: what moving would bring.
        most: how many alternatives the table has; None for all.
    """
    yield TextPart(f"{found.verdict}: {found.reasons[0] if found.reasons else 'nothing was compared'}", "strong")
    yield from (TextPart(reason) for reason in found.reasons[1:])
    if not found.complete:
        yield TextPart(f"stopped after {format_percent(found.share_done)} of the instances: the best so far", "quiet")
    paid = found.current.price_source or "its price is not known"
    yield TextPart(f"now: {found.current.count} x {found.current.instance}, {paid}", "quiet")
    yield table_part(MIGRATION_HEADS, migration_rows(found, most), MIGRATION_RIGHT)
    more = len(found.alternatives) - (most or len(found.alternatives))
    if more > 0:
        yield TextPart(f"{more} more: --top {len(found.alternatives)} shows them", "quiet")
    yield from _moving(found)
    if found.recommendations:
        yield TextPart("Recommended", "strong")
        rows = [(each.priority, each.title, each.detail) for each in found.recommendations]
        yield table_part(("for", "what", "why"), rows)


def _moving(found: Migration) -> Iterator[Part]:
    """Yield what moving to the best machine takes, and what speaks against it."""
    best = next(iter(found.alternatives), None)
    if best is None or not best.fits or found.verdict == "stay":
        return
    chosen = next((each for each in found.recommendations if each.priority == "cost"), None)
    if chosen is not None:
        best = next((each for each in found.alternatives if each.instance == chosen.instance), best)
    yield TextPart(f"Moving to {best.count} x {best.instance}", "strong")
    rows = [(part.name, _money(part.usd), f"{part.hours:.1f} h", part.detail) for part in best.move]
    yield table_part(("part", "once", "time", "how it follows"), rows, (1, 2))
    yield TextPart(f"risk {best.risk.level}: {'; '.join(best.risk.reasons) or 'no concerns'}")
    yield TextPart(f"complexity {best.complexity.level}: {'; '.join(best.complexity.reasons) or 'nothing changes'}")


def runs_parts(runs: Sequence[WorkloadRun], most: int | None = None) -> Iterator[Part]:
    """Yield what moving workloads would bring, expected beside found first."""
    rows = [(run.workload, run.expected_outcome or _NONE, run.found_outcome) for run in runs]
    yield TextPart("Expected and found", "strong")
    yield table_part(("workload", "expected", "found"), rows)
    for run in runs:
        if run.migration is not None:
            yield TextPart()
            yield TextPart(run.name, "strong")
            yield from migration_parts(run.migration, most)


def migration_as_csv(found: Migration) -> str:
    """Return a row for each machine, the current one first; of figures with ranges value, low and high."""
    return _csv([_flat(each, {}) for each in (found.current, *found.alternatives)])


def runs_as_csv(runs: Sequence[WorkloadRun]) -> str:
    """Return the machines of all workloads, one row each."""
    rows = [
        _flat(each, {"workload": run.workload})
        for run in runs
        if run.migration is not None
        for each in (run.migration.current, *run.migration.alternatives)
    ]
    return _csv(rows)


def _flat(each: Alternative, before: Mapping[str, object]) -> dict[str, object]:
    flat: dict[str, object] = dict(before)
    for key, value in _as_dict(each).items():
        if isinstance(value, dict) and value.keys() == {"value", "low", "high"}:
            flat |= {key: value["value"], f"{key}.low": value["low"], f"{key}.high": value["high"]}
        elif isinstance(value, dict) and key in ("risk", "complexity"):
            flat |= {key: value["level"], f"{key}.reasons": "; ".join(value["reasons"])}
        elif not isinstance(value, dict | list):
            flat[key] = value
    flat["remedies"] = "; ".join(remedy.words for remedy in each.remedies)
    return flat


def _csv(rows: Sequence[Mapping[str, object]]) -> str:
    return csv_table(list(dict.fromkeys(key for row in rows for key in row)), rows)


def write_migration(form: str, found: Migration) -> str:
    """Return what moving would bring as json, yaml, csv, markdown or html."""
    if form == "csv":
        return migration_as_csv(found)
    title = f"Moving from {found.current.count} x {found.current.instance}"
    return write_parts(form, title, migration_parts(found), lambda: migration_as_dict(found))


def write_runs(form: str, runs: Sequence[WorkloadRun]) -> str:
    """Return what moving workloads would bring as json, yaml, csv, markdown or html."""
    if form == "csv":
        return runs_as_csv(runs)
    return write_parts(form, "Moving workloads", runs_parts(runs), lambda: runs_as_dict(runs))


def _money(usd: float | Interval | None) -> str:
    value = usd.value if isinstance(usd, Interval) else usd
    return _NONE if value is None else format_quantity(mean(value), "USD")


def _percent(share: Interval | None) -> str:
    return _NONE if share is None else f"{mean(share.value):+.0f} %"


TITLES: Mapping[str, tuple[str, str]] = {
    "usd_per_hour": ("price of an hour", "USD"),
    "usd_month": ("price of the month", "USD"),
    "usd_month_spot": ("price of the month on spot capacity", "USD"),
    "usd_same_work": ("equal-work cost", "USD"),
    "hours_same_work": ("equal-work hours", "h"),
    "performance_ratio": ("speed beside the current machine", ""),
    "performance_percent": ("gain in speed", "%"),
    "saving_usd": ("saving of a month", "USD"),
    "saving_percent": ("saving", "%"),
    "move_usd": ("price of moving", "USD"),
    "break_even_hours": ("hours until moving has paid", "h"),
}
"""Figures of an offer that are not of its estimate: what they are called, and their units."""

_CURRENT = "current"

_NEARLY = 1e-9


def offer_explanation(
    question: MigrationQuestion, instance: str, key: str, catalog: Catalog, machine: Machine | None = None
) -> ExplanationText:
    """Return where a figure of an offer comes from.

    Args:
        question: what was asked.
        instance: id of the instance that is offered, or of the current machine.
        key: the figure, one of ``TITLES``.
        catalog: facts.
        machine: the detected machine, for a job that runs on it.

    Raises:
        CapacityError: no figure is called that, or there is no such offer.
    """
    if key not in TITLES:
        raise PlanError("an offer has no such figure", repr(key)[:60], f"one of {', '.join(TITLES)}")
    with recording() as record:
        found = migrate(replace(question, instances=(instance,)), catalog, machine)
    offers = (*(each for each in found.alternatives if each.instance == instance), found.current)
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
        parts = tuple(FormulaInput(part.name, _usd(part.usd), part.detail) for part in offer.move)
        return replace(shown, formula="usd = the sum of its parts", inputs=parts)
    if key == "usd_per_hour" or value is None:
        return replace(shown, formula=f"usd = {offer.count} · price of one instance")
    root = _root(record.derivations, key, value)
    if root is None:
        return replace(shown, remarks=("no formula gives it", *shown.remarks))
    step = derived_step(root)
    inputs = tuple(_linked(*pair, offer, found.current) for pair in zip(step.inputs, root.inputs, strict=True))
    return replace(shown, formula=step.formula, inputs=inputs, sources=(step.source,))


def _root(derivations: Iterable[Derivation], key: str, value: float) -> Derivation | None:
    """Return the equation that gave a value, the figure's own one before others."""
    same = [each for each in derivations if np.size(each.result) == 1 and _is(mean(each.result), value)]
    named = [each for each in same if each.part == key]
    priced = [each for each in same if each.part.startswith("cost.")]
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


def _usd(usd: float | None) -> str:
    return "n/a" if usd is None else format_quantity(usd, "USD")
