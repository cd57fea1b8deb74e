"""The same plan with a few fields changed, estimated again: what every piece of advice rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.estimate import estimate_resolved
from capacity_tui.engine.estimate.resolve import ResolvedPlan, resolve_plan
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.all_fields import all_fields, paths_where
from capacity_tui.engine.plan.edit import edited, with_values
from capacity_tui.engine.plan.field_lists import chosen_last
from capacity_tui.engine.plan.plan import AUTO, Plan
from capacity_tui.engine.schema.field_meta import Follows, Knob
from capacity_tui.engine.verdict import Verdict

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine

SERVING_LAYOUT = ("parallelism.tp", "parallelism.pp")
"""What follows from memory in serving where the plan does not say it."""


@dataclass(frozen=True, slots=True)
class EstimatedPlan:
    """An estimated plan and all it takes to estimate it again.

    Attributes:
        wanted: the plan as the user gave it.
        settled: the same with nothing open.
        estimate: its estimate.
        catalog: facts.
        machine: the detected machine, where there is one.
    """

    wanted: Plan
    resolved: ResolvedPlan
    estimate: Estimate
    catalog: Catalog
    machine: Machine | None = None

    @property
    def plan(self) -> Plan:
        """The settled plan."""
        return self.resolved.plan

    def gives(self, path: str) -> bool:
        """Whether the user gave a field's value."""
        return self.wanted.value(path) not in (None, AUTO)

    def is_open(self, path: str) -> bool:
        """Whether the user left a field to the modes."""
        return self.wanted.value(path) == AUTO


@dataclass(frozen=True, slots=True)
class Trial:
    """A changed plan and its estimate."""

    change: Mapping[str, object]
    resolved: ResolvedPlan
    estimate: Estimate


def completed(case: EstimatedPlan, change: Mapping[str, object]) -> dict[str, object]:
    """Return a change with what it has to say so that it means what was estimated.

    A layout of serving that was left out would be chosen anew for the changed plan, and so would what an edit opens:
    the change says that both stay as they are.
    """
    opened = (follows.path for path in change for follows in _follows(path) if follows.rule == "open")
    values = {**{path: case.plan.value(path) for path in opened}, **change}
    moved = any(path.startswith(("inference.", "parallelism.", "hardware.")) for path in change)
    if moved and case.plan.task == "infer" and case.resolved.shape is not None and case.resolved.cluster.devices > 1:
        absent = (path for path in SERVING_LAYOUT if case.wanted.value(path) is None)
        values = {**{path: case.plan.value(path) for path in absent}, **values}
    return values


def changed_plan(case: EstimatedPlan, change: Mapping[str, object]) -> Plan:
    """Return the case's plan as an edit changes it; what resolves from others, or was chosen last, is so again."""
    resolving = paths_where(_resolves_from_others)
    given = {path: case.wanted.value(path) if case.gives(path) else None for path in resolving}
    given |= {path: case.wanted.value(path) for path in chosen_last()}
    draft = edited(with_values(case.plan, given), change, case.catalog).plan
    values: dict[str, object] = {}
    batch = case.plan.training.global_batch
    if "training.global_batch" not in change:
        if case.wanted.training.global_batch is None:
            values["training.global_batch"] = _same_batch(case, draft, change)
        elif case.is_open("training.global_batch") and batch:
            # What a mode chose belongs to the number of replicas.
            values["training.global_batch"] = max(1, round(float(batch) * _growth(case, change)))
    return with_values(draft, values)


def _resolves_from_others(knob: Knob) -> bool:
    return knob.resolved_from_others


def _follows(path: str) -> tuple[Follows, ...]:
    known = all_fields().get(path)
    return () if known is None else known.knob.follows


def resolved_change(
    case: EstimatedPlan, change: Mapping[str, object]
) -> tuple[Mapping[str, object], ResolvedPlan] | None:
    """Return a change with what it has to say, and the plan it makes; None where such a plan cannot be."""
    whole = completed(case, change)
    try:
        like = case.resolved if _same_facts(whole) else None
        return whole, resolve_plan(changed_plan(case, whole), case.catalog, case.machine, like)
    except CapacityError:
        return None


def re_estimate(case: EstimatedPlan, change: Mapping[str, object]) -> Trial | None:
    """Return the changed plan's estimate; None where such a plan cannot be."""
    found = resolved_change(case, change)
    if found is None:
        return None
    whole, resolved = found
    try:
        return Trial(whole, resolved, estimate_resolved(resolved, case.catalog))
    except CapacityError:
        return None


def _same_batch(case: EstimatedPlan, changed: Plan, change: Mapping[str, object]) -> int | None:
    """Return the settled global batch where the changed plan divides it; None lets it follow from the replicas."""
    batch = case.plan.training.global_batch
    sizes = (changed.parallelism.tp, changed.parallelism.pp, changed.parallelism.cp, changed.training.micro_batch)
    if AUTO in sizes or "hardware.devices" in change or not batch:
        return None
    tp, pp, cp, micro_batch = (int(size or 1) for size in sizes)
    replicas = float(np.max(case.resolved.cluster.devices)) // (tp * pp * cp)
    return None if int(batch) % max(1.0, micro_batch * replicas) else int(batch)


def _same_facts(change: Mapping[str, object]) -> bool:
    """Whether a change leaves model, hardware and prices as they are."""
    return all(path.startswith(("training.", "inference.", "parallelism.")) for path in change)


def _growth(case: EstimatedPlan, change: Mapping[str, object]) -> float:
    """Return by how much the number of devices grows."""
    devices = float(np.max(case.resolved.cluster.devices))
    return float(str(change.get("hardware.devices", devices))) / devices


def has_room(estimate: Estimate, share: float = 1.0) -> bool:
    """Whether a run fits, into ``share`` of device memory at that; unknown memory has room."""
    capacity = estimate.memory.capacity_bytes
    if capacity is None:
        return True
    reserved = float(np.max(np.asarray(estimate.memory.reserved_bytes.value)))
    return estimate.verdict is not Verdict.DOES_NOT_FIT and reserved <= float(np.max(np.asarray(capacity))) * share


def unit_seconds(estimate: Estimate) -> float:
    """Return the seconds of one token or sample."""
    computation = estimate.computation
    return mean(computation.step_seconds.value / computation.units_per_step)


def cost_ratio(after: Estimate, before: Estimate) -> float:
    """Return how many times as dear a token or sample is: in money, in seconds where devices are free of charge.

    Where not both have a price, device-seconds stand for money.
    """
    priced = None not in (after.cost.usd_per_million_tokens, before.cost.usd_per_million_tokens)
    return _unit_cost(after, priced) / _unit_cost(before, priced)


def _unit_cost(estimate: Estimate, priced: bool) -> float:
    usd = estimate.cost.usd_per_million_tokens
    if not priced or usd is None:
        return unit_seconds(estimate) * mean(estimate.computation.devices)
    return mean(usd) or unit_seconds(estimate)
