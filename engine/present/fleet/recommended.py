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
from capacity_tui.engine.present.parts import Column, Part, TextPart, columns_part
from capacity_tui.engine.present.results import picked, to_builtins
from capacity_tui.engine.units import (
    GIGA,
    count_in_words,
    format_bytes,
    format_money,
    format_number,
    format_percent,
    format_quantity,
    format_seconds,
)


def recommended_as_dict(recommended: Recommended) -> dict[str, object]:
    """Return what to take as plain data, under the names that scripts rely on."""
    names = ("cheapest", "fastest", "balanced", "evaluated", "missed", "rejected", "complete")
    return {name: to_builtins(value) for name, value in picked(recommended, *names).items()}


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
    yield columns_part(_MACHINES, recommended.cheapest)
    yield TextPart(f"Fastest, {limit}", "strong")
    yield columns_part(_MACHINES, recommended.fastest)
    yield TextPart("Balanced: twice the machines only where they save more time than they add cost", "strong")
    yield columns_part(_MACHINES, (recommended.balanced,))
    best = recommended.balanced
    yield TextPart(f"price: {best.price_source}; the upper ends of time and cost also keep the limits", "quiet")
    yield TextPart(f"database: {best.database.reason}", "quiet")
    if not recommended.complete:
        yield TextPart("stopped before everything was tried", "quiet")


def _stored(machines: Machines) -> str:
    price = "" if machines.storage_usd is None else f", {format_money(machines.storage_usd)}"
    return f"{format_bytes(machines.storage_bytes, 'GB')}{price}"


def _database(machines: Machines) -> str:
    database = machines.database
    kept = f"{database.kind}, {format_bytes(database.storage_bytes, 'GB')}"
    if not database.cores:
        return kept
    return f"{kept}, {format_bytes(database.memory_bytes, 'GB')} RAM, {count_in_words(database.cores, 'core')}"


_MACHINES: Sequence[Column[Machines]] = (
    Column("machines", lambda one: f"{one.count} x {one.instance}"),
    Column("time", lambda one: format_quantity(mean(one.seconds.value), "s"), is_right=True),
    Column("cost", lambda one: format_quantity(mean(one.usd.value), "USD"), is_right=True),
    Column("memory", lambda one: f"{one.verdict.sign} {one.verdict.words}"),
    Column("$/h", lambda one: format_money(one.usd_per_hour), is_right=True),
    Column("longest", lambda one: format_quantity(mean(one.seconds.high), "s"), is_right=True),
    Column("dearest", lambda one: format_quantity(mean(one.usd.high), "USD"), is_right=True),
    Column("GPUs", lambda one: f"{one.devices} x {one.accelerator}" if one.accelerator else "none"),
    Column("RAM", lambda one: format_bytes(one.memory_bytes, "GB"), is_right=True),
    Column("cores", lambda one: "n/a" if one.cores is None else format_number(one.cores), is_right=True),
    Column("storage", _stored, is_right=True),
    Column("database", _database),
)


def regions_as_dict(regions: Regions) -> dict[str, object]:
    """Return a job region by region as plain data, under the names that scripts rely on."""
    data: dict[str, object] = {
        "home": regions.home,
        "data_bytes": regions.data_bytes,
        "usd_is_of": "month" if regions.seconds is None else "job",
        "job_seconds": regions.seconds,
        "regions": [_offer(offer, is_open=regions.seconds is None) for offer in regions.offers],
        "refused": [{"instance": name, "reason": reason} for name, reason in regions.refused],
    }
    return {key: to_builtins(value) for key, value in data.items()}


