"""Which machines to take for a deadline, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.engine.fleet import DeadlineQuestion, Machines, Recommended, RegionOffer, Regions
from capacity_tui.engine.fleet.scheduling import Schedule, ScheduledJob
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.parts import Part, TablePart, TextPart, table_part
from capacity_tui.engine.present.results import to_builtins
from capacity_tui.engine.units import (
    GIGA,
    format_bytes,
    format_money,
    format_number,
    format_percent,
    format_quantity,
    format_seconds,
)

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


_REGIONS_REPORT_HEADS = (
    "region",
    "provider",
    "together",
    "against home",
    "job cost",
    "data",
    "$/h",
    "count",
    "tok/s",
    "instance",
    "region name",
    "price source",
)


def regions_as_dict(found: Regions) -> dict[str, object]:
    """Return a job region by region as plain data, under the names that scripts rely on."""
    data: dict[str, object] = {
        "home": found.home,
        "data_bytes": found.data_bytes,
        "usd_is_of": _period(found),
        "job_seconds": found.seconds,
        "regions": [_offer(each, is_open=found.seconds is None) for each in found.offers],
        "refused": [{"instance": name, "reason": reason} for name, reason in found.refused],
    }
    return {key: to_builtins(value) for key, value in data.items()}


def regions_parts(found: Regions) -> Iterator[Part]:
    """Yield a job region by region, the cheapest first."""
    cheapest, home = found.offers[0], _home(found)
    yield TextPart(f"cheapest in {_place(cheapest)}: {_total(cheapest)} {_words(found)}", "strong")
    is_open = found.seconds is None
    rows = [_row(each, home, is_open=is_open) for each in found.offers]
    heads = [head for head in _REGIONS_REPORT_HEADS if is_open or head != "tok/s"]
    yield table_part(heads, rows, range(2, len(heads) - 3))
    size = f"{format_number(found.data_bytes / GIGA)} GB of data"
    yield TextPart(f"data: {size} in {found.home.region or 'an unnamed region'} of {found.home.provider}")
    slowest = max((each.data_hours for each in found.offers), default=0.0)
    if slowest > 0:
        yield TextPart(f"elsewhere it arrives after {format_seconds(slowest * 3600.0)}; leaving a region is paid once")
    if any(each.data is None for each in found.offers):
        yield TextPart("n/a: what data costs that leaves its provider is not known")
    for name, reason in found.refused:
        yield TextPart(f"{name}: {reason}", "quiet")


def _period(found: Regions) -> str:
    return "month" if found.seconds is None else "job"


def _words(found: Regions) -> str:
    if found.seconds is None:
        return "a month of 720 hours"
    return f"for a job of {format_seconds(found.seconds)}"


def _home(found: Regions) -> float | None:
    return next((each.total_usd for each in found.offers if each.is_home), None)


def _place(offer: RegionOffer) -> str:
    return f"{offer.place.region or 'any region'} of {offer.place.provider}"


def _total(offer: RegionOffer) -> str:
    return format_money(offer.total_usd)


def _offer(offer: RegionOffer, *, is_open: bool) -> dict[str, object]:
    return {
        "region": offer.place.region,
        "name": offer.name,
        "provider": offer.place.provider,
        "instance": offer.quote.instance,
        "count": offer.count,
        "usd_per_hour": offer.usd_per_hour,
        "usd": offer.usd,
        "data_usd": None if offer.data is None else mean(offer.data.usd),
        "data_hours": offer.data_hours,
        "data_source": None if offer.data is None else offer.data.words,
        "total_usd": offer.total_usd,
        "tokens_per_second": offer.work_per_second if is_open else None,
        "is_home": offer.is_home,
        "payment": offer.quote.payment,
        "price_source": offer.quote.words,
        "price_date": offer.quote.price_date,
        "verified": offer.quote.verified,
    }


def _row(offer: RegionOffer, home: float | None, *, is_open: bool) -> tuple[str, ...]:
    total = offer.total_usd
    against_home = "data is here" if offer.is_home else ""
    if not offer.is_home and home and total is not None:
        against_home = f"{'+' if total >= home else ''}{format_percent(total / home - 1.0)}"
    quote, day = offer.quote, offer.quote.price_date or ""
    doubts = ("" if quote.verified else "unverified", "" if quote.age.words in day else quote.age.words)
    return (
        offer.place.region or "any",
        offer.place.provider,
        format_money(total),
        against_home,
        format_money(offer.usd),
        "n/a" if offer.data is None else format_money(mean(offer.data.usd)),
        format_money(offer.usd_per_hour),
        format_number(offer.count),
        *((format_number(offer.work_per_second),) if is_open else ()),
        quote.instance,
        offer.name,
        ", ".join(filter(None, (day, *doubts))),
    )


_SCHEDULE_REPORT_HEADS = ("job", "machines", "start", "end", "range of end", "deadline", "", "cost")


def schedule_as_dict(found: Schedule) -> dict[str, object]:
    """Return a schedule as plain data, under the names that scripts rely on."""
    data: dict[str, object] = {
        "jobs": [_job(each) for each in found.jobs],
        "makespan_seconds": found.makespan,
        "usd": found.usd,
        "fleet_usd": found.fleet_usd,
        "missed": [{"name": each.name, "late_seconds": each.late_seconds} for each in found.missed],
        "at_risk": [each.name for each in found.jobs if each.is_at_risk],
        "weighted_late_seconds": found.late_seconds,
        "lower_bound": {
            "makespan_seconds": found.bounds.makespan,
            "weighted_late_seconds": found.bounds.lateness,
            "usd": found.bounds.usd,
        },
        "is_best": found.is_best,
        "tried": found.tried,
        "seconds": found.seconds,
    }
    return {key: to_builtins(value) for key, value in data.items()}


def schedule_parts(found: Schedule) -> Iterator[Part]:
    """Yield a schedule: when each job runs and where, what is late, and what no schedule does better."""
    late = len(found.missed)
    said = f"{late} of {len(found.jobs)} deadlines missed" if late else "every deadline is kept"
    if not any(job.deadline is not None for job in found.jobs):
        said = "no job has a deadline"
    yield TextPart(f"{len(found.jobs)} jobs end after {format_seconds(mean(found.makespan.value))}: {said}", "strong")
    yield table_part(_SCHEDULE_REPORT_HEADS, [_schedule_report_row(job) for job in found.jobs], (2, 3, 5, 7))
    yield from (TextPart(line) for line in _remarks(found))


def _remarks(found: Schedule) -> Iterator[str]:
    for job in found.missed:
        yield f"{job.name} is {format_seconds(job.late_seconds)} late"
    risks = [job.name for job in found.jobs if job.is_at_risk]
    if risks:
        yield f"late if everything takes as long as its range says: {', '.join(risks)}"
    low, high = (format_seconds(mean(end)) for end in (found.makespan.low, found.makespan.high))
    yield f"last end: {low} to {high} with the ranges of the jobs"
    bound, makespan = found.bounds.makespan, mean(found.makespan.value)
    beyond = makespan / bound - 1.0 if bound > 0 else 0.0
    if found.is_best:
        yield "no schedule ends earlier or is less late"
    else:
        yield (
            f"no schedule ends before {format_seconds(bound)}: this one is at most {format_percent(beyond, 1)} longer "
            f"than the best; at least {format_seconds(found.bounds.lateness)} of {format_seconds(found.late_seconds)} "
            "lateness cannot be avoided"
        )
    if found.usd is None or found.fleet_usd is None:
        yield "a price is not known: give usd_per_hour beside the machines"
    else:
        least = format_money(found.bounds.usd)
        yield (
            f"cost: {format_money(found.usd)} for the time that jobs hold machines (at least {least}), "
            f"{format_money(found.fleet_usd)} for the whole fleet until the last ends"
        )


def _job(job: ScheduledJob) -> dict[str, object]:
    return {
        "name": job.name,
        "instance": job.instance,
        "machines": list(job.machines),
        "start_seconds": job.start,
        "end_seconds": job.end,
        "deadline_seconds": job.deadline,
        "late_seconds": job.late_seconds,
        "at_risk": job.is_at_risk,
        "usd": job.usd,
        "not_on": list(job.elsewhere),
    }


def _schedule_report_row(job: ScheduledJob) -> tuple[str, ...]:
    low, high = mean(job.end.low), mean(job.end.high)
    state = "" if job.deadline is None else "in time"
    if job.late_seconds:
        state = f"late by {format_seconds(job.late_seconds)}"
    elif job.is_at_risk:
        state = "in time, at risk"
    return (
        job.name,
        ", ".join(job.machines),
        format_seconds(job.start),
        format_seconds(mean(job.end.value)),
        "" if low == high else f"{format_seconds(low)} to {format_seconds(high)}",
        "" if job.deadline is None else format_seconds(job.deadline),
        state,
        format_money(job.usd),
    )
