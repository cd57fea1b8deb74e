"""Advice on a plan: what would improve it, by what planning the changed plan comes to, and what to know before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, Note
from capacity_tui.engine.keys import Key
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.advice.fitting import (
    DEAR,
    LEAST_EFFECT,
    allowed,
    cheapest_fitting_change,
    is_short,
    searched_change,
    worth,
)
from capacity_tui.engine.solve.advice.hardware_remedies import SPOT, Remedy, larger_devices, larger_devices_text
from capacity_tui.engine.solve.advice.remedies import remedies
from capacity_tui.engine.solve.advice.warnings import cautions
from capacity_tui.engine.solve.candidate import Candidate, EstimatedPlan, violations_of
from capacity_tui.engine.solve.changes import (
    Effect,
    change_text,
    effect_text,
    effects,
    estimate_changes,
    saves,
    setting_words,
)
from capacity_tui.engine.solve.modes.mode_plan import ModePlan
from capacity_tui.engine.solve.modes.modes import open_fields
from capacity_tui.engine.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.plan import Plan

MOST_RECOMMENDATIONS = 5
MOST_OFFERS = 6  # Recommendations, and the ways out of a plan that does not fit
MOST_PLANNED = 2  # Of the remedies of one kind, those that promise most are planned where that takes a search
# What costs time for memory, or throughput for latency, is tried where these are short alone.
_EASING = frozenset({"smaller_micro_batch", "smaller_batch", "checkpointing", "offload"})
# Where a plan does not fit, other hardware is shown as long as it is not much dearer than the cheapest.
_NOT_MUCH_DEARER = 2.0 / 3.0


@dataclass(frozen=True, slots=True)
class Offer:
    """A change that improves a plan."""

    title: str
    change: Mapping[str, object]
    effects: tuple[Effect, ...]  # all that it does to time, memory and money
    verdict: Verdict  # whether the plan fits with it
    caution: str = ""  # what else it changes; empty for nothing
    code: str = ""  # stable name of what is done
    saves: Mapping[str, float] = field(default_factory=dict)  # what changes, by result key: new value minus old
    words: str = ""  # the same as text, with what to set

    @property
    def note(self) -> Note:
        """The offer as a recommendation."""
        return Note(self.code, self.title, f"{self.words} {self.caution}".strip(), self.saves, self.change)


@dataclass(frozen=True, slots=True)
class Advice:
    """What would improve a plan."""

    recommended: tuple[Offer, ...] = ()  # what is worth doing, the strongest first
    # the smallest change that makes a plan fit which does not; None where there is none
    fitting: Candidate | None = None
    larger: tuple[Candidate, ...] = ()  # the smallest devices that would hold it, where it does not fit


def advise(case: EstimatedPlan) -> Advice:
    """Return what would improve a plan; every figure is what planning the changed plan comes to."""
    presses = is_short(case) or case.estimate.verdict is Verdict.TIGHT
    sensible = (remedy for remedy in remedies(case) if presses or remedy.code not in _EASING)
    tried = list(planned(case, sensible))
    settings = searched_change(case, case.mode)
    if settings is not None:
        tried.append((Remedy("settings", setting_words(settings.change), settings.change), settings))
    offers = recommended(case, tried)
    if case.estimate.verdict is not Verdict.DOES_NOT_FIT:
        return Advice(offers)
    return Advice(offers, cheapest_fitting_change(case, tried), larger_devices(case))


def offers(plan: Plan, filled: ModePlan, machine: Machine | None = None) -> tuple[Offer, ...]:
    """Return what would improve a plan, the best first; where it does not fit, the ways out before all else."""
    case = EstimatedPlan.of(plan, filled, machine)
    advice = advise(case)
    listed = [*advice.recommended]
    for way in (*((advice.fitting,) if advice.fitting else ()), *advice.larger):
        if all(way.change != offer.change for offer in listed):
            listed.append(offer_of(case, Remedy("fits", setting_words(way.change)), way))
    if case.estimate.verdict is Verdict.DOES_NOT_FIT:
        listed.sort(key=lambda offer: offer.verdict.gravity)
    return tuple(listed[:MOST_OFFERS])


def notes(case: EstimatedPlan) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
    """Return recommendations, the strongest first, and warnings."""
    advice, warnings = advise(case), cautions(case)
    if case.estimate.verdict is Verdict.DOES_NOT_FIT:
        warnings = (_short_of_memory(case, advice), *warnings)
    return tuple(offer.note for offer in advice.recommended), warnings


def planned(case: EstimatedPlan, tried: Iterable[Remedy]) -> Iterator[tuple[Remedy, Candidate]]:
    """Yield the remedies that promise something with what planning them comes to.

    They are looked at together, with all else as it is. Those of each kind that promise most are then planned,
    until one keeps its promise: where the plan has open fields, these are searched for with each change. What a look
    cannot judge is planned as well: what does not go with the settings that were chosen, and other hardware too small
    for them. Of a plan that does not fit, whatever makes it fit is of use.
    """
    searches, looked_at = bool(open_fields(case.wanted)), tuple(tried)
    every = case.estimate.verdict is Verdict.DOES_NOT_FIT and not searches
    plan = case.pinned.wanted if searches else case.wanted
    looks = estimate_changes(plan, [remedy.change for remedy in looked_at], case.machine, case.catalog)
    promising = dict[str, list[tuple[float, Remedy]]]()
    for remedy, look in zip(looked_at, looks, strict=True):
        promise = _promise(case, remedy, look, searches)
        if promise >= LEAST_EFFECT:
            promising.setdefault(remedy.code, []).append((promise, remedy))
    for alternatives in promising.values():
        strongest = sorted(alternatives, key=lambda entry: -entry[0])[: MOST_PLANNED if searches else None]
        for _, remedy in strongest:
            candidate = case.evaluate(remedy.change)
            if candidate.filled is None:
                continue
            yield remedy, candidate
            keeps = (candidate.holds or not searches) and _effect(case, remedy, candidate.estimate) >= LEAST_EFFECT
            if keeps and not every:
                break


def _effect(case: EstimatedPlan, remedy: Remedy, after: Estimate) -> float:
    """Return what a remedy is worth that leads to an estimate; nothing where it may be no advice."""
    return worth(case, after) if allowed(case, remedy, after) else 0.0


def _promise(case: EstimatedPlan, remedy: Remedy, look: Estimate | CapacityError, searches: bool) -> float:
    """Return what a remedy is worth with all else as it is; infinity for what only planning it can tell."""
    if isinstance(look, CapacityError) or (searches and remedy.moves_hardware and violations_of(look)):
        return np.inf
    if searches:
        return worth(case, look)
    fits_now = case.estimate.verdict is Verdict.DOES_NOT_FIT and look.verdict is not Verdict.DOES_NOT_FIT
    return max(_effect(case, remedy, look), LEAST_EFFECT if fits_now else 0.0)


def recommended(case: EstimatedPlan, tried: Iterable[tuple[Remedy, Candidate]]) -> tuple[Offer, ...]:
    """Return what is worth doing, the strongest first."""
    short = is_short(case)
    best: dict[str, tuple[float, Remedy, Candidate]] = {}
    for remedy, candidate in tried:
        effect = _effect(case, remedy, candidate.estimate)
        if effect >= LEAST_EFFECT and effect > best.get(remedy.code, (0.0,))[0]:
            best[remedy.code] = effect, remedy, candidate
    # What keeps the limits without harm comes first, then what does so on the same hardware.
    ranked = sorted(best.values(), key=lambda entry: (short and _harm(*entry[:2]), -entry[0]))
    if short and ranked:
        most = max(effect for effect, _, _ in ranked)
        least = 1.0 + _NOT_MUCH_DEARER * (most - 1.0)
        here = max((effect for effect, remedy, _ in ranked if not remedy.moves_hardware), default=0.0)
        ranked = [entry for entry in ranked if entry[0] <= 1.0 or entry[0] >= min(_least(entry[1], least, here), most)]
    ranked = _without_leading_spot(case, ranked)
    changes = [candidate.change for _, _, candidate in ranked]
    # The search may arrive at what a single remedy says already.
    distinct = [kept for index, kept in enumerate(ranked) if changes[index] not in changes[:index]]
    return tuple(offer_of(case, remedy, candidate) for _, remedy, candidate in distinct[:MOST_RECOMMENDATIONS])


def offer_of(case: EstimatedPlan, remedy: Remedy, candidate: Candidate) -> Offer:
    """Return a planned remedy with all that it does."""
    before, after = case.estimate, candidate.estimate
    alone = "" if candidate.fits else "; this alone does not make it fit"
    words = f"{effect_text(before, after)}{alone} ({change_text(candidate.change)})."
    return Offer(
        title=remedy.title,
        change=candidate.change,
        effects=tuple(effects(before, after)),
        verdict=after.verdict,
        caution=remedy.caution,
        code=remedy.code,
        saves=saves(before, after),
        words=words,
    )


def _least(remedy: Remedy, least: float, here: float) -> float:
    """Return what a remedy that keeps the limits has to be worth at the least: the best, or what is not dear.

    Args:
        least: what other hardware has to be worth.
        here: what the best is worth that leaves the hardware as it is.
    """
    if remedy.moves_hardware and remedy.caution:
        return least
    bearable = 1.0 + 1.0 / DEAR
    return bearable if remedy.moves_hardware else min(here, bearable)


def _harm(effect: float, remedy: Remedy) -> int:
    """Return how much harm comes with what keeps the limits; what does not keep them is last."""
    if effect <= 1.0:
        return 3
    return 0 if remedy.is_gentle else 2 if remedy.moves_hardware else 1


def _without_leading_spot(
    case: EstimatedPlan, ranked: list[tuple[float, Remedy, Candidate]]
) -> list[tuple[float, Remedy, Candidate]]:
    """Put spot capacity last where requests are served: an interruption drops them, so it never comes first."""
    if not case.plan.is_inference:
        return ranked
    others = [entry for entry in ranked if entry[1].code != SPOT]
    return [*others[: MOST_RECOMMENDATIONS - 1], *(entry for entry in ranked if entry[1].code == SPOT and others)]


def _short_of_memory(case: EstimatedPlan, advice: Advice) -> Note:
    shortage, fitting = case.estimate.shortage, advice.fitting
    code, title, lacks = "does_not_fit", "The plan does not fit", f"{shortage[0].upper()}{shortage[1:]}."
    which = larger_devices_text(advice.larger)
    if fitting is None:
        nothing = "No change of settings or device count makes it fit."
        return Note(
            code, title, f"{lacks} {nothing} {which}".strip(), change=next((x.change for x in advice.larger), None)
        )
    effect = effect_text(case.estimate, fitting.estimate)
    # Where it takes more devices, fewer larger ones may do.
    more = which if Key.HARDWARE_DEVICES in fitting.change and Key.HARDWARE_NAME not in fitting.change else ""
    detail = f"{lacks} It fits with {change_text(fitting.change)}: {effect}. {more}".strip()
    return Note(code, title, detail, saves(case.estimate, fitting.estimate), fitting.change)
