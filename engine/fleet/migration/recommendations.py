"""What to do about a job, by what matters to one: cost, speed, reliability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from capacity_tui.engine.fleet.assumptions import assumed
from capacity_tui.engine.fleet.migration.alternative import Alternative, Priority, Recommendation
from capacity_tui.engine.fleet.migration.question import MigrationQuestion
from capacity_tui.engine.fleet.migration.words import money, percent
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.units import PERCENT, format_count

_PAID = ("cost.usd", "cost.usd_per_million_tokens")
NOTHING_BETTER = "Already well-optimized"


def recommendations(
    question: MigrationQuestion, current: Alternative, found: Sequence[Alternative], worth: Sequence[Alternative]
) -> tuple[Recommendation, ...]:
    """Return what is recommended, at least one thing for each priority.

    Args:
        question: the job.
        current: the machine where it is.
        found: the others, the largest saving first.
        worth: those of them that are worth moving to.
    """
    if not found:
        return ()
    return (
        *_of_settings(current, found),
        *_of_cost(current, worth),
        _of_performance(current, found),
        _of_reliability(question, current, found),
    )


def first_machines(tuned: Alternative | None, usable: Sequence[Alternative]) -> tuple[Recommendation, ...]:
    """Return what is recommended for a job that does not fit where it is.

    Args:
        tuned: that machine with settings under which the job fits; None where there are none.
        usable: the machines that hold it at a bearable risk.
    """
    found = []
    if tuned is not None:
        detail = f"{tuned.instance} holds the job with other settings, without moving"
        found.append(Recommendation("reliability", tuned.instance, "Tune the machine you have", detail, tuned.set))
    priced = [each for each in usable if np.isfinite(cost_of_work(each))]
    if priced:
        cheapest = min(priced, key=cost_of_work)
        detail = f"of the machines that hold the job its work costs least: {_work_paid(cheapest)}"
        found.append(Recommendation("cost", cheapest.instance, f"Move to {_named(cheapest)}", detail, cheapest.set))
    fast = [each for each in usable if _speed(each)]
    if fast:
        fastest = max(fast, key=_speed)
        detail = f"of the machines that hold the job it is the fastest: {format_count(_speed(fastest))} tok/s"
        found.append(Recommendation("performance", fastest.instance, f"Move to {_named(fastest)}", detail, fastest.set))
    return tuple(found)


def cost_of_work(each: Alternative) -> float:
    """Return what a machine takes for the job, for a million tokens or for a month; infinite where nothing is known."""
    paid = next((each.figures[key] for key in _PAID if key in each.figures), None)
    month = float("inf") if each.usd_month is None else each.usd_month
    return month if paid is None else mean(paid.value)


def _of_settings(current: Alternative, found: Sequence[Alternative]) -> Iterator[Recommendation]:
    """Yield what the current machine itself would give with other settings, or with all of its devices."""
    own = next((each for each in found if each.instance == current.instance), None)
    if own is None or not own.fits or own.performance_percent is None or own.count > current.count:
        return
    gain = mean(own.performance_percent.value)
    if gain < assumed("least_gain_percent"):
        return
    unused = own.devices - current.devices
    title = f"Use all {own.devices} devices that are paid for" if unused > 0 else "Tune the machine you have"
    detail = f"{current.instance} would do {percent(own.performance_percent)} more at the same price, without moving"
    yield Recommendation("performance", current.instance, title, detail, own.set)


def _of_cost(current: Alternative, worth: Sequence[Alternative]) -> Iterator[Recommendation]:
    """Yield the machine that saves most, and the one of the same provider that does."""
    if not worth:
        yield _stay("cost", current, "nothing saves enough of the same work, soon enough and at a bearable risk")
        return
    near = next((each for each in worth if each.provider == current.provider), None)
    for best in dict.fromkeys((worth[0].instance, near.instance if near else worth[0].instance)):
        yield _saving(next(each for each in worth if each.instance == best), current)


def _saving(best: Alternative, current: Alternative) -> Recommendation:
    assert best.saving_percent is not None and best.saving_usd is not None  # noqa: S101 - it is worth it
    way = " on spot capacity" if best.is_spot else ""
    staying = f"without leaving {best.provider}: " if best.provider == current.provider else ""
    detail = (
        f"{staying}saves {percent(best.saving_percent)}, {money(best.saving_usd.value)} a month; moving costs "
        f"{money(best.move_usd or 0.0)} once"
    )
    return Recommendation("cost", best.instance, f"Move to {_named(best)}{way}", detail, best.set)


def _of_performance(current: Alternative, found: Sequence[Alternative]) -> Recommendation:
    """Return the fastest machine that is surely faster; of equally fast ones the cheapest."""
    least = 1.0 + assumed("least_gain_percent") / PERCENT
    faster = [
        each
        for each in found
        if each.performance_ratio is not None
        and each.instance != current.instance
        and mean(each.performance_ratio.value) >= least
        and mean(each.performance_ratio.low) > 1.0
        and each.risk.level != "high"
        and each.usd_same_work is not None
    ]
    if not faster:
        return _stay("performance", current, "no machine with a known price is surely faster at a bearable risk")
    best = max(faster, key=lambda each: (round(_ratio(each), 2), -_paid(each)))
    paid = best.usd_same_work
    assert paid is not None and best.performance_ratio is not None  # noqa: S101 - chosen so
    low, high = mean(best.performance_ratio.low), mean(best.performance_ratio.high)
    detail = (
        f"{_ratio(best):.2g} times the work a second ({low:.2g} to {high:.2g}); the same work costs {money(paid.value)}"
    )
    return Recommendation("performance", best.instance, f"Move to {_named(best)}", detail, best.set)


def _of_reliability(question: MigrationQuestion, current: Alternative, found: Sequence[Alternative]) -> Recommendation:
    """Return the safest machine: on demand, at a low risk, of such the cheapest."""
    if current.is_spot and not question.allows_spot:
        detail = "people wait for answers, and spot capacity may be taken back at any time"
        return Recommendation(
            "reliability", current.instance, "Pay for the service on demand", detail, {"pricing.spot": False}
        )
    if current.risk.level == "low" and current.fits:
        return _stay("reliability", current, "; ".join(current.risk.reasons) or "nothing speaks against it")
    safe = [each for each in found if each.fits and each.risk.level == "low" and not each.is_spot]
    if not safe:
        return _stay("reliability", current, "no machine that holds the job is at a lower risk")
    best = min(safe, key=_paid)
    risky = f"; the current one: {current.risk.reasons[0]}" if current.risk.reasons else ""
    same_work = best.usd_same_work
    costs = f"the same work costs {money(same_work.value)}" if same_work is not None else "its price is not known"
    return Recommendation(
        "reliability", best.instance, f"Move to {_named(best)}", f"low risk, {costs}{risky}", best.set
    )


def _stay(priority: Priority, current: Alternative, why: str) -> Recommendation:
    return Recommendation(priority, current.instance, f"Stay on {current.instance}: {NOTHING_BETTER.lower()}", why)


def _named(each: Alternative) -> str:
    return f"{each.count} x {each.instance}"


def _work_paid(each: Alternative) -> str:
    key = next((key for key in _PAID if key in each.figures), None)
    words = {"cost.usd": "the job", "cost.usd_per_million_tokens": "a million tokens", None: "a month"}[key]
    return f"{money(cost_of_work(each))} {words}"


def _speed(each: Alternative) -> float:
    speed = each.figures.get("computation.tokens_per_second")
    return 0.0 if speed is None else mean(speed.value)


def _ratio(each: Alternative) -> float:
    return 0.0 if each.performance_ratio is None else mean(each.performance_ratio.value)


def _paid(each: Alternative) -> float:
    return float("inf") if each.usd_same_work is None else mean(each.usd_same_work.value)
