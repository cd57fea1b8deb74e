"""Fleets that serve a load, as plain data and as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from capacity_tui.engine.fleet.serving import (
    ENDS,
    Day,
    FleetDay,
    Loaded,
    PlannedFleet,
    ServingAnswer,
    ServingQuestion,
    Sized,
)
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.present.results import picked, to_builtins
from capacity_tui.engine.solve.space import Floats
from capacity_tui.engine.units import format_money, format_number, format_percent, format_seconds

HEADS = ("instance", "replicas", "devices each", "batch", "instances", "$/h", "$/M tokens", "TTFT", "TPOT")
_DAY_HEADS = ("over a day", "replicas", "cost", "with commitment", "requests in time", "TTFT", "TPOT")
_HOURS = 24
_MOST_NAMED = 4  # Names that one line of remarks holds


_PLANNED = {
    Figure.TIME_TO_FIRST_TOKEN_PERCENTILE_SECONDS: "TTFT",
    Figure.TIME_PER_OUTPUT_TOKEN_PERCENTILE_SECONDS: "TPOT",
}
"""Latencies of a plan under a load, at its percentile."""


def serving_as_dict(answer: ServingAnswer) -> dict[str, object]:
    """Return what serves a load as plain data, under the names that scripts rely on."""
    best, question = answer.best, answer.question
    data: dict[str, object] = {
        "rate": question.rate,
        "percentile": question.percentile,
        "replicas": None,
        "batch": None,
        "instance": None,
        **picked(answer, "usd_per_million_tokens", "usd_per_million_output_tokens"),
        **({} if best is None else _fleet(best, question)),
        "ranges": {} if best is None else {"replicas": {end: best.replicas.get(end) for end in ("low", "high")}},
        "others": [_fleet(other, question) for other in answer.others],
        "failing": [{"instance": entry.instance, "devices_each": entry.devices} for entry in answer.failing],
        "unfit": list(answer.unfit),
        "left_out": [{"instance": entry.instance, "devices_each": entry.devices} for entry in answer.left_out],
        "planned": answer.planned,
        "day": None if answer.day is None else _day(answer.day),
        "assumed": list(_assumed(answer)),
        "remarks": list(remarks(answer)),
        "seconds": answer.seconds,
    }
    return {key: to_builtins(value) for key, value in data.items()}


def serving_parts(answer: ServingAnswer) -> Iterator[Part]:
    """Yield the fleet that serves a load, the others that would, and what to know of it."""
    best, question = answer.best, answer.question
    limits = [f"{name} {format_seconds(limit)}" for name, limit in _limits(question) if limit is not None]
    asked = f"{question.rate:g} req/s, {' and '.join(limits)} for {question.percentile:g} % of the requests"
    if best is None:
        yield TextPart(f"nothing serves {asked}", "strong")
    else:
        yield TextPart(f"{_number(best.replicas['value'], 'replica')} of {best.candidate.instance}: {asked}", "strong")
        yield table_part(HEADS, [_row(entry, question) for entry in (best, *answer.others)], range(1, len(HEADS)))
    if answer.day is not None:
        yield TextPart()
        yield from _day_parts(answer.day)
    yield TextPart()
    for line in remarks(answer):
        yield TextPart(line)
    for line in _assumed(answer):
        yield TextPart(f"assumed: {line}", "quiet")


def remarks(answer: ServingAnswer) -> Iterator[str]:
    """Yield what to know of an answer: its range, what limits it, and what was left out."""
    best = answer.best
    if best is not None:
        yield _range_text(best)
        yield f"limit: {best.binding.upper() if best.binding != 'rate' else 'throughput'}; {best.why}"
        yield (
            f"at {best.rate:.3g} req/s a replica still keeps the limits; here each gets "
            f"{answer.question.rate / (best.replicas['value'] or 1):.3g}"
        )
    if answer.planned is not None:
        yield _planned_text(answer.planned)
    for candidate in answer.failing:
        with_devices = _number(candidate.devices, "device")
        yield f"{candidate.instance} with {with_devices}: not even a single request keeps the limits"
    for unfit in answer.unfit[:_MOST_NAMED]:
        yield f"{unfit.instance}: {unfit.reason}"
    if len(answer.unfit) > _MOST_NAMED:
        yield f"{len(answer.unfit) - _MOST_NAMED} others do not serve it either: --format json has them all"
    if answer.left_out:
        names = list(dict.fromkeys(entry.instance for entry in answer.left_out))
        shown = ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" * (len(names) > _MOST_NAMED))
        yield f"not simulated, since by their throughput alone they cost more, or rank lower: {shown}"
    yield "prices are on demand, or as the plan commits: spot is not used for interactive serving"


def _fleet(fleet: Sized, question: ServingQuestion) -> dict[str, object]:
    candidate = fleet.candidate
    plan = candidate.filled.plan
    return {
        "replicas": fleet.replicas["value"],
        "replicas_low": fleet.replicas.get("low"),
        "replicas_high": fleet.replicas.get("high"),
        "batch": fleet.slots,
        "instance": candidate.instance,
        "instances": fleet.instances,
        "devices_each": candidate.devices,
        "replicas_per_instance": candidate.per_instance,
        "tensor_parallel": plan.parallelism.tp,
        "pipeline_parallel": plan.parallelism.pp,
        "weights": plan.inference.weights_format,
        "usd_per_hour": fleet.usd_per_hour,
        "price_source": candidate.price_source,
        "ttft": _latency(fleet, lambda seen: seen.first, lambda seen: seen.first_mean, question.ttft),
        "tpot": _latency(fleet, lambda seen: seen.per_token, lambda seen: seen.per_token_mean, question.tpot),
        "kept_share": {end: float(fleet.loaded[end].kept[0]) for end in ENDS},
        "busy_share": float(fleet.loaded["value"].busy[0]),
        "requests_per_second_per_replica": fleet.rate,
        **picked(fleet, "binding", "why"),
    }


def _latency(
    fleet: Sized, at: Callable[[Loaded], Floats], average: Callable[[Loaded], Floats], limit: float | None
) -> dict[str, object]:
    ends: dict[str, object] = {end: float(at(fleet.loaded[end])[0]) for end in ENDS}
    return {**ends, "mean": float(average(fleet.loaded["value"])[0]), "limit": limit}


def _day(day: Day) -> dict[str, object]:
    return {
        "load": day.load.name,
        "load_source": day.load.source,
        "hourly_rates": _hourly(day.rates),
        "startup_seconds": day.startup.seconds,
        "startup_parts": dict(day.startup.parts),
        "scale_down_seconds": day.scale_down_seconds,
        "reserve": day.reserve,
        "commitment": day.prices.terms or None,
        "fixed": _fleet_day(day.fixed),
        "autoscaled": _fleet_day(day.scaled),
    }


def _fleet_day(fleet_day: FleetDay) -> dict[str, object]:
    return {
        "usd": fleet_day.usd,
        "usd_committed": fleet_day.usd_committed,
        "committed_instances": fleet_day.base,
        "kept_share": fleet_day.kept,
        "ttft": fleet_day.first,
        "tpot": fleet_day.per_token,
        "hourly_replicas": _hourly(fleet_day.replicas),
        "mean_replicas_paid": float(fleet_day.paid.mean()),
        "starts": fleet_day.starts,
    }


def _hourly(values: Floats) -> list[float]:
    return [float(entry) for entry in values.reshape(_HOURS, -1).mean(axis=1)]


def _limits(question: ServingQuestion) -> tuple[tuple[str, float | None], ...]:
    return ("TTFT", question.ttft), ("TPOT", question.tpot)


def _number(count: int | None, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _planned_text(planned: PlannedFleet) -> str:
    """Return what planning makes of the fleet, which counts the steady state where the simulation draws requests."""
    shown = [(label, planned.figures[key]) for key, label in _PLANNED.items() if key in planned.figures]
    figures = ", ".join(f"{label} {format_seconds(mean(value.value))}" for label, value in shown)
    return f"as a plan (steady state, `planned` of --format json has its settings): {planned.verdict.words}, {figures}"


def _range_text(best: Sized) -> str:
    low, high = best.replicas.get("low"), best.replicas.get("high")
    if low is not None and high is not None:
        return f"replicas: {low} to {high} with the range of the step times; the limits hold at the estimate"
    missing = "at the slow end of the step times not even a single request keeps the limits"
    return f"replicas: from {low}; {missing}"


def _row(fleet: Sized, question: ServingQuestion) -> tuple[str, ...]:
    usd = fleet.usd_per_hour
    run = fleet.candidate.run
    tokens = mean(run.prompt) + mean(run.output)
    million = None if usd is None else usd / (question.rate * tokens) * 1e6 / 3600.0
    seen = fleet.loaded["value"]
    return (
        fleet.candidate.instance,
        format_number(fleet.replicas["value"]),
        format_number(fleet.candidate.devices),
        format_number(fleet.slots),
        format_number(fleet.instances),
        format_money(usd),
        format_money(million, 3),
        format_seconds(float(seen.first[0])),
        format_seconds(float(seen.per_token[0])),
    )


def _day_parts(day: Day) -> Iterator[Part]:
    rows = [_day_row("as many as the peak needs", day.fixed), _day_row("autoscaled", day.scaled)]
    yield table_part(_DAY_HEADS, rows, range(1, len(_DAY_HEADS)))
    yield TextPart(
        f"load: {day.load.name}, {float(np.min(day.rates)):.3g} to {float(np.max(day.rates)):.3g} req/s; "
        f"{_number(day.scaled.starts, 'replica')} started in the day"
    )
    start = day.startup.seconds
    whole = format_seconds(mean(start.value))
    ends = f" ({format_seconds(mean(start.low))} to {format_seconds(mean(start.high))})" if day.startup.parts else ""
    yield TextPart(
        f"a new replica answers after {whole}{ends}; one is released when fewer were enough for "
        f"{format_seconds(day.scale_down_seconds)}; {format_percent(day.reserve)} above the load is kept in reserve"
    )
    if day.scaled.base is not None:
        yield TextPart(f"best committed to: {_number(day.scaled.base, 'instance')} of it ({day.prices.terms})")
    else:
        yield TextPart("no price with a commitment is known of it")


def _day_row(name: str, fleet_day: FleetDay) -> tuple[str, ...]:
    low, high = int(fleet_day.replicas.min()), int(fleet_day.replicas.max())
    return (
        name,
        f"{low}" if low == high else f"{low}-{high}",
        format_money(fleet_day.usd),
        format_money(fleet_day.usd_committed),
        format_percent(fleet_day.kept, 2),
        format_seconds(fleet_day.first),
        format_seconds(fleet_day.per_token),
    )


def _assumed(answer: ServingAnswer) -> Iterator[str]:
    best = answer.best
    yield "requests come at random (Poisson) and are spread over the replicas at random"
    if best is None:
        return
    run = best.candidate.run
    prompts, answers = (format_percent(mean(spread)) for spread in (run.prompt_spread, run.output_spread))
    if mean(run.prompt_spread) > 0 or mean(run.output_spread) > 0:
        yield f"lengths are gamma-distributed, deviating by {prompts} (prompts) and {answers} (answers) of the mean"
    else:
        yield "all requests have the same length: --spread 0.5 lets them differ by half of their mean"
    if answer.day is not None:
        yield from (f"{name}: {format_seconds(seconds)}" for name, seconds in answer.day.startup.parts)
        if answer.day.load.source:
            yield f"load of the day: {answer.day.load.source}"
