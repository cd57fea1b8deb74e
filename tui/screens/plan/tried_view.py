"""A plan with other values of its fields, in the words of lists and maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Quote
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, figure
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.solve import estimate_changes
from capacity_tui.engine.solve.modes import ModePlan, fill
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.screens.plan.answer_view import usage, verdict_words
from capacity_tui.tui.shown.tried import Tried

Pair: TypeAlias = tuple[str, str]


def tried(plan: Plan, change: Mapping[str, object], catalog: Catalog, machine: Machine | None) -> Tried:
    """Return what a plan would be with some fields changed, filled as the balanced mode does."""
    try:
        filled = fill(edited(plan, change, catalog).plan, "balanced", machine, catalog)
    except CapacityError as error:
        return Tried(Verdict.CANNOT_RUN, reason=error.title)
    quote = next(iter(filled.resolved.cluster.price.rate_quotes), None)
    return replace(_told(filled.estimate, filled.plan), source="" if quote is None else _source(quote))


def tried_pairs(
    plan: Plan, balanced: ModePlan, keys: Pair, pairs: Sequence[Pair], machine: Machine | None
) -> Iterator[tuple[Mapping[Pair, Tried], bool]]:
    """Yield what a plan would be with pairs of values of two fields, and whether that is the last word.

    All at once come first, with what the mode chose for the plan as it is; then, where it chose anything else, one
    after another as it would choose then.

    Args:
        plan: the plan.
        balanced: the same as the balanced mode fills it.
        keys: the two fields.
        pairs: their values, in the order in which they are wanted.
        machine: what was detected.
    """
    changes = [dict(zip(keys, pair, strict=True)) for pair in pairs]
    is_open = any(path not in keys for path in balanced.reasons)
    found = estimate_changes(balanced.plan, changes, machine, balanced.catalog)
    told = (
        Tried(Verdict.CANNOT_RUN, reason=each.title) if isinstance(each, CapacityError) else _told(each, balanced.plan)
        for each in found
    )
    yield dict(zip(pairs, told, strict=True)), not is_open
    if is_open:
        for pair, change in zip(pairs, changes, strict=True):
            yield {pair: tried(plan, change, balanced.catalog, machine)}, True


def _source(quote: Quote) -> str:
    """Return whose price it is, and how old that is in days."""
    return f"{quote.provider}{'' if quote.age.days is None else f' {quote.age.days} d'}"


def _told(estimate: Estimate, plan: Plan) -> Tried:
    held, price, cost = usage(estimate), figure(estimate, Figure.COST_USD_PER_HOUR), figure(estimate, Figure.COST_USD)
    seconds, time = _time(plan, estimate)
    return Tried(
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
        estimate, Figure.TIME_PER_OUTPUT_TOKEN_SECONDS if plan.task == "infer" else Figure.ESTIMATED_TRAIN_TIME_SECONDS
    )
    if of_all.number is not None:
        return of_all.number, f"{of_all.text}/token" if plan.task == "infer" else of_all.text
    step = figure(estimate, Figure.STEP_SECONDS)
    return step.number, f"{estimate.computation.iteration} {step.text}"
