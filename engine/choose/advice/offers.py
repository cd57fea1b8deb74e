"""Advice that can be taken: changes of a plan, with what each comes to once it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.choose.advice.advice import LEAST_EFFECT, recommended, worth
from capacity_tui.engine.choose.advice.larger_devices import larger_devices
from capacity_tui.engine.choose.advice.make_fit import estimated, smallest_fit
from capacity_tui.engine.choose.advice.recommendations import remedies
from capacity_tui.engine.choose.advice.remedy import Remedy
from capacity_tui.engine.choose.modes.filled import ModePlan
from capacity_tui.engine.choose.modes.modes import MODES, ModeName, fill
from capacity_tui.engine.choose.whatif.deltas import Effect, effects, plain_change, setting_words
from capacity_tui.engine.choose.whatif.trials import EstimatedPlan, Trial
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.edit import edited
from capacity_tui.engine.verdict import Verdict

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine
    from capacity_tui.engine.plan.plan import Plan

MOST_OFFERS = 6


@dataclass(frozen=True, slots=True)
class Offer:
    """A change that improves a plan.

    Attributes:
        title: what to do.
        change: plan fields and their new values, as plain data.
        effects: all that it does to time, memory and money.
        verdict: whether the plan fits with it.
        caution: what else it changes; empty for nothing.
    """

    title: str
    change: Mapping[str, object]
    effects: tuple[Effect, ...]
    verdict: Verdict
    caution: str = ""


def offers(
    plan: Plan,
    filled: ModePlan,
    machine: Machine | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> tuple[Offer, ...]:
    """Return what would improve a plan, the best first; where it does not fit, the ways out before all else.

    What each does is the difference between the plan as its mode fills it now and as it would fill it then.

    Args:
        plan: the plan as the user gave it.
        filled: the same as a mode fills it.
        machine: what was detected, for plans that run on it.
        is_wanted: whether anybody still waits for the answer; asked between estimates.
    """
    case = EstimatedPlan(plan, filled.resolved, filled.estimate, filled.catalog, machine)
    found: list[Offer] = []
    for remedy in _candidates(case):
        if not is_wanted():
            return ()
        offer = None if any(remedy.change == each.change for each in found) else _offer(case, filled, remedy)
        if offer is not None:
            found.append(offer)
    if case.estimate.held is False:
        found.sort(key=lambda offer: offer.verdict.gravity)
    return tuple(found[:MOST_OFFERS])


def _candidates(case: EstimatedPlan) -> Iterator[Remedy]:
    """Yield what is worth trying, with changes as plain data."""
    tried = estimated(case, remedies(case))
    for remedy, trial in recommended(case, tried):
        yield Remedy(remedy.code, remedy.title, plain_change(trial.change), remedy.caution)
    if case.estimate.held is False:
        smallest = smallest_fit(case, tried)
        for trial in (*((smallest,) if smallest else ()), *larger_devices(case)):
            change = plain_change(trial.change)
            yield Remedy("fits", setting_words(change), change)


def _offer(case: EstimatedPlan, filled: ModePlan, remedy: Remedy) -> Offer | None:
    """Return what a change comes to once it is made; None where it cannot be, or helps little."""
    try:
        changed = edited(case.wanted, remedy.change, case.catalog).plan
        then = fill(changed, _name_of(filled), case.machine, case.catalog)
    except CapacityError:
        return None
    if worth(case, Trial(remedy.change, then.resolved, then.estimate), gentle=True) < LEAST_EFFECT:
        return None
    told = tuple(effects(case.estimate, then.estimate))
    return Offer(remedy.title, remedy.change, told, then.estimate.verdict, remedy.caution)


def _name_of(filled: ModePlan) -> ModeName:
    return next(name for name in MODES if name == filled.mode.id)
