"""What a change of a plan is worth, and the cheapest change with which it keeps its limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.plan import edited, memory_searched, with_values
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.advice.hardware_remedies import SPOT, Remedy, can_grow
from capacity_tui.engine.solve.advice.remedies import FURTHER, remedies
from capacity_tui.engine.solve.candidate import (
    Candidate,
    CheckedConstraint,
    EstimatedPlan,
    checked_constraints,
    violations_of,
)
from capacity_tui.engine.solve.changes import cost_ratio, effects, reserved_bytes, value_of
from capacity_tui.engine.solve.modes.modes import ModeName, fill
from capacity_tui.engine.verdict import Verdict

LEAST_EFFECT = 0.03  # A change is worth telling from this share of time, money or memory on
DEAR = 2.0  # What makes a plan keep its limits is advice up to so many times its cost
_MOST_TRADED = 10.0  # Nobody waits so many times the share longer that is saved in cost
_LATENCIES = (Figure.TIME_TO_FIRST_TOKEN_SECONDS, Figure.TIME_PER_OUTPUT_TOKEN_SECONDS)


def is_short(case: EstimatedPlan) -> bool:
    """Whether a plan does not keep its limits: memory, load, latency."""
    return bool(case.violations)


def worth(case: EstimatedPlan, after: Estimate) -> float:
    """Return what a change is worth that leads to an estimate: the share of cost it saves for a token or sample.

    Where a limit is missed, the share by which that comes nearer counts too, and what keeps all limits then comes
    first, the cheapest before the dearer; where memory is tight, the share that is saved so that it no longer is.
    """
    before, broken = case.estimate, case.violations
    ratio = cost_ratio(after, before)
    still_broken = violations_of(after) if broken else ()
    if broken and not still_broken:
        return 1.0 + 1.0 / ratio
    if broken:
        nearer = 1.0 - sum(_share_left(constraint, still_broken) for constraint in broken) / len(broken)
        return min(1.0, nearer - max(0.0, ratio - 1.0))
    if before.verdict is Verdict.TIGHT and after.verdict is Verdict.FITS:
        return min(1.0, max(1.0 - ratio, 1.0 - reserved_bytes(after) / reserved_bytes(before) - max(0.0, ratio - 1.0)))
    return 1.0 - ratio


def allowed(case: EstimatedPlan, remedy: Remedy, after: Estimate) -> bool:
    """Whether a change that leads to an estimate may be advice at all.

    None breaks a limit that holds, goes further from one that is missed, or fills memory beyond what the boldest mode
    would unless it saves some. None makes people wait much longer than it saves, or may cost more than the plan.
    """
    before, broken = case.estimate, violations_of(after)
    if any(not np.isfinite(effect.after) for effect in effects(before, after)):
        return False
    held = {constraint.key: constraint for constraint in checked_constraints(before)}
    for constraint in broken:
        was = held.get(constraint.key)
        if was is None or was.holds or not constraint.violation <= was.violation:
            return False
    if remedy.code == SPOT and not _surely_cheaper(before, after):
        return False
    if not case.violations and _waits_longer(before, after):
        return False
    memory = after.memory
    if memory.capacity_bytes is None or broken:
        return True
    most = largest(memory.capacity_bytes) * (case.catalog.modes["extreme"].utilization or 1.0)
    return reserved_bytes(after) <= most or reserved_bytes(after) < reserved_bytes(before)


def _share_left(constraint: CheckedConstraint, still_broken: Iterable[CheckedConstraint]) -> float:
    """Return what is left with a change of that by which a limit is missed, as a share of it."""
    left = next((other.violation for other in still_broken if other.key == constraint.key), 0.0)
    return left / constraint.violation if np.isfinite(constraint.violation) else float(not np.isfinite(left))


def _surely_cheaper(before: Estimate, after: Estimate) -> bool:
    """Whether a job costs no more at the upper end of its range than it did; open jobs have no such range."""
    old, new = before.cost.interval, after.cost.interval
    return old is None or new is None or largest(new.high) <= largest(old.high)


def _waits_longer(before: Estimate, after: Estimate) -> bool:
    """Whether answers come later by a share out of all proportion to what is saved."""
    saved = 1.0 - cost_ratio(after, before)
    for key in _LATENCIES:
        old, new = value_of(before, key), value_of(after, key)
        if old and new and new / old - 1.0 > _MOST_TRADED * max(saved, 0.0) and new / old - 1.0 > LEAST_EFFECT:
            return True
    return False


_DOUBLINGS = 10  # Devices are doubled this often before nothing is found
_ENOUGH = 3  # After so many doublings whatever fits is good enough
MAX_COST_RATIO = 2.0  # A single change that makes work so much dearer is compared with combinations


def cheapest_fitting_change(case: EstimatedPlan, tried: Iterable[tuple[Remedy, Candidate]]) -> Candidate | None:
    """Return the plan that fits with the fewest changed fields, as long as that is not much dearer than others.

    Another layout, or recomputation, comes before what changes the results or the hardware.
    """
    cost = partial(_cost, case)
    fitting = [(remedy, candidate) for remedy, candidate in tried if candidate.fits]
    gentle = min((candidate for remedy, candidate in fitting if remedy.is_gentle), key=cost, default=None)
    if gentle is not None:
        return gentle
    here = [pair for pair in fitting if not pair[0].moves_hardware and cost(pair[1]) <= MAX_COST_RATIO]
    least_harm = min(here, key=lambda pair: (pair[0].code == FURTHER, cost(pair[1])), default=None)
    if least_harm is not None:
        return least_harm[1]
    single = min((candidate for _, candidate in fitting), key=cost, default=None)
    if single is not None and cost(single) <= MAX_COST_RATIO:
        return single
    combined = _combined(case)
    return min((candidate for candidate in (single, combined) if candidate is not None), key=cost, default=None)


def searched_change(case: EstimatedPlan, mode: ModeName, base: Mapping[str, object] | None = None) -> Candidate | None:
    """Return the plan with the layout and settings that a mode finds where the user gave others.

    What the user left open stays open. None where nothing is found, or nothing else than what there is.
    """
    paths = [path for path in memory_searched() if not case.is_open(path)]
    if case.resolved.shape is None or case.plan.is_inference or not paths:
        return None
    changed = dict(base or {})
    # The same work: a batch that is not given follows from the replicas, or is chosen for them.
    if not changed and not case.gives(_BATCH):
        changed[_BATCH] = case.plan.training.global_batch
    try:
        opened = with_values(edited(case.wanted, changed, case.catalog).plan, {**dict.fromkeys(paths, AUTO), _DP: None})
        chosen = fill(opened, mode, case.machine, case.catalog).plan
    except CapacityError:
        return None
    change = {path: chosen.value(path) for path in paths if chosen.value(path) != case.plan.value(path)}
    if not change:
        return None
    planned = case.evaluate({**changed, **change} if base else case.same_batch(change))
    return None if planned.filled is None else planned


_BATCH, _DP = Key.TRAINING_GLOBAL_BATCH, Key.PARALLELISM_DP


def _combined(case: EstimatedPlan) -> Candidate | None:
    """Return a combination of changes that fits, on as few times the devices as will do without being dear."""
    devices = int(case.resolved.cluster.devices)
    searched = case.resolved.shape is not None and not case.plan.is_inference
    cheapest: Candidate | None = None
    for doubling in range(_DOUBLINGS + 1 if can_grow(case) else 1):
        base: dict[str, object] = {Key.HARDWARE_DEVICES: devices * 2**doubling} if doubling else {}
        if doubling == 1 and not searched and _is_out_of_reach(case, devices * 2**_DOUBLINGS):
            return cheapest
        candidate = searched_change(case, "extreme", base) if searched else None
        if (candidate is None or not candidate.fits) and not (searched and doubling):
            candidate = _combination(case, base)
        if candidate is not None and candidate.fits:
            candidate = _without_redundant(case, candidate, base)
            cheapest = candidate if cheapest is None else min(cheapest, candidate, key=partial(_cost, case))
        if cheapest is not None and (_cost(case, cheapest) <= MAX_COST_RATIO or doubling >= _ENOUGH):
            return cheapest
    return cheapest


def _is_out_of_reach(case: EstimatedPlan, devices: int) -> bool:
    """Whether not even the most devices hold the plan, whatever else saves memory: then fewer need no trial."""
    return _combination(case, {Key.HARDWARE_DEVICES: devices}) is None


def _combination(case: EstimatedPlan, base: Mapping[str, object]) -> Candidate | None:
    """Return the plan with remedies that save memory, the strongest first, until it fits; None where it does not then.

    They are looked for with all else as it is, and what they come to is planned.
    """
    pinned = case.pinned
    best = pinned.evaluate(base)
    if best.filled is None:
        return None
    grown = EstimatedPlan.of(pinned.wanted, best.filled, case.machine)
    usable = [remedy for remedy in remedies(grown) if Key.HARDWARE_DEVICES not in remedy.change]
    while not best.fits:
        pairs = ((remedy, pinned.evaluate({**best.change, **remedy.change})) for remedy in usable)
        possible = [(candidate, remedy) for remedy, candidate in pairs if candidate.filled is not None]
        candidate, remedy = min(possible, key=lambda pair: reserved_bytes(pair[0].estimate), default=(best, None))
        if remedy is None or reserved_bytes(candidate.estimate) >= reserved_bytes(best.estimate):
            return None
        best = candidate
        usable = [other for other in usable if not set(other.change) & set(remedy.change)]
    planned = case.evaluate(best.change)
    return planned if planned.fits else None


def _without_redundant(case: EstimatedPlan, candidate: Candidate, base: Mapping[str, object]) -> Candidate:
    """Leave out every changed field without which the plan still fits."""
    for path in candidate.change:
        rest = {key: value for key, value in candidate.change.items() if key != path}
        if path in base or not rest or path not in candidate.change:
            continue
        smaller = case.evaluate(rest)
        if smaller.fits:
            candidate = smaller
    return candidate


def _cost(case: EstimatedPlan, candidate: Candidate) -> float:
    return cost_ratio(candidate.estimate, case.estimate)
