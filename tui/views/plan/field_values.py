"""The fields of a plan, and what other values of them would come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias, cast

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Cluster, Quote, hardware_facts
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, bound_text, figure, panel_figures, part_label
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.models import presumed_family
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import (
    OWN_PARAMETERS,
    Plan,
    PlanField,
    edited,
    field_label,
    field_text,
    plan_fields,
    table_text,
)
from capacity_tui.engine.present import SWITCH, plan_value_text
from capacity_tui.engine.schema import duration_text
from capacity_tui.engine.solve import estimate_changes
from capacity_tui.engine.solve.advice import Offer
from capacity_tui.engine.solve.modes import ModePlan, fill
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_bytes, format_number
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.comparison import Advice, Effect, Headline, MemoryPart, Trial, Usage
from capacity_tui.tui.shown.results import Field, Kind

_LONG_SECONDS = 60.0

# What the screen shows in the way of another kind.
_KINDS = {"switch": Kind.CHOICE, "list": Kind.TEXT, "table": Kind.TEXT}


def field_lines(plan: Plan, catalog: Catalog, cluster: Cluster | None = None) -> tuple[Field, ...]:
    """Return the fields that apply to a plan, tables as one line; a model nobody knows has those of a transformer."""
    family = presumed_family(plan.model.name, catalog)
    task = plan.task or ("finetune" if plan.training.method else family.task)
    facts = None if cluster is None else hardware_facts(cluster, plan.pricing.usd_per_hour is not None)
    entries = plan_fields(plan, family.kind, task, catalog, facts)
    return tuple(_line(entry, _is_main(plan, entry, family.kind)) for entry in entries)


def _is_main(plan: Plan, entry: PlanField, kind: str) -> bool:
    """Return whether a field is worth showing first: it was set, or it is one of those that move figures most."""
    *parents, name = entry.path.split(".")
    section = reduce(lambda owner, parent: getattr(owner, parent, None), parents, cast("object", plan))
    is_set = not entry.is_auto and name in getattr(section, "model_fields_set", ())
    is_of_model = entry.path.startswith(OWN_PARAMETERS) and (kind == "classical" or entry.value is not None)
    return is_set or is_of_model or (entry.knob.is_main and not entry.idle)


def _line(entry: PlanField, is_main: bool) -> Field:
    knob = entry.knob
    is_number = isinstance(entry.value, int | float) and not isinstance(entry.value, bool)
    return Field(
        key=entry.path,
        label=knob.label,
        group=knob.group,
        text=_text(entry),
        value=float(cast("float", entry.value)) if is_number else None,
        unit="" if _is_long(entry) else knob.unit,
        kind=_KINDS.get(knob.kind) or Kind(knob.kind),
        minimum=knob.minimum,
        maximum=knob.maximum,
        step=knob.step,
        choices=SWITCH if knob.kind == "switch" else knob.choices,
        catalogue=knob.catalogue,
        can_be_auto=knob.automatic,
        is_auto=entry.is_auto,
        help=knob.help,
        idle=entry.idle,
        words=entry.choices,
        synonyms=field_text(entry.path).synonyms,
        is_main=is_main,
    )


def _text(entry: PlanField) -> str:
    if entry.knob.kind == "table":
        return table_text(entry.value)
    if _is_long(entry):
        return duration_text(cast("float", entry.value))
    if entry.knob.is_length and isinstance(entry.value, int):
        return format_number(entry.value)  # in full: its ``M`` would be read as another number
    return plan_value_text(entry.value)


def _is_long(entry: PlanField) -> bool:
    """Whether a field holds a time that nobody counts in seconds."""
    return entry.knob.unit == "s" and isinstance(entry.value, int | float) and entry.value >= _LONG_SECONDS


# The order in which figures give way where there is little room, the highest first.
_CALENDAR, _LIMIT, _NO_PRICE, _RATE, _SECOND_TIME = 9, 8, 7, 6, 5


def usage(estimate: Estimate) -> Usage:
    """Return the memory of the fullest device beside what there is of it, and what takes it."""
    used, capacity = (figure(estimate, key) for key in (Figure.MEMORY_RESERVED_BYTES, Figure.MEMORY_CAPACITY_BYTES))
    share = figure(estimate, Figure.MEMORY_UTILIZATION_PERCENT).number
    parts = tuple(MemoryPart(part_label(part), mean(size)) for part, size in estimate.memory.parts.items())
    high = mean(used.value.high) if isinstance(used.value, Interval) else None
    interval = used.range_text.replace(" to ", " – ")
    if share is None:
        return Usage(used.text, parts=parts, high=high, interval=interval, key=used.metric.key)
    number, _, unit = used.text.rpartition(" ")
    text = number if capacity.text.endswith(f" {unit}") else used.text
    left = (capacity.number or 0.0) - (used.number or 0.0)
    return Usage(
        f"{text}/{capacity.text}",
        share / 100,
        parts,
        capacity.number,
        high,
        capacity.text,
        interval,
        format_bytes(left) if left > 0 else "",
        used.metric.key,
    )


def verdict_words(estimate: Estimate, *, brief: bool = False) -> str:
    """Return what the verdict says of one run: the limit that it misses, or that it fits at the price of offloading."""
    verdict = estimate.verdict
    if verdict is Verdict.MISSES_LIMIT:
        worst = estimate.broken[0]
        return f"misses {worst.label if brief else worst.words}"
    if estimate.memory.in_host and verdict.holds:
        return f"{verdict.words}, offload" if brief else f"{verdict.words} with offload"
    return verdict.brief if brief else verdict.words


def missed(estimate: Estimate) -> tuple[str, ...]:
    """Return the limits that a run does not keep, without the one that its verdict names."""
    is_named = estimate.verdict is Verdict.MISSES_LIMIT
    return tuple(limit.words for limit in estimate.missed[is_named:])


def headlines(plan: Plan, estimate: Estimate) -> Iterator[Headline]:
    """Yield time, cost, speed and what limits it, in the words of the run."""
    speed, is_open = estimate.computation.infer, estimate.computation.steps is None
    if speed is not None and speed.all_requests_seconds is not None:
        yield _timed(estimate, Figure.ALL_REQUESTS_SECONDS, "all requests ")
    elif speed is not None and figure(estimate, Figure.TIME_TO_FIRST_TOKEN_SECONDS).number is not None:
        yield _timed(estimate, Figure.TIME_TO_FIRST_TOKEN_SECONDS, "first token ")
        yield _timed(estimate, Figure.TIME_PER_OUTPUT_TOKEN_SECONDS, "", "/token", rank=_SECOND_TIME)
    elif is_open or plan.is_inference:
        yield _timed(estimate, Figure.STEP_SECONDS, f"{estimate.computation.iteration} ")
    else:
        yield _timed(estimate, Figure.ESTIMATED_TRAIN_TIME_SECONDS, "fit " if plan.is_fit else "")
    yield _cost(plan, estimate, is_open)
    if Figure.RELIABILITY_CALENDAR_SECONDS in panel_figures(estimate):
        yield _timed(estimate, Figure.RELIABILITY_CALENDAR_SECONDS, "calendar ", rank=_CALENDAR)
    answers = figure(estimate, Figure.OUTPUT_TOKENS_PER_SECOND)
    rate = answers if answers.number else figure(estimate, Figure.TOKENS_PER_SECOND)
    yield Headline(f"output {rate.text}" if rate is answers else rate.text, rank=_RATE, key=rate.metric.key)
    bound = Figure.BOTTLENECK_ARITHMETIC_INTENSITY
    yield Headline(bound_text(estimate.bottleneck.kind), rank=_LIMIT, key=bound)


def _timed(estimate: Estimate, key: str, before: str, after: str = "", rank: int = 0) -> Headline:
    value = figure(estimate, key)
    return Headline(f"{before}{value.text}{after}", value.range_text.replace(" to ", " – "), rank, key)


def _cost(plan: Plan, estimate: Estimate, is_open: bool) -> Headline:
    """Return what the job costs; where its length is open, what its tokens do, or an hour."""
    speed, per = estimate.computation.infer, ""
    if not is_open:
        key = Figure.COST_USD
    elif speed is not None and speed.all_requests_seconds is not None:
        key = Figure.COST_USD_OF_ALL_REQUESTS
    elif plan.is_inference:
        key = Figure.COST_USD_PER_MILLION_TOKENS
        per = f"/M {'tok' if estimate.model.unit == 'token' else estimate.model.counted}"
    else:
        key, per = Figure.COST_USD_PER_HOUR, "/h"
    value = figure(estimate, key)
    return Headline(value.absence, rank=_NO_PRICE, key=key) if value.absence else Headline(value.text + per, key=key)


Pair: TypeAlias = tuple[str, str]


def trial(
    plan: Plan, change: Mapping[str, object], catalog: Catalog, machine: Machine | None, usual: ModePlan | None = None
) -> Trial:
    """Return what a plan would be with some fields changed, filled as the balanced mode does.

    Args:
        usual: the plan as it is, filled: what is filled otherwise is told; None where nobody asks.
    """
    try:
        filled = fill(edited(plan, change, catalog).plan, "balanced", machine, catalog)
    except CapacityError as error:
        return _trial_of(error, plan)
    quote = next(iter(filled.resolved.cluster.price.rate_quotes), None)
    also = "" if usual is None else ", ".join(_filled_otherwise(filled, usual, change))
    return replace(_trial_of(filled.estimate, filled.plan), source="" if quote is None else _source(quote), also=also)


def _filled_otherwise(filled: ModePlan, usual: ModePlan, change: Mapping[str, object]) -> Iterator[str]:
    """Yield the fields that a mode fills otherwise in one plan than in another, each with its value."""
    for path in filled.reasons:
        value = filled.plan.value(path)
        if path not in change and value != usual.plan.value(path):
            yield f"{field_label(path)} {plan_value_text(value)}"


def trial_pairs(
    plan: Plan, balanced: ModePlan, keys: Pair, pairs: Sequence[Pair], machine: Machine | None
) -> Iterator[tuple[Mapping[Pair, Trial], bool]]:
    """Yield what a plan would be with pairs of values of two fields, and whether that is the last word.

    All at once come first, with what the mode chose for the plan as it is; then, where it chose anything else, one
    after another as it would choose then.
    """
    changes = [dict(zip(keys, pair, strict=True)) for pair in pairs]
    is_open = any(path not in keys for path in balanced.reasons)
    estimates = estimate_changes(balanced.plan, changes, machine, balanced.catalog)
    yield {pair: _trial_of(one, balanced.plan) for pair, one in zip(pairs, estimates, strict=True)}, not is_open
    if is_open:
        for pair, change in zip(pairs, changes, strict=True):
            yield {pair: trial(plan, change, balanced.catalog, machine, balanced)}, True


def _source(quote: Quote) -> str:
    """Return whose price it is, and how old that is in days."""
    return f"{quote.provider}{'' if quote.age.days is None else f' {quote.age.days} d'}"


def _trial_of(estimate: Estimate | CapacityError, plan: Plan) -> Trial:
    if isinstance(estimate, CapacityError):
        return Trial(Verdict.CANNOT_RUN, reason=estimate.title)
    held, price, cost = usage(estimate), figure(estimate, Figure.COST_USD_PER_HOUR), figure(estimate, Figure.COST_USD)
    seconds, time = _time(plan, estimate)
    return Trial(
        estimate.verdict,
        held.text,
        time,
        "" if price.number is None else f"{price.text}/h",
        share=held.share,
        words=verdict_words(estimate),
        seconds=seconds,
        usd=price.number,
        cost="" if cost.number is None else cost.text,
        cost_usd=cost.number,
    )


def _time(plan: Plan, estimate: Estimate) -> tuple[float | None, str]:
    """Return the seconds that rows are compared by, and how they are shown: of the job, a token, or else a step."""
    of_all = figure(
        estimate, Figure.TIME_PER_OUTPUT_TOKEN_SECONDS if plan.is_inference else Figure.ESTIMATED_TRAIN_TIME_SECONDS
    )
    if of_all.number is not None:
        return of_all.number, f"{of_all.text}/token" if plan.is_inference else of_all.text
    step = figure(estimate, Figure.STEP_SECONDS)
    return step.number, f"{estimate.computation.iteration} {step.text}"


_FIRST = "memory."


def advice_of(offer: Offer) -> Advice:
    """Return an offer in the words of the screen, what it does to memory before all else."""
    memory_first = sorted(offer.effects, key=lambda effect: not effect.metric.key.startswith(_FIRST))
    effects = []
    for effect in memory_first:
        metric = effect.metric
        # The unit stands behind the value: a name that says it would say it twice.
        says_unit = not metric.brief or metric.brief.endswith(metric.unit)
        name = metric.name if says_unit else metric.brief
        effects.append(Effect(f"{name} {effect.text} {effect.percent}".rstrip(), effect.gain))
    return Advice(offer.title, offer.change, offer.verdict, tuple(effects), offer.caution)