def regions_parts(regions: Regions) -> Iterator[Part]:
    """Yield a job region by region, the cheapest first."""
    cheapest, is_open = regions.offers[0], regions.seconds is None
    where = f"{cheapest.place.region or 'any region'} of {cheapest.place.provider}"
    job = "a month of 720 hours" if is_open else f"for a job of {format_seconds(regions.seconds)}"
    yield TextPart(f"cheapest in {where}: {format_money(cheapest.total_usd)} {job}", "strong")
    home = next((offer.total_usd for offer in regions.offers if offer.is_home), None)
    against_home = Column[RegionOffer]("against home", lambda offer: _against(home, offer), is_right=True)
    rate = Column[RegionOffer]("tok/s", lambda offer: format_number(offer.work_per_second), is_right=True)
    yield columns_part((*_OF_REGION, against_home, *_COSTS, *((rate,) if is_open else ()), *_OFFERED), regions.offers)
    size = f"{format_number(regions.data_bytes / GIGA)} GB of data"
    yield TextPart(f"data: {size} in {regions.home.region or 'an unnamed region'} of {regions.home.provider}")
    slowest = max((offer.data_hours for offer in regions.offers), default=0.0)
    if slowest > 0:
        yield TextPart(f"elsewhere it arrives after {format_seconds(slowest * 3600.0)}; leaving a region is paid once")
    if any(offer.data is None for offer in regions.offers):
        yield TextPart("n/a: what data costs that leaves its provider is not known")
    for name, reason in regions.refused:
        yield TextPart(f"{name}: {reason}", "quiet")


def _offer(offer: RegionOffer, *, is_open: bool) -> dict[str, object]:
    return {
        "region": offer.place.region,
        "name": offer.name,
        "provider": offer.place.provider,
        "instance": offer.quote.instance,
        "count": offer.count,
        **picked(offer, "usd_per_hour", "usd"),
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


def _against(home: float | None, offer: RegionOffer) -> str:
    """Return by how much a region is dearer than where the data are."""
    if offer.is_home:
        return "data is here"
    if not home or offer.total_usd is None:
        return ""
    return f"{'+' if offer.total_usd >= home else ''}{format_percent(offer.total_usd / home - 1.0)}"


def _price_source(offer: RegionOffer) -> str:
    quote, day = offer.quote, offer.quote.price_date or ""
    doubts = ("" if quote.verified else "unverified", "" if quote.age.words in day else quote.age.words)
    return ", ".join(filter(None, (day, *doubts)))


_OF_REGION: Sequence[Column[RegionOffer]] = (
    Column("region", lambda offer: offer.place.region or "any"),
    Column("provider", lambda offer: offer.place.provider),
    Column("together", lambda offer: format_money(offer.total_usd), is_right=True),
)
_COSTS: Sequence[Column[RegionOffer]] = (
    Column("job cost", lambda offer: format_money(offer.usd), is_right=True),
    Column("data", lambda offer: "n/a" if offer.data is None else format_money(mean(offer.data.usd)), is_right=True),
    Column("$/h", lambda offer: format_money(offer.usd_per_hour), is_right=True),
    Column("count", lambda offer: format_number(offer.count), is_right=True),
)
_OFFERED: Sequence[Column[RegionOffer]] = (
    Column("instance", lambda offer: offer.quote.instance),
    Column("region name", lambda offer: offer.name),
    Column("price source", _price_source),
)


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
        **picked(schedule, "is_best", "evaluated", "seconds"),
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
    yield columns_part(_JOBS, schedule.jobs)
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


def _range_of_end(job: ScheduledJob) -> str:
    low, high = mean(job.end.low), mean(job.end.high)
    return "" if low == high else f"{format_seconds(low)} to {format_seconds(high)}"


def _state(job: ScheduledJob) -> str:
    if job.late_seconds:
        return f"late by {format_seconds(job.late_seconds)}"
    return "in time, at risk" if job.is_at_risk else "" if job.deadline is None else "in time"


_JOBS: Sequence[Column[ScheduledJob]] = (
    Column("job", lambda job: job.name),
    Column("machines", lambda job: ", ".join(job.machines)),
    Column("start", lambda job: format_seconds(job.start), is_right=True),
    Column("end", lambda job: format_seconds(mean(job.end.value)), is_right=True),
    Column("range of end", _range_of_end),
    Column("deadline", lambda job: "" if job.deadline is None else format_seconds(job.deadline), is_right=True),
    Column("", _state),
    Column("cost", lambda job: format_money(job.usd), is_right=True),
)
