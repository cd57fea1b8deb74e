"""The smallest change that makes a plan fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from capacity_tui.engine.choose.advice.recommendations import remedies
from capacity_tui.engine.choose.advice.remedy import Remedy
from capacity_tui.engine.choose.modes.modes import fill
from capacity_tui.engine.choose.whatif.trials import (
    EstimatedPlan,
    Trial,
    changed_plan,
    cost_ratio,
    has_room,
    re_estimate,
)
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.field_lists import memory_searched
from capacity_tui.engine.plan.plan import AUTO

# Devices are doubled this often before nothing is found.
_DOUBLINGS = 10
# After so many doublings whatever fits is good enough.
_ENOUGH = 3
# A single change that makes work so much dearer is compared with combinations.
MAX_COST_RATIO = 2.0


def smallest_fit(case: EstimatedPlan, tried: Iterable[tuple[Remedy, Trial]] | None = None) -> Trial | None:
    """Return the plan that fits with the fewest changed fields, as long as that is not much dearer than others.

    Another layout, or recomputation, comes before what changes the results or the hardware.

    Args:
        case: a plan that does not fit.
        tried: remedies that were estimated already.
    """
    each = estimated(case, remedies(case)) if tried is None else tuple(tried)
    cost = partial(_cost, case)
    gentle = min((trial for remedy, trial in each if remedy.is_gentle and _fits(trial)), key=cost, default=None)
    if gentle is not None:
        return gentle
    single = min((trial for _, trial in each if _fits(trial)), key=cost, default=None)
    if single is not None and cost(single) <= MAX_COST_RATIO:
        return single
    combined = _combined(case)
    return min((trial for trial in (single, combined) if trial is not None), key=cost, default=None)


def estimated(case: EstimatedPlan, tried: Iterable[Remedy]) -> tuple[tuple[Remedy, Trial], ...]:
    """Return the remedies that make a plan at all, with their estimates."""
    trials = ((remedy, re_estimate(case, remedy.change)) for remedy in tried)
    return tuple((remedy, trial) for remedy, trial in trials if trial is not None)


def _combined(case: EstimatedPlan) -> Trial | None:
    """Return a combination of changes that fits, on as few times the devices as will do without being dear."""
    devices = int(case.resolved.cluster.devices)
    can_grow = case.plan.hardware.name != "detected" and case.resolved.cluster.device.kind != "cpu"
    searched = case.resolved.shape is not None and case.plan.task != "infer"
    cheapest: Trial | None = None
    for doubling in range(_DOUBLINGS + 1 if can_grow else 1):
        base: dict[str, object] = {"hardware.devices": devices * 2**doubling} if doubling else {}
        if doubling == 1 and not searched and _is_out_of_reach(case, devices * 2**_DOUBLINGS):
            return cheapest
        trial = _search(case, base) if searched else None
        if trial is None and not (searched and doubling):
            trial = _greedy_combination(case, base)
        if trial is not None and (cheapest is None or _cost(case, trial) < _cost(case, cheapest)):
            cheapest = _drop_redundant(case, trial, base)
        if cheapest is not None and (_cost(case, cheapest) <= MAX_COST_RATIO or doubling >= _ENOUGH):
            return cheapest
    return cheapest


def _is_out_of_reach(case: EstimatedPlan, devices: int) -> bool:
    """Whether not even the most devices hold the plan, whatever else saves memory: then fewer need no trial."""
    most: dict[str, object] = {"hardware.devices": devices}
    return re_estimate(case, most) is not None and _greedy_combination(case, most) is None


def _search(case: EstimatedPlan, base: Mapping[str, object]) -> Trial | None:
    """Let the extreme mode choose layout, sharding, micro-batch and checkpointing."""
    try:
        opened = changed_plan(case, {**base, **dict.fromkeys(memory_searched(), AUTO)})
        plan = fill(opened, "extreme", case.machine, case.catalog).plan
    except CapacityError:
        return None
    found = {path: plan.value(path) for path in memory_searched() if plan.value(path) != case.plan.value(path)}
    trial = re_estimate(case, {**base, **found})
    return trial if trial is not None and _fits(trial) else None


def _greedy_combination(case: EstimatedPlan, base: Mapping[str, object]) -> Trial | None:
    """Add remedies that save memory, the strongest first, until the plan fits."""
    best = re_estimate(case, base)
    if best is None:
        return None
    grown = EstimatedPlan(case.wanted, best.resolved, best.estimate, case.catalog, case.machine)
    usable = [remedy for remedy in remedies(grown) if "hardware.devices" not in remedy.change]
    while not _fits(best):
        trials = [
            (trial, remedy) for remedy in usable if (trial := re_estimate(case, {**best.change, **remedy.change}))
        ]
        trial, remedy = min(trials, key=lambda pair: _reserved(pair[0]), default=(best, None))
        if remedy is None or _reserved(trial) >= _reserved(best):
            return None
        best = trial
        usable = [each for each in usable if not set(each.change) & set(remedy.change)]
    return best


def _drop_redundant(case: EstimatedPlan, trial: Trial, base: Mapping[str, object]) -> Trial:
    """Leave out every changed field without which the plan still fits."""
    for path in tuple(trial.change):
        rest = {key: value for key, value in trial.change.items() if key != path}
        if path in base or not rest:
            continue
        smaller = re_estimate(case, rest)
        if smaller is not None and _fits(smaller):
            trial = smaller
    return trial


def _fits(trial: Trial) -> bool:
    return has_room(trial.estimate)


def _reserved(trial: Trial) -> float:
    return float(np.max(np.asarray(trial.estimate.memory.reserved_bytes.value)))


def _cost(case: EstimatedPlan, trial: Trial) -> float:
    return cost_ratio(trial.estimate, case.estimate)
