"""What a change of a plan is worth, and which changes are no advice whatever they save."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.choose.advice.hardware_remedies import SPOT
from capacity_tui.engine.choose.advice.remedy import Remedy
from capacity_tui.engine.choose.candidates.candidate import Candidate, EstimatedPlan
from capacity_tui.engine.choose.candidates.reached import CheckedConstraint, checked_constraints
from capacity_tui.engine.choose.whatif.deltas import cost_ratio, effects, reserved_bytes, value_of
from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.verdict import Verdict

# A change is worth telling from this share of time, money or memory on.
LEAST_EFFECT = 0.03
# What makes a plan keep its limits is advice up to so many times its cost.
DEAR = 2.0
# Nobody waits so many times the share longer that is saved in cost.
_MOST_TRADED = 10.0
_LATENCIES = (
    Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS,
)


def is_short(case: EstimatedPlan) -> bool:
    """Whether a plan does not keep its limits: memory, load, latency."""
    return bool(case.violations)


def worth(case: EstimatedPlan, candidate: Candidate, gentle: bool) -> float:
    """Return what a change is worth, to rank it: the share of cost it saves for a token or sample.

    Where a limit is missed, the share by which that comes nearer counts too, and what keeps all limits then comes
    first, the cheapest before the dearer; where memory is tight, the share that is saved so that it no longer is.

    Args:
        gentle: whether it leaves results and hardware as they are.
    """
    before, after = case.estimate, candidate.estimate
    ratio = cost_ratio(after, before)
    broken = case.violations
    if broken and not candidate.violations:
        return 1.0 + 1.0 / ratio if gentle or ratio <= DEAR else 0.0
    if broken:
        nearer = 1.0 - sum(_share_left(constraint, candidate) for constraint in broken) / len(broken)
        return min(1.0, nearer - max(0.0, ratio - 1.0))
    if before.verdict is Verdict.TIGHT and after.verdict is Verdict.FITS:
        return min(1.0, max(1.0 - ratio, 1.0 - reserved_bytes(after) / reserved_bytes(before) - max(0.0, ratio - 1.0)))
    return 1.0 - ratio


def allowed(case: EstimatedPlan, remedy: Remedy, candidate: Candidate) -> bool:
    """Whether a change may be advice at all.

    None breaks a limit that holds, goes further from one that is missed, or fills memory beyond what the boldest mode
    would unless it saves some. None makes people wait much longer than it saves, or may cost more than the plan.
    """
    before, after = case.estimate, candidate.estimate
    if any(not np.isfinite(effect.after) for effect in effects(before, after)):
        return False
    held = {constraint.key: constraint for constraint in checked_constraints(before)}
    for constraint in candidate.violations:
        was = held.get(constraint.key)
        if was is None or was.holds or not constraint.violation <= was.violation:
            return False
    if remedy.code == SPOT and not _surely_cheaper(before, after):
        return False
    if not case.violations and _waits_longer(before, after):
        return False
    memory = after.memory
    if memory.capacity_bytes is None or candidate.violations:
        return True
    most = float(np.max(np.asarray(memory.capacity_bytes))) * (case.catalog.modes["extreme"].utilization or 1.0)
    return reserved_bytes(after) <= most or reserved_bytes(after) < reserved_bytes(before)


def _share_left(constraint: CheckedConstraint, candidate: Candidate) -> float:
    """Return what is left with a change of that by which a limit is missed, as a share of it."""
    left = next((other.violation for other in candidate.violations if other.key == constraint.key), 0.0)
    return left / constraint.violation if np.isfinite(constraint.violation) else float(not np.isfinite(left))


def _surely_cheaper(before: Estimate, after: Estimate) -> bool:
    """Whether a job costs no more at the upper end of its range than it did; open jobs have no such range."""
    old, new = before.cost.interval, after.cost.interval
    return old is None or new is None or float(np.max(new.high)) <= float(np.max(old.high))


def _waits_longer(before: Estimate, after: Estimate) -> bool:
    """Whether answers come later by a share out of all proportion to what is saved."""
    saved = 1.0 - cost_ratio(after, before)
    for key in _LATENCIES:
        old, new = value_of(before, key), value_of(after, key)
        if old and new and new / old - 1.0 > _MOST_TRADED * max(saved, 0.0) and new / old - 1.0 > LEAST_EFFECT:
            return True
    return False
