"""Which machines to take for a deadline, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.engine.fleet import DeadlineQuestion, Machines, Recommended
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.as_builtins import to_builtins
from capacity_tui.engine.present.parts import Part, TablePart, TextPart, table_part
from capacity_tui.engine.units import format_bytes, format_money, format_number, format_quantity, format_seconds

_HEADS = (
    "machines", "time", "cost", "memory", "$/h", "longest", "dearest", "GPUs", "RAM", "cores", "storage", "database",
)  # fmt: skip
_RIGHT = (1, 2, 4, 5, 6, 8, 9, 10)


def recommended_as_dict(found: Recommended) -> dict[str, object]:
    """Return what to take as plain data, under the names that scripts rely on."""
    return {
        "cheapest": [to_builtins(each) for each in found.cheapest],
        "fastest": [to_builtins(each) for each in found.fastest],
        "balanced": to_builtins(found.balanced),
        "evaluated": found.evaluated,
        "missed": to_builtins(found.missed),
        "rejected": to_builtins(found.rejected),
        "complete": found.complete,
    }


def recommended_so_far(found: Recommended) -> str:
    """Return how far the search is, and the cheapest machines so far, on one line."""
    tried = f"{format_number(found.evaluated)} machines planned, ctrl-c stops"
    best = next(iter(found.cheapest), None)
    if best is None:
        return tried
    usd, seconds = format_quantity(mean(best.usd.value), "USD"), format_seconds(mean(best.seconds.value))
    return f"{tried}; cheapest so far {best.count} x {best.instance}: {usd} in {seconds}"


def recommended_parts(question: DeadlineQuestion, found: Recommended) -> Iterator[Part]:
    """Yield what to take as tables and lines."""
    limit = f"done in {format_seconds(question.deadline_seconds)}"
    if question.budget_usd is not None:
        limit += f" for {format_money(question.budget_usd)} at most"
    if found.balanced is None:
        yield TextPart(f"nothing is {limit}", "strong")
        for each in (*found.missed, *found.rejected):
            yield TextPart(f"{format_number(each.count)} configurations: {each.rule}; such as {each.example}")
        return
    yield TextPart(f"Cheapest, {limit}", "strong")
    yield _table(found.cheapest)
    yield TextPart(f"Fastest, {limit}", "strong")
    yield _table(found.fastest)
    yield TextPart(
        "Balanced: twice the machines only where they save more of the deadline than they add in money", "strong"
    )
    yield _table((found.balanced,))
    best = found.balanced
    yield TextPart(
        f"price: {best.price_source}; longest and dearest are the far ends of their ranges, which keep the limits",
        "quiet",
    )
    yield TextPart(f"database: {best.database.reason}", "quiet")
    if not found.complete:
        yield TextPart("stopped before everything was tried", "quiet")


def _table(rows: Sequence[Machines]) -> TablePart:
    return table_part(_HEADS, map(_cells, rows), _RIGHT)


def _cells(each: Machines) -> tuple[str, ...]:
    database = each.database
    stored = format_bytes(each.storage_bytes, "GB")
    if each.storage_usd is not None:
        stored += f", {format_money(each.storage_usd)}"
    kept = f"{database.kind}, {format_bytes(database.storage_bytes, 'GB')}"
    if database.cores:
        kept += f", {format_bytes(database.memory_bytes, 'GB')} RAM, {database.cores} cores"
    return (
        f"{each.count} x {each.instance}",
        format_quantity(mean(each.seconds.value), "s"),
        format_quantity(mean(each.usd.value), "USD"),
        f"{each.verdict.sign} {each.verdict.words}",
        format_money(each.usd_per_hour),
        format_quantity(mean(each.seconds.high), "s"),
        format_quantity(mean(each.usd.high), "USD"),
        f"{each.devices} x {each.accelerator}" if each.accelerator else "none",
        format_bytes(each.memory_bytes, "GB"),
        "n/a" if each.cores is None else format_number(each.cores),
        stored,
        kept,
    )
