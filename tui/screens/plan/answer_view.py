"""One mode's estimate as the answer strip says it."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.estimate import Estimate, figure, limit_label
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.headlines import Headline, Usage

# The order in which figures give way where there is little room, the highest first.
_LIMIT, _RATE, _SECOND_TIME = 8, 6, 5


def usage(estimate: Estimate) -> Usage:
    """Return the memory of the fullest device beside what there is of it."""
    used, capacity = (figure(estimate, key) for key in (Figure.MEMORY_RESERVED_BYTES, Figure.MEMORY_CAPACITY_BYTES))
    share = figure(estimate, Figure.MEMORY_UTILIZATION_PERCENT).number
    if share is None:
        return Usage(used.text)
    number, _, unit = used.text.rpartition(" ")
    text = number if capacity.text.endswith(f" {unit}") else used.text
    return Usage(f"{text}/{capacity.text}", share / 100)


def verdict_words(estimate: Estimate, *, brief: bool = False) -> str:
    """Return what the verdict says of one run: the limit that it misses, or that it fits at the price of offloading."""
    verdict = estimate.verdict
    if verdict is Verdict.MISSES_LIMIT:
        worst = estimate.broken[0]
        return f"misses {worst.label if brief else worst.words}"
    if estimate.memory.in_host and verdict.holds:
        return f"{verdict.words}, offload" if brief else f"{verdict.words} with offload"
    return verdict.brief if brief else verdict.words


def headlines(plan: Plan, estimate: Estimate) -> tuple[Headline, ...]:
    """Return time, cost, speed and what limits it, in the words of the run."""
    return tuple(_headlines(plan, estimate))


def _headlines(plan: Plan, estimate: Estimate) -> Iterator[Headline]:
    speed, is_open = estimate.computation.infer, estimate.computation.steps is None
    if speed is not None and figure(estimate, Figure.TIME_TO_FIRST_TOKEN_SECONDS).number is not None:
        yield _timed(estimate, Figure.TIME_TO_FIRST_TOKEN_SECONDS, "first token ")
        yield _timed(estimate, Figure.TIME_PER_OUTPUT_TOKEN_SECONDS, "", "/token", rank=_SECOND_TIME)
    elif is_open or plan.task == "infer":
        yield _timed(estimate, Figure.STEP_SECONDS, f"{estimate.computation.iteration} ")
    else:
        yield _timed(estimate, Figure.ESTIMATED_TRAIN_TIME_SECONDS, "fit " if plan.task == "fit" else "")
    yield _cost(plan, estimate, is_open)
    answers = figure(estimate, Figure.OUTPUT_TOKENS_PER_SECOND)
    rate = f"output {answers.text}" if answers.number else figure(estimate, Figure.TOKENS_PER_SECOND).text
    yield Headline(rate, rank=_RATE)
    yield Headline(f"limit {limit_label(estimate.bottleneck.kind)}", rank=_LIMIT)


def _timed(estimate: Estimate, key: str, before: str, after: str = "", rank: int = 0) -> Headline:
    found = figure(estimate, key)
    return Headline(f"{before}{found.text}{after}", found.range_text.replace(" to ", " – "), rank)


def _cost(plan: Plan, estimate: Estimate, is_open: bool) -> Headline:
    """Return what the job costs; where its length is open, what its tokens do, or an hour."""
    if not is_open:
        found = figure(estimate, Figure.COST_USD)
        return Headline(found.absence or found.text)
    if plan.task == "infer":
        found = figure(estimate, Figure.COST_USD_PER_MILLION_TOKENS)
        counted = "tok" if estimate.model.unit == "token" else estimate.model.counted
        return Headline(found.absence or f"{found.text}/M {counted}")
    found = figure(estimate, Figure.COST_USD_PER_HOUR)
    return Headline(found.absence or f"{found.text}/h")
