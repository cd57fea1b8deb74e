"""The smallest change with which a plan keeps its limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from capacity_tui.engine.choose.advice.remedies import remedies
from capacity_tui.engine.choose.advice.remedy import Remedy
from capacity_tui.engine.choose.advice.serving_remedies import FURTHER
from capacity_tui.engine.choose.candidates.candidate import Candidate, EstimatedPlan
from capacity_tui.engine.choose.modes.modes import ModeName, fill
from capacity_tui.engine.choose.whatif.deltas import cost_ratio, reserved_bytes
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import AUTO, edited, memory_searched, with_values

# Devices are doubled this often before nothing is found.
_DOUBLINGS = 10
# After so many doublings whatever fits is good enough.
_ENOUGH = 3
# A single change that makes work so much dearer is compared with combinations.
MAX_COST_RATIO = 2.0


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

    Args:
        base: what is changed besides.
    """
    paths = [path for path in memory_searched() if not case.is_open(path)]
    if case.resolved.shape is None or case.plan.task == "infer" or not paths:
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
    can_grow = case.plan.hardware.name != "detected" and case.resolved.cluster.device.kind != "cpu"
    searched = case.resolved.shape is not None and case.plan.task != "infer"
    cheapest: Candidate | None = None
    for doubling in range(_DOUBLINGS + 1 if can_grow else 1):
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
