"""A schedule of jobs, as plain data and as lines."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.fleet.scheduling import Schedule, ScheduledJob
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.as_builtins import to_builtins
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.units import format_money, format_percent, format_seconds

_HEADS = ("job", "machines", "start", "end", "range of end", "deadline", "", "cost")


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
    yield table_part(_HEADS, [_row(job) for job in found.jobs], (2, 3, 5, 7))
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


def _row(job: ScheduledJob) -> tuple[str, ...]:
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
