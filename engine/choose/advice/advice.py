"""Advice on a plan: what would improve it, by how much, and what to know before relying on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from capacity_tui.engine.choose.advice.larger_devices import TITLE, larger_devices, larger_devices_text
from capacity_tui.engine.choose.advice.make_fit import estimated, smallest_fit
from capacity_tui.engine.choose.advice.recommendations import SPOT, remedies
from capacity_tui.engine.choose.advice.remedy import Remedy
from capacity_tui.engine.choose.advice.warnings import cautions
from capacity_tui.engine.choose.modes.modes import fill
from capacity_tui.engine.choose.whatif.deltas import change_text, effect_text, plain_change, saves, setting_words
from capacity_tui.engine.choose.whatif.trials import (
    EstimatedPlan,
    Trial,
    changed_plan,
    cost_ratio,
    has_room,
    re_estimate,
)
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.note import Note
from capacity_tui.engine.plan.field_lists import memory_searched
from capacity_tui.engine.plan.plan import AUTO
from capacity_tui.engine.verdict import Verdict

MOST_RECOMMENDATIONS = 5
# A change is worth telling from this share of time, money or memory on.
LEAST_EFFECT = 0.03
# What makes a plan fit is advice up to so many times its cost, and as long as it is not much dearer than the cheapest.
_DEAR = 2.0
_NOT_MUCH_DEARER = 2.0 / 3.0


def advise(case: EstimatedPlan) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
    """Return recommendations, the strongest first, and warnings.

    Every saving is the difference of two estimates: of the plan, and of the plan with the recommended change alone.
    """
    tried = estimated(case, remedies(case))
    warnings = cautions(case)
    if case.estimate.held is False:
        warnings = (_short_of_memory(case, smallest_fit(case, tried)), *warnings)
    return tuple(note_of(case, remedy, trial) for remedy, trial in recommended(case, tried)), warnings


def recommended(case: EstimatedPlan, tried: Iterable[tuple[Remedy, Trial]]) -> tuple[tuple[Remedy, Trial], ...]:
    """Return what is worth doing, the strongest first.

    Args:
        case: the plan.
        tried: remedies that were estimated.
    """
    best: dict[str, tuple[float, Remedy, Trial]] = {}
    first: set[str] = set()
    alike: set[str] = set()
    for remedy, trial in (*tried, *_searched(case)):
        effect = worth(case, trial, remedy.is_gentle) if _allowed(case, trial) else 0.0
        if effect >= LEAST_EFFECT and effect > best.get(remedy.code, (0.0,))[0]:
            best[remedy.code] = effect, remedy, trial
            if remedy.is_gentle and case.estimate.held is False and effect > 1.0:
                first.add(remedy.code)
            if not remedy.caution:
                alike.add(remedy.code)
    # What fits without harm comes first.
    ranked = sorted(best.values(), key=lambda entry: (entry[1].code not in first, -entry[0]))
    if case.estimate.held is False and ranked:
        strongest = max(effect for effect, _, _ in ranked)
        least = 1.0 + _NOT_MUCH_DEARER * (strongest - 1.0)
        ranked = [entry for entry in ranked if entry[0] <= 1.0 or entry[0] >= least or entry[1].code in alike]
    found = _without_leading_spot(case, [(remedy, trial) for _, remedy, trial in ranked])
    changes = [plain_change(trial.change) for _, trial in found]
    # The search may arrive at what a single remedy says already.
    distinct = [pair for place, pair in enumerate(found) if changes[place] not in changes[:place]]
    return tuple(distinct[:MOST_RECOMMENDATIONS])


def _without_leading_spot(case: EstimatedPlan, ranked: list[tuple[Remedy, Trial]]) -> list[tuple[Remedy, Trial]]:
    """Put spot capacity last where requests are served: an interruption drops them, so it never comes first."""
    if case.plan.task != "infer":
        return ranked
    others = [pair for pair in ranked if pair[0].code != SPOT]
    return [*others[: MOST_RECOMMENDATIONS - 1], *(pair for pair in ranked if pair[0].code == SPOT and others)]


def _allowed(case: EstimatedPlan, trial: Trial) -> bool:
    """No recommendation fills memory beyond what the boldest mode would, unless it saves some."""
    boldest = case.catalog.modes["extreme"].utilization
    if has_room(trial.estimate, boldest):
        return True
    lighter = saves(case.estimate, trial.estimate).get("memory.reserved_bytes", 0.0) < 0
    return lighter and (case.estimate.held is False or has_room(trial.estimate))


def worth(case: EstimatedPlan, trial: Trial, gentle: bool) -> float:
    """Return what a change is worth, to rank it: the share of cost it saves for a token or sample.

    Where memory is short, the share of memory it saves counts too; where the plan does not fit, what makes it fit
    comes first, the cheapest before the dearer.
    """
    before, after = case.estimate, trial.estimate
    ratio = cost_ratio(after, before)
    if before.held is False and has_room(after):
        return 1.0 + 1.0 / ratio if gentle or ratio <= _DEAR else 0.0
    if before.held is False or before.verdict is Verdict.TIGHT:
        old, new = float(np.max(before.memory.reserved_bytes.value)), float(np.max(after.memory.reserved_bytes.value))
        return min(1.0, max(1.0 - ratio, 1.0 - new / old - max(0.0, ratio - 1.0)))
    return 1.0 - ratio


def _searched(case: EstimatedPlan) -> Iterator[tuple[Remedy, Trial]]:
    """Yield the layout and settings that the balanced mode would choose on the same devices."""
    paths = memory_searched()
    if case.resolved.shape is None or case.plan.task == "infer" or any(map(case.is_open, paths)):
        return
    try:
        opened = changed_plan(case, dict.fromkeys(paths, AUTO))
        plan = fill(opened, "balanced", case.machine, case.catalog).plan
    except CapacityError:
        return
    change = {path: plan.value(path) for path in paths if plan.value(path) != case.plan.value(path)}
    trial = re_estimate(case, change) if change else None
    if trial is not None:
        yield Remedy("settings", setting_words(change), change), trial


def note_of(case: EstimatedPlan, remedy: Remedy, trial: Trial) -> Note:
    """Return a remedy as advice, with all that it does by its estimate."""
    said = effect_text(case.estimate, trial.estimate)
    alone = "" if has_room(trial.estimate) else "; this alone does not make it fit"
    detail = f"{said}{alone} ({change_text(trial.change)})."
    return Note(
        code=remedy.code,
        title=remedy.title,
        detail=f"{detail} {remedy.caution}".strip(),
        saves=saves(case.estimate, trial.estimate),
        change=plain_change(trial.change),
    )


def _short_of_memory(case: EstimatedPlan, found: Trial | None) -> Note:
    shortage = case.estimate.shortage
    code, title, lacks = "does_not_fit", "The plan does not fit", f"{shortage[0].upper()}{shortage[1:]}."
    if found is None:
        nothing = "No change of settings or of the number of devices was found that makes it fit."
        larger = larger_devices(case)
        which = f" {TITLE}: {larger_devices_text(larger)}." if larger else ""
        change = plain_change(larger[0].change) if larger else None
        return Note(code, title, f"{lacks} {nothing}{which}", change=change)
    said = effect_text(case.estimate, found.estimate)
    detail = f"{lacks} It fits with {change_text(found.change)}: {said}."
    return Note(
        code,
        title,
        detail,
        saves(case.estimate, found.estimate),
        plain_change(found.change),
    )
