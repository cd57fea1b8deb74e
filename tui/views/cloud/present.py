"""Offers of clouds as rows, and each as a page whose figures open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import price_age
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import ExplanationText, FormulaInput, column_head, column_text
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_bytes, format_money, format_seconds
from capacity_tui.tui.shown.results import ALWAYS, Cell, ResultRow, Results, ResultSource, TableColumn
from capacity_tui.tui.views.query_view.search import figure_cell

if TYPE_CHECKING:
    from capacity_tui.engine.fleet.migration import Alternative, Migration

_JOB, _STEP = Figure.ESTIMATED_TRAIN_TIME_SECONDS, Figure.STEP_SECONDS
_PRICE, _UNIT_PRICE = Figure.COST_USD, Figure.COST_USD_PER_MILLION_TOKENS
_TIMES = {"train": (_JOB, _STEP), "infer": (Figure.TIME_TO_FIRST_TOKEN_SECONDS, _STEP)}
_PRICES = {"train": (_PRICE, _UNIT_PRICE), "infer": (_UNIT_PRICE, _PRICE)}
"""Figures of the job itself by task, of several the first that is known."""

_VERDICTS = {"stay": "= stay", "move": "→ move"}
_LEVELS = ("low", "medium", "high")
_HOUR = 3600.0
_OLD = "*"  # Behind a price that is old
_NOW = "now"
_NOTE = 40  # Cells of the first warning in the table; the panel beside it has all of them whole


@dataclass(frozen=True)
class _Column:
    """One column: its head, and what an offer has in it."""

    head: TableColumn
    cell: Callable[[Alternative], Cell]


def results_of(
    migration: Migration, plan: Plan, numerics: Mapping[str, object], source: ResultSource, *, shows_all: bool
) -> Results:
    """Return offers as the screen shows them, the machine of the plan first."""
    current = migration.current
    others = tuple(
        offer
        for offer in migration.alternatives
        if (offer.fits or shows_all) and (offer.instance, offer.devices) != (current.instance, current.devices)
    )
    offers = (current, *others)
    task = "infer" if plan.is_inference else "train"
    columns = tuple(_columns(task, offers, current))
    advised = {one.instance for one in migration.recommendations}
    rows = tuple(
        ResultRow(
            {**numerics, **(offer.set or {Key.HARDWARE_NAME: plan.hardware.name})},
            offer.verdict,
            tuple(column.cell(offer) for column in columns),
            tuple(_about(offer)),
            page=page_of(offer, is_current=offer is current),
        )
        for offer in offers
    )
    so_far = "" if migration.complete else " so far"
    verdict = f"{_VERDICTS[migration.verdict]}{so_far}: {'; '.join(migration.reasons)}"
    texts = (f"{one.priority}: {one.title}. {one.detail}" for one in migration.recommendations)
    return Results(
        columns=tuple(column.head for column in columns),
        rows=rows,
        evaluated=1 + len(migration.alternatives),
        fitting=sum(offer.fits for offer in (current, *migration.alternatives)),
        seconds=migration.seconds,
        is_complete=migration.complete,
        share=migration.share_done,
        front=frozenset(place for place, offer in enumerate(offers) if offer.instance in advised),
        remarks=(verdict, *texts),
        order="saving" if any(offer.saving_usd is not None for offer in offers) else "cost",
        source=source,
    )


def _columns(task: str, offers: tuple[Alternative, ...], current: Alternative) -> Iterator[_Column]:
    """Yield the columns; where there is little room those with the highest rank go first."""

    def known(keys: tuple[str, ...]) -> str:
        return next((key for key in keys if any(key in offer.figures for offer in offers)), keys[0])

    time, price = known(_TIMES[task]), known(_PRICES[task])
    yield _Column(TableColumn("offer", is_number=False), lambda offer: Cell(offer.instance))
    yield _Column(TableColumn("n"), lambda offer: Cell(str(offer.count), offer.count))
    yield _Column(TableColumn("$/h", -1, rank=1, unit="USD"), _hourly)
    yield _Column(TableColumn(column_head(time), -1, rank=ALWAYS, unit="s"), lambda offer: _figure(offer, time))
    yield _Column(TableColumn(column_head(price), -1, rank=ALWAYS, unit="USD"), lambda offer: _figure(offer, price))
    if any(offer.short_bytes for offer in offers):
        yield _Column(TableColumn("short", -1, rank=1, unit="B"), _short)
    yield _Column(TableColumn("saving", 1, rank=1, unit="%"), lambda offer: _saving(offer, offer is current))
    yield _Column(TableColumn("month", -1, rank=3, unit="USD"), lambda offer: _money(offer.usd_month))
    yield _Column(
        TableColumn("spot month", -1, rank=4, unit="USD"), lambda offer: _money(_middle(offer.usd_month_spot))
    )
    yield _Column(TableColumn("speed", 1, rank=3, unit="%"), lambda offer: _percent(_middle(offer.performance_percent)))
    yield _Column(TableColumn("payback", -1, rank=5, unit="s"), _break_even)
    yield _Column(TableColumn("migration", -1, rank=5, unit="USD"), lambda offer: _move(offer, offer is current))
    yield _Column(TableColumn("risk", -1, is_number=False, rank=2), _risk)
    yield _Column(TableColumn("price source", -1, is_number=False, rank=2), _source)
    yield _Column(TableColumn("warnings", -1, is_number=False, rank=7), _warnings)


def _figure(offer: Alternative, key: str) -> Cell:
    return figure_cell(key, offer.figures.get(key))


def _hourly(offer: Alternative) -> Cell:
    """Return the price of an hour, with a mark where it is old."""
    is_spot = offer.is_spot and offer.usd_per_hour_spot is not None
    usd = offer.usd_per_hour_spot if is_spot else offer.usd_per_hour
    if usd is None:
        return Cell("n/a")
    return Cell(f"{format_money(usd).removeprefix('$')}{_OLD if price_age(offer.price_date).is_old else ' '}", usd)


def _short(offer: Alternative) -> Cell:
    return Cell(format_bytes(offer.short_bytes), offer.short_bytes) if offer.short_bytes else Cell("")


def _saving(offer: Alternative, is_current: bool) -> Cell:
    if is_current:
        return Cell(_NOW, 0.0)
    return _percent(_middle(offer.saving_percent))


def _percent(value: float | None) -> Cell:
    return Cell("n/a") if value is None else Cell(f"{value:+.0f} %", value)


def _money(usd: float | None) -> Cell:
    return Cell("n/a") if usd is None else Cell(format_money(usd, 0), usd)


def _move(offer: Alternative, is_current: bool) -> Cell:
    return Cell("", 0.0) if is_current else _money(offer.move_usd)


def _break_even(offer: Alternative) -> Cell:
    """Return after how long moving has paid; nothing where it never does."""
    hours = offer.break_even_hours
    return Cell("–") if hours is None else Cell(format_seconds(hours * _HOUR), hours * _HOUR)


def _risk(offer: Alternative) -> Cell:
    return Cell(offer.risk.level, float(_LEVELS.index(offer.risk.level)))


def _warnings(offer: Alternative) -> Cell:
    """Return how many warnings there are, and the first of them."""
    if not offer.warnings:
        return Cell("", 0.0)
    first = offer.warnings[0]
    more = f" +{len(offer.warnings) - 1}" if len(offer.warnings) > 1 else ""
    return Cell((first if len(first) <= _NOTE else f"{first[: _NOTE - 1]}…") + more, float(len(offer.warnings)))


def _about(offer: Alternative) -> Iterator[str]:
    """Yield what speaks against an offer, then what it is and where its price is from."""
    lacking = [] if offer.fits else [_misfit(offer), *(remedy.words for remedy in offer.remedies)]
    levels = (("risk", offer.risk), ("change", offer.complexity))
    texts = [f"{name} {rating.level}: {'; '.join(rating.reasons)}" for name, rating in levels if rating.reasons]
    yield " · ".join((*lacking, *texts, *offer.warnings)) or "no concerns"
    devices = f"{offer.devices} device{'s' if offer.devices > 1 else ''}"
    yield f"{offer.count} × {offer.instance} · {devices} · {offer.price_source or offer.absence}"


def _misfit(offer: Alternative) -> str:
    if offer.short_bytes:
        return f"{format_bytes(offer.short_bytes)} short on a device"
    return f"{offer.verdict.words}: {offer.reason}"


def _source(offer: Alternative) -> Cell:
    """Return whose price it is, and how old that is in days."""
    if not offer.price_provider:
        return Cell("n/a")
    age = "" if offer.price_days is None else f" {offer.price_days} d"
    return Cell(f"{offer.price_provider}{age}", None if offer.price_days is None else float(offer.price_days))


def _middle(value: Interval | None) -> float | None:
    return None if value is None else float(value.value)


_OF_THE_JOB = (
    Figure.MEMORY_RESERVED_BYTES,
    Figure.STEP_SECONDS,
    Figure.TOKENS_PER_SECOND,
    Figure.ESTIMATED_TRAIN_TIME_SECONDS,
    Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS,
    Figure.OUTPUT_TOKENS_PER_SECOND,
    Figure.COST_USD,
    Figure.COST_USD_PER_MILLION_TOKENS,
)
"""Figures of the estimate that are shown of an offer, where they are known."""


def page_of(offer: Alternative, *, is_current: bool) -> ExplanationText:
    saving = offer.saving_percent
    return ExplanationText(
        key=offer.instance,
        title=f"{offer.count} × {offer.instance}",
        formula=_in_words(offer, is_current=is_current),
        result="" if is_current or saving is None else f"saves {_whole_percent(float(saving.value))}",
        interval="" if is_current or saving is None else _percent_range(saving),
        inputs=tuple(_inputs(offer)),
        remarks=tuple(_remarks(offer)),
        assumptions=offer.warnings,
        sources=tuple(_sources(offer)),
    )


def _in_words(offer: Alternative, *, is_current: bool) -> str:
    where = "current machine; " if is_current else ""
    devices = f"{offer.devices} device{'s' if offer.devices > 1 else ''}"
    short = f"{format_bytes(offer.short_bytes)} short on one of them"
    held = short if offer.short_bytes else ": ".join(filter(None, (offer.verdict.words, offer.reason)))
    return f"{where}{devices}; {held}; risk {offer.risk.level}, change {offer.complexity.level}"


def _inputs(offer: Alternative) -> Iterator[FormulaInput]:
    paid = "spot" if offer.is_spot else "on demand or committed to"
    yield _money_input("usd_per_hour", "$/h", offer.usd_per_hour, offer.price_source or offer.absence)
    yield _money_input("usd_month", "month", offer.usd_month, "all instances, for the month's hours")
    yield _spread("usd_month_spot", "month on spot", offer.usd_month_spot, offer.absence)
    yield _spread("usd_same_work", "equal-work cost", offer.usd_same_work, f"paid {paid}")
    yield _spread("saving_usd", "saving", offer.saving_usd, "on a month's work, compared with now")
    if offer.performance_percent is not None:
        speed = offer.performance_percent
        ends = _percent_range(speed).strip("()")
        yield FormulaInput("speed", _whole_percent(float(speed.value)), ends, key="performance_percent")
    for part in offer.move:
        yield FormulaInput(part.name, format_money(part.usd), f"{format_seconds(part.hours * _HOUR)}, {part.detail}")
    if offer.move:
        took = format_seconds(offer.move_hours * _HOUR)
        yield FormulaInput("migration cost", format_money(offer.move_usd), f"once, {took}", key="move_usd")
    if offer.break_even_hours is not None:
        paid_after = format_seconds(offer.break_even_hours * _HOUR)
        yield FormulaInput("payback", paid_after, "compared with staying", key="break_even_hours")
    for key in _OF_THE_JOB:
        if key in offer.figures:
            value = offer.figures[key]
            ends = f"{column_text(key, float(value.low))} – {column_text(key, float(value.high))}"
            yield FormulaInput(column_head(key), column_text(key, float(value.value)), ends, key=key)


def _remarks(offer: Alternative) -> Iterator[str]:
    yield f"risk {offer.risk.level}: {'; '.join(offer.risk.reasons) or 'no concerns'}"
    yield f"change {offer.complexity.level}: {'; '.join(offer.complexity.reasons) or 'nothing but the machine'}"
    for remedy in offer.remedies:
        left = f", {format_bytes(remedy.short_bytes)} short even then" if remedy.short_bytes else ""
        yield f"it would fit with {remedy.words}{left}" if not left else f"{remedy.words}{left}"


def _sources(offer: Alternative) -> Iterator[str]:
    if offer.price_source:
        age = price_age(offer.price_date).words
        yield ", ".join((f"price: {offer.price_source}", *([age] if age and age not in offer.price_source else ())))


def _money_input(key: str, name: str, usd: float | None, source: str) -> FormulaInput:
    return FormulaInput(name, format_money(usd), source, key=key if usd is not None else "")


def _spread(key: str, name: str, value: Interval | None, source: str) -> FormulaInput:
    if value is None:
        return FormulaInput(name, "n/a", source)
    low, high = float(value.low), float(value.high)
    ends = f"{format_money(low)} – {format_money(high)}" if low < high else ""
    texts = ", ".join(part for part in (ends, source) if part)
    return FormulaInput(name, format_money(float(value.value)), texts, key=key)


def _percent_range(value: Interval) -> str:
    low, high = float(value.low), float(value.high)
    return f"({_whole_percent(low)} – {_whole_percent(high)})" if low < high else ""


def _whole_percent(value: float) -> str:
    return f"{value:+.0f} %"
