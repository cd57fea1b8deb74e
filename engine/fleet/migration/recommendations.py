"""What to do about a job, by what matters to one: cost, speed, reliability."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from capacity_tui.engine.fleet.database import assumed
from capacity_tui.engine.fleet.migration.question import (
    Alternative,
    MigrationQuestion,
    Priority,
    Recommendation,
    machines,
    money,
    percent,
    times,
)
from capacity_tui.engine.fleet.migration.transfer import DEGREES
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.units import PERCENT, format_count

_PAID = (Figure.COST_USD, Figure.COST_USD_PER_MILLION_TOKENS)
NOTHING_BETTER = "no offer saves enough"  # Said where nothing that was compared would do better, and only there


def recommendations(
    question: MigrationQuestion,
    current: Alternative,
    alternatives: Sequence[Alternative],
    worth: Sequence[Alternative],
    faster: Sequence[Alternative],
    why_not: Sequence[str],
) -> tuple[Recommendation, ...]:
    """Return what is recommended, at least one thing for each priority.

    Args:
        alternatives: the others, the largest saving first.
        worth: those of them that are worth moving to for what they save.
        faster: those that are surely faster.
    """
    if not alternatives:
        return ()
    return (
        *_of_settings(current, alternatives),
        *_of_cost(current, worth, why_not),
        _of_performance(current, faster),
        _of_reliability(question, current, alternatives),
    )


def first_machines(
    current: Alternative, tuned: Alternative | None, alternatives: Sequence[Alternative], usable: Sequence[Alternative]
) -> tuple[Recommendation, ...]:
    """Return what is recommended for a job that does not fit where it is.

    Args:
        tuned: that machine with settings under which the job fits; None where there are none.
        usable: those that hold it surely, at an acceptable risk.
    """
    advice = []
    remedy = next((remedy for remedy in current.remedies if remedy.is_enough), None)
    if tuned is not None:
        detail = f"{tuned.instance} holds the job with other settings, without moving"
        advice.append(Recommendation("reliability", tuned.instance, "Tune the current machine", detail, tuned.set))
    elif remedy is not None:
        detail = f"{current.instance} then holds the job, without moving"
        title = f"Keep the current machine, with {remedy.words}"
        advice.append(Recommendation("reliability", current.instance, title, detail, remedy.set))
    priced = [alternative for alternative in usable if np.isfinite(cost_of_work(alternative))]
    if priced:
        best = min(priced, key=cost_of_work)
        others = [
            alternative
            for alternative in alternatives
            if alternative.fits and cost_of_work(alternative) < cost_of_work(best)
        ]
        detail = f"the lowest cost of the usable machines: {_work_paid(best)}"
        detail += _left_out(others, cost_of_work, _work_paid)
        advice.append(Recommendation("cost", best.instance, f"Move to {machines(best)}", detail, best.set))
    fast = [alternative for alternative in usable if _speed(alternative)]
    if fast:
        best = max(fast, key=_speed)
        others = [
            alternative for alternative in alternatives if alternative.fits and _speed(alternative) > _speed(best)
        ]
        detail = f"the fastest of the usable machines: {_speed_words(best)}"
        detail += _left_out(others, lambda entry: -_speed(entry), _speed_words)
        advice.append(Recommendation("performance", best.instance, f"Move to {machines(best)}", detail, best.set))
    return tuple(advice)


def cost_of_work(alternative: Alternative) -> float:
    """Return what a machine takes for the job, for a million tokens or for a month; infinite where nothing is known."""
    paid = next((alternative.figures[key] for key in _PAID if key in alternative.figures), None)
    month = float("inf") if alternative.usd_month is None else alternative.usd_month
    return month if paid is None else mean(paid.value)


def surely_faster(current: Alternative, usable: Sequence[Alternative]) -> tuple[Alternative, ...]:
    """Return the machines with a known price that do more work a second at both ends of the range."""
    least = 1.0 + assumed("least_gain_percent") / PERCENT
    return tuple(
        alternative
        for alternative in usable
        if alternative.performance_ratio is not None
        and alternative.instance != current.instance
        and mean(alternative.performance_ratio.value) >= least
        and mean(alternative.performance_ratio.low) > 1.0
        and alternative.usd_same_work is not None
    )


def fastest(faster: Sequence[Alternative]) -> Alternative:
    """Return the fastest machine, of equally fast ones the cheapest."""
    return max(faster, key=lambda entry: (round(_ratio(entry), 2), -_paid(entry)))


def _left_out(
    others: Sequence[Alternative], order: Callable[[Alternative], float], words: Callable[[Alternative], str]
) -> str:
    """Return which machine would be better but cannot be used, and why; nothing where there is none."""
    if not others:
        return ""
    best = min(others, key=order)
    why = next(iter(best.risk.reasons), best.reason) if best.risk.level == "high" else best.reason
    return f"; left out: {machines(best)}, {words(best)}, {why or 'too slow for a month of work'}"


def _of_settings(current: Alternative, alternatives: Sequence[Alternative]) -> Iterator[Recommendation]:
    """Yield what the current machine itself would give with other settings, or with all of its devices."""
    own = next((alternative for alternative in alternatives if alternative.instance == current.instance), None)
    if own is None or not own.fits or own.performance_percent is None or own.count > current.count:
        return
    gain = mean(own.performance_percent.value)
    if gain < assumed("least_gain_percent"):
        return
    unused = own.devices - current.devices
    title = f"Use all {own.devices} devices that are paid for" if unused > 0 else "Tune the current machine"
    detail = f"{current.instance} would do {percent(own.performance_percent)} more at the same price, without moving"
    yield Recommendation("performance", current.instance, title, detail, own.set)


def _of_cost(current: Alternative, worth: Sequence[Alternative], why_not: Sequence[str]) -> Iterator[Recommendation]:
    """Yield the machine that saves most, and the one of the same provider that does."""
    if not worth:
        yield _stay("cost", current, "; ".join(why_not))
        return
    near = next((alternative for alternative in worth if alternative.provider == current.provider), None)
    for best in dict.fromkeys((worth[0].instance, near.instance if near else worth[0].instance)):
        yield _saving(next(alternative for alternative in worth if alternative.instance == best), current)


def _saving(best: Alternative, current: Alternative) -> Recommendation:
    assert best.saving_percent is not None and best.saving_usd is not None  # noqa: S101 - it is worth it
    staying = f"without leaving {best.provider}: " if best.provider == current.provider else ""
    detail = (
        f"{staying}saves {percent(best.saving_percent)}, {money(best.saving_usd.value)} a month; moving costs "
        f"{money(best.move_usd or 0.0)} once"
    )
    return Recommendation("cost", best.instance, f"Move to {machines(best)}", detail, best.set)


def _of_performance(current: Alternative, faster: Sequence[Alternative]) -> Recommendation:
    if not faster:
        why = "no offer is surely faster at a known price and an acceptable risk"
        return _stay("performance", current, why)
    best = fastest(faster)
    paid = best.usd_same_work
    assert paid is not None and best.performance_ratio is not None  # noqa: S101 - chosen so
    detail = f"{times(best.performance_ratio)} times the throughput; the same work costs {money(paid.value)}"
    return Recommendation("performance", best.instance, f"Move to {machines(best)}", detail, best.set)


def _of_reliability(
    question: MigrationQuestion, current: Alternative, alternatives: Sequence[Alternative]
) -> Recommendation:
    """Return the safest machine: on demand, at a lower risk than now, of such the cheapest."""
    if current.is_spot and not question.allows_spot:
        detail = "interactive serving does not run on spot capacity"
        return Recommendation("reliability", current.instance, "Serve on demand", detail, {Key.PRICING_SPOT: False})
    risks = "; ".join(current.risk.reasons)
    if not current.risk.reasons:
        return _stay("reliability", current, "no known risk")
    if current.risk.level == DEGREES[0]:
        return _stay("reliability", current, f"low risk, though {risks}")
    safe = [
        alternative
        for alternative in alternatives
        if alternative.fits and not alternative.is_spot and _degree(alternative) < _degree(current)
    ]
    if not safe:
        return _stay("reliability", current, f"no machine that holds the job has a lower risk, though {risks}")
    best = min(safe, key=lambda entry: (_degree(entry), _paid(entry)))
    same_work = best.usd_same_work
    costs = f"the same work costs {money(same_work.value)}" if same_work is not None else "its price is not known"
    detail = f"{best.risk.level} risk, {costs}; the current one: {current.risk.reasons[0]}"
    return Recommendation("reliability", best.instance, f"Move to {machines(best)}", detail, best.set)


def _stay(priority: Priority, current: Alternative, why: str) -> Recommendation:
    return Recommendation(priority, current.instance, f"Stay on {current.instance}", why)


def _work_paid(alternative: Alternative) -> str:
    key = next((key for key in _PAID if key in alternative.figures), None)
    words = {Figure.COST_USD: "the job", Figure.COST_USD_PER_MILLION_TOKENS: "a million tokens", None: "a month"}[key]
    return f"{money(cost_of_work(alternative))} {words}"


def _speed(alternative: Alternative) -> float:
    speed = alternative.figures.get(Figure.TOKENS_PER_SECOND)
    return 0.0 if speed is None else mean(speed.value)


def _speed_words(alternative: Alternative) -> str:
    return f"{format_count(_speed(alternative))} tok/s"


def _ratio(alternative: Alternative) -> float:
    return 0.0 if alternative.performance_ratio is None else mean(alternative.performance_ratio.value)


def _paid(alternative: Alternative) -> float:
    return float("inf") if alternative.usd_same_work is None else mean(alternative.usd_same_work.value)


def _degree(alternative: Alternative) -> int:
    return DEGREES.index(alternative.risk.level)
