"""Which machines to take for a deadline, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.engine.fleet import (
    DeadlineQuestion,
    Machines,
    Recommended,
    RegionOffer,
    Regions,
    Schedule,
    ScheduledJob,
)
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
    "machines",
    "time",
    "cost",
    "memory",
    "$/h",
    "longest",
    "dearest",
    "GPUs",
    "RAM",
    "cores",
    "storage",
    "database",
)

_RIGHT = (1, 2, 4, 5, 6, 8, 9, 10)


def recommended_as_dict(recommended: Recommended) -> dict[str, object]:
    """Return what to take as plain data, under the names that scripts rely on."""
    return {
        "cheapest": [to_builtins(entry) for entry in recommended.cheapest],
        "fastest": [to_builtins(entry) for entry in recommended.fastest],
        "balanced": to_builtins(recommended.balanced),
        "evaluated": recommended.evaluated,
        "missed": to_builtins(recommended.missed),
        "rejected": to_builtins(recommended.rejected),
        "complete": recommended.complete,
    }


def recommended_so_far(recommended: Recommended) -> str:
    """Return how far the search is, and the cheapest machines so far, on one line."""
    planned, listed = format_number(recommended.evaluated), format_number(recommended.listed)
    tried = f"{planned} of at most {listed} machines planned, ctrl-c stops"
    best = next(iter(recommended.cheapest), None)
    if best is None:
        return tried
    usd, seconds = format_quantity(mean(best.usd.value), "USD"), format_seconds(mean(best.seconds.value))
    return f"{tried}; cheapest so far {best.count} x {best.instance}: {usd} in {seconds}"


def recommended_parts(question: DeadlineQuestion, recommended: Recommended) -> Iterator[Part]:
    """Yield what to take as tables and lines."""
    limit = f"done in {format_seconds(question.deadline_seconds)}"
    if question.budget_usd is not None:
        limit += f" for {format_money(question.budget_usd)} at most"
    if recommended.balanced is None:
        yield TextPart(f"nothing is {limit}", "strong")
        for entry in (*recommended.missed, *recommended.rejected):
            yield TextPart(f"{format_number(entry.count)} configurations: {entry.rule}; such as {entry.example}")
        return
    yield TextPart(f"Cheapest, {limit}", "strong")
    yield _table(recommended.cheapest)
    yield TextPart(f"Fastest, {limit}", "strong")
    yield _table(recommended.fastest)
    yield TextPart("Balanced: twice the machines only where they save more time than they add cost", "strong")
    yield _table((recommended.balanced,))
    best = recommended.balanced
    yield TextPart(f"price: {best.price_source}; the upper ends of time and cost also keep the limits", "quiet")
    yield TextPart(f"database: {best.database.reason}", "quiet")
    if not recommended.complete:
        yield TextPart("stopped before everything was tried", "quiet")


def _table(rows: Sequence[Machines]) -> TablePart:
    return table_part(_HEADS, map(_cells, rows), _RIGHT)


def _cells(machines: Machines) -> tuple[str, ...]:
    database = machines.database
    stored = format_bytes(machines.storage_bytes, "GB")
    if machines.storage_usd is not None:
        stored += f", {format_money(machines.storage_usd)}"
    kept = f"{database.kind}, {format_bytes(database.storage_bytes, 'GB')}"
    if database.cores:
        kept += f", {format_bytes(database.memory_bytes, 'GB')} RAM, {database.cores} cores"
    return (
        f"{machines.count} x {machines.instance}",
        format_quantity(mean(machines.seconds.value), "s"),
        format_quantity(mean(machines.usd.value), "USD"),
        f"{machines.verdict.sign} {machines.verdict.words}",
        format_money(machines.usd_per_hour),
        format_quantity(mean(machines.seconds.high), "s"),
        format_quantity(mean(machines.usd.high), "USD"),
        f"{machines.devices} x {machines.accelerator}" if machines.accelerator else "none",
        format_bytes(machines.memory_bytes, "GB"),
        "n/a" if machines.cores is None else format_number(machines.cores),
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


def regions_as_dict(regions: Regions) -> dict[str, object]:
    """Return a job region by region as plain data, under the names that scripts rely on."""
    data: dict[str, object] = {
        "home": regions.home,
        "data_bytes": regions.data_bytes,
        "usd_is_of": _period(regions),
        "job_seconds": regions.seconds,
        "regions": [_offer(offer, is_open=regions.seconds is None) for offer in regions.offers],
        "refused": [{"instance": name, "reason": reason} for name, reason in regions.refused],
    }
    return {key: to_builtins(value) for key, value in data.items()}


def regions_parts(regions: Regions) -> Iterator[Part]:
    """Yield a job region by region, the cheapest first."""
    cheapest, home = regions.offers[0], _home(regions)
    yield TextPart(f"cheapest in {_region_text(cheapest)}: {_total(cheapest)} {_words(regions)}", "strong")
    is_open = regions.seconds is None
    rows = [_row(offer, home, is_open=is_open) for offer in regions.offers]
    heads = [head for head in _REGIONS_REPORT_HEADS if is_open or head != "tok/s"]
    yield table_part(heads, rows, range(2, len(heads) - 3))
    size = f"{format_number(regions.data_bytes / GIGA)} GB of data"
    yield TextPart(f"data: {size} in {regions.home.region or 'an unnamed region'} of {regions.home.provider}")
    slowest = max((offer.data_hours for offer in regions.offers), default=0.0)
    if slowest > 0:
        yield TextPart(f"elsewhere it arrives after {format_seconds(slowest * 3600.0)}; leaving a region is paid once")
    if any(offer.data is None for offer in regions.offers):
        yield TextPart("n/a: what data costs that leaves its provider is not known")
    for name, reason in regions.refused:
        yield TextPart(f"{name}: {reason}", "quiet")


def _period(regions: Regions) -> str:
    return "month" if regions.seconds is None else "job"


def _words(regions: Regions) -> str:
    if regions.seconds is None:
        return "a month of 720 hours"
    return f"for a job of {format_seconds(regions.seconds)}"


def _home(regions: Regions) -> float | None:
    return next((offer.total_usd for offer in regions.offers if offer.is_home), None)


def _region_text(offer: RegionOffer) -> str:
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


def schedule_as_dict(schedule: Schedule) -> dict[str, object]:
    """Return a schedule as plain data, under the names that scripts rely on."""
    data: dict[str, object] = {
        "jobs": [_job(job) for job in schedule.jobs],
        "left_out": [{"name": name, "reason": reason} for name, reason in schedule.left_out],
        "first_start_seconds": schedule.first_start,
        "makespan_seconds": schedule.makespan,
        "usd": schedule.usd,
        "fleet_usd": schedule.fleet_usd,
        "missed": [{"name": entry.name, "late_seconds": entry.late_seconds} for entry in schedule.missed],
        "at_risk": [job.name for job in schedule.jobs if job.is_at_risk],
        "weighted_late_seconds": schedule.late_seconds,
        "lower_bound": {
            "makespan_seconds": schedule.bounds.makespan,
            "weighted_late_seconds": schedule.bounds.lateness,
            "usd": schedule.bounds.usd,
        },
        "is_best": schedule.is_best,
        "evaluated": schedule.evaluated,
        "seconds": schedule.seconds,
    }
    return {key: to_builtins(value) for key, value in data.items()}


def schedule_parts(schedule: Schedule) -> Iterator[Part]:
    """Yield a schedule: when each job runs and where, what is late, and what no schedule does better."""
    late = len(schedule.missed)
    text = f"{late} of {len(schedule.jobs)} deadlines missed" if late else "every deadline is kept"
    if not any(job.deadline is not None for job in schedule.jobs):
        text = "no job has a deadline"
    jobs = "1 job ends" if len(schedule.jobs) == 1 else f"{len(schedule.jobs)} jobs end"
    yield TextPart(f"{jobs} after {format_seconds(mean(schedule.makespan.value))}: {text}", "strong")
    yield table_part(_SCHEDULE_REPORT_HEADS, [_schedule_report_row(job) for job in schedule.jobs], (2, 3, 5, 7))
    for name, reason in schedule.left_out:
        yield TextPart(f"left out: {name}: {reason}", "strong")
    yield from (TextPart(line) for line in _remarks(schedule))


def _remarks(schedule: Schedule) -> Iterator[str]:
    for job in schedule.missed:
        yield f"{job.name} is {format_seconds(job.late_seconds)} late"
    risks = [job.name for job in schedule.jobs if job.is_at_risk]
    if risks:
        yield f"late if everything takes as long as its range says: {', '.join(risks)}"
    low, high = (format_seconds(mean(end)) for end in (schedule.makespan.low, schedule.makespan.high))
    yield f"last end: {low} to {high} with the ranges of the jobs"
    bound, makespan = schedule.bounds.makespan, mean(schedule.makespan.value)
    beyond = makespan / bound - 1.0 if bound > 0 else 0.0
    if schedule.is_best:
        yield "no schedule ends earlier or is less late"
    else:
        yield (
            f"no schedule ends before {format_seconds(bound)}: this one is at most {format_percent(beyond, 1)} longer "
            f"than the best; at least {format_seconds(schedule.bounds.lateness)} of "
            f"{format_seconds(schedule.late_seconds)} lateness cannot be avoided"
        )
    if schedule.usd is None or schedule.fleet_usd is None:
        yield "a price is not known: give usd_per_hour beside the machines"
    else:
        least = format_money(schedule.bounds.usd)
        yield (
            f"cost: {format_money(schedule.usd)} for the time that jobs hold machines (at least {least}), "
            f"{format_money(schedule.fleet_usd)} for the whole fleet until the last ends"
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
