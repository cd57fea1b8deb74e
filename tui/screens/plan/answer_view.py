"""One mode's estimate as the answer strip says it."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.api import Estimate, Plan, Verdict, figure, limit_label
from capacity_tui.tui.shown.headlines import Headline, Usage

_FIRST = "computation.infer.time_to_first_token_seconds"
_EACH = "computation.infer.time_per_output_token_seconds"
_JOB = "computation.estimated_train_time_seconds"
# The order in which figures give way where there is little room, the highest first.
_LIMIT, _RATE, _SECOND_TIME = 8, 6, 5


def usage(estimate: Estimate) -> Usage:
    """Return the memory of the fullest device beside what there is of it."""
    used, capacity = (figure(estimate, f"memory.{name}") for name in ("reserved_bytes", "capacity_bytes"))
    share = figure(estimate, "memory.utilization_percent").number
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
    if speed is not None and figure(estimate, _FIRST).number is not None:
        yield _timed(estimate, _FIRST, "first token ")
        yield _timed(estimate, _EACH, "", "/token", rank=_SECOND_TIME)
    elif is_open or plan.task == "infer":
        yield _timed(estimate, "computation.step_seconds", f"{estimate.computation.iteration} ")
    else:
        yield _timed(estimate, _JOB, "fit " if plan.task == "fit" else "")
    yield _cost(plan, estimate, is_open)
    yield Headline(figure(estimate, "computation.tokens_per_second").text, rank=_RATE)
    yield Headline(f"limit {limit_label(estimate.bottleneck.kind)}", rank=_LIMIT)


def _timed(estimate: Estimate, key: str, before: str, after: str = "", rank: int = 0) -> Headline:
    found = figure(estimate, key)
    return Headline(f"{before}{found.text}{after}", found.range_text.replace(" to ", " – "), rank)


def _cost(plan: Plan, estimate: Estimate, is_open: bool) -> Headline:
    """Return what the job costs; where its length is open, what its tokens do, or an hour."""
    if not is_open:
        found = figure(estimate, "cost.usd")
        return Headline(found.absence or found.text)
    if plan.task == "infer":
        found = figure(estimate, "cost.usd_per_million_tokens")
        counted = "tok" if estimate.model.unit == "token" else estimate.model.counted
        return Headline(found.absence or f"{found.text}/M {counted}")
    found = figure(estimate, "cost.usd_per_hour")
    return Headline(found.absence or f"{found.text}/h")
