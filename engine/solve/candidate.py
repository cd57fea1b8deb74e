"""A change of a plan and what it comes to: made as anybody makes it, filled as planning fills it, held to limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import resolve_cluster
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import Constraint, Estimate, ResolvedPlan, figure
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.numeric import Number, largest
from capacity_tui.engine.plan import Plan, chosen_last, edited, model_sizes, paths_where, with_values
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO, Knob
from capacity_tui.engine.solve.changes import plain_change
from capacity_tui.engine.solve.modes.mode_plan import ModePlan
from capacity_tui.engine.solve.modes.modes import MODES, ModeName, fill, open_fields
from capacity_tui.engine.solve.search.question import Goal, Limit
from capacity_tui.engine.verdict import Verdict

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

MEMORY, RESERVED = Figure.MEMORY_UTILIZATION_PERCENT, Figure.MEMORY_RESERVED_BYTES
_SAME: Mapping[str, str] = {MEMORY: RESERVED}  # What says the same of a constraint that a plan has anyway


@dataclass(frozen=True, slots=True)
class CheckedConstraint:
    """A constraint of a single plan, and how sure it has to be."""

    constraint: Constraint  # the limit beside what the plan reaches
    # whether the far end of the range counts, as it does for what a question asks; else the estimate itself
    surely: bool = False

    @property
    def key(self) -> str:
        """The figure's result key."""
        return self.constraint.figure

    @property
    def most(self) -> float | None:
        """The most that the figure may be."""
        return _single(self.constraint.most)

    @property
    def least(self) -> float | None:
        """The least that the figure must be."""
        return _single(self.constraint.least)

    @property
    def value(self) -> float | None:
        """The figure itself; None where the plan has none of it."""
        reached = self.constraint.reached
        return None if reached is None else _single(reached.value)

    @property
    def bound_value(self) -> float | None:
        """What counts of the figure: the end of its range that is nearer to the limit, or the figure itself."""
        reached = self.constraint.reached
        if reached is None or not self.surely:
            return self.value
        return _single(reached.low if self.most is None else reached.high)

    @property
    def violation(self) -> float:
        """By which share of the limit it is missed; negative where it holds, infinite where there is no figure."""
        end, most, least = self.bound_value, self.most, self.least
        if end is None:
            return np.inf
        over = [] if most is None else [(end - most) / abs(most or 1.0)]
        under = [] if least is None else [(least - end) / abs(least or 1.0)]
        return max((*over, *under), default=-np.inf)

    @property
    def holds(self) -> bool:
        """Whether the figure keeps the limit."""
        return self.violation <= 0.0


def checked_constraints(estimate: Estimate, limits: Iterable[Limit] = ()) -> Iterator[CheckedConstraint]:
    """Yield the limits of a question, then the constraints of the plan itself, each beside what is reached."""
    limited = tuple(limits)
    named = {key for limit in limited for key in (limit.figure, _SAME.get(limit.figure))}
    for limit in limited:
        yield CheckedConstraint(limit.constraint(estimate), surely=True)
    yield from (CheckedConstraint(constraint) for constraint in estimate.constraints if constraint.figure not in named)


def violations_of(estimate: Estimate) -> tuple[CheckedConstraint, ...]:
    """Return the plan's own limits that its estimate does not keep."""
    return tuple(constraint for constraint in checked_constraints(estimate) if not constraint.holds)


def _single(value: Number | None) -> float | None:
    return None if value is None else largest(value)


GLOBAL_BATCH, MICRO_BATCH = Key.TRAINING_GLOBAL_BATCH, Key.TRAINING_MICRO_BATCH


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan with a change."""

    # plan fields and their new values, as plain data: all that has to be set to plan the same
    change: Mapping[str, object]
    plan: Plan | None = None  # the plan with it, before what it leaves open is filled; None where such a plan cannot be
    filled: ModePlan | None = None  # the same as planning it fills and estimates it; None where such a plan cannot be
    constraints: tuple[CheckedConstraint, ...] = ()  # every limit beside what is reached
    fault: str = ""  # why such a plan cannot be; empty where it can

    @property
    def made(self) -> ModePlan:
        """The plan as filled and estimated; raises PlanError where such a plan cannot be."""
        if self.filled is None:
            raise PlanError("there is no such plan", self.fault)
        return self.filled

    @property
    def estimate(self) -> Estimate:
        """Its estimate, which only a plan that can be has."""
        return self.made.estimate

    @property
    def violations(self) -> tuple[CheckedConstraint, ...]:
        """The limits that it does not keep, the one that is missed most first."""
        return tuple(
            sorted(
                (constraint for constraint in self.constraints if not constraint.holds),
                key=lambda constraint: -constraint.violation,
            )
        )

    @property
    def holds(self) -> bool:
        """Whether it can be, and keeps every limit."""
        return self.filled is not None and not self.violations

    @property
    def fits(self) -> bool:
        """Whether it can be, and memory holds it as estimated; unknown memory does."""
        return self.filled is not None and self.filled.estimate.verdict is not Verdict.DOES_NOT_FIT

    @property
    def violation(self) -> float:
        """By which share the limit that is missed most is missed; infinite where such a plan cannot be."""
        return (
            np.inf
            if self.filled is None
            else max((constraint.violation for constraint in self.violations), default=0.0)
        )

    def number(self, key: str) -> float | None:
        """Return one of its figures; None where it has none of this key."""
        return None if self.filled is None else figure(self.filled.estimate, key).number


def candidate(
    plan: Plan,
    change: Mapping[str, object],
    catalog: Catalog,
    machine: Machine | None = None,
    mode: ModeName = "balanced",
    limits: Iterable[Limit] = (),
    named: ResolvedPlan | None = None,
) -> Candidate:
    """Return what becomes of a plan with a change.

    Args:
        limits: what is to be kept besides the plan's own limits.
        named: what the plan's names stand for, so that a change of other fields need not look them up again.
    """
    try:
        plain = plain_change(change)
        changed = edited(plan, plain, catalog).plan
        same_names = all(getattr(changed, section) == getattr(plan, section) for section in _NAMING)
        filled = fill(changed, mode, machine, catalog, named if same_names else None)
    except CapacityError as error:
        return Candidate(change, fault=error.one_line())
    return Candidate(plain, changed, filled, tuple(checked_constraints(filled.estimate, limits)))


def is_better(one: Candidate, other: Candidate, goal: Goal) -> bool:
    """Whether a candidate reaches a goal better than another; one without the figure never does."""
    mine, theirs = one.number(goal.figure), other.number(goal.figure)
    if mine is None or theirs is None:
        return mine is not None
    return goal.sign * mine < goal.sign * theirs


# What decides the result of a training: a change of anything else is compared at the same
_LEARNED = (Key.TRAINING_METHOD, Key.TRAINING_OPTIMIZER, Key.TRAINING_SEQ_LEN)
_NAMING = ("model", "hardware", "pricing")  # The sections of a plan that say what its model, hardware and prices are


@dataclass(frozen=True)
class EstimatedPlan:
    """An estimated plan and all it takes to try changes of it."""

    wanted: Plan  # the plan as the user gave it
    resolved: ResolvedPlan  # the same with nothing open
    estimate: Estimate
    catalog: Catalog
    machine: Machine | None = None
    mode: ModeName = "balanced"  # what filled the fields that were open

    @classmethod
    def of(cls, wanted: Plan, filled: ModePlan, machine: Machine | None = None) -> EstimatedPlan:
        mode = next(name for name in MODES if name == filled.mode.id)
        return cls(wanted, filled.resolved, filled.estimate, filled.catalog, machine, mode)

    @property
    def plan(self) -> Plan:
        """The plan with nothing open."""
        return self.resolved.plan

    @cached_property
    def violations(self) -> tuple[CheckedConstraint, ...]:
        """The limits that it does not keep."""
        return violations_of(self.estimate)

    @cached_property
    def named(self) -> ResolvedPlan | None:
        """What the names of the plan as the user gave it stand for; None where it leaves the model open."""
        if self.wanted.model.name == AUTO:
            return None
        cluster = resolve_cluster(self.wanted.hardware, self.wanted.pricing, self.catalog, self.machine)
        return replace(self.resolved, cluster=cluster)

    @cached_property
    def pinned(self) -> EstimatedPlan:
        """The same with all that was filled in given: what is tried of it leaves everything else as it is.

        What follows from other fields, and what is chosen last, stays open, as does a batch that follows.
        """
        resolving, following = paths_where(_resolves_from_others), chosen_last()
        if self.wanted.training.global_batch is None:
            following = (*following, GLOBAL_BATCH)
        # A size that follows from the others is open to nobody once these are given: it is left out.
        given = {path: self.wanted.value(path) if self.gives(path) else None for path in resolving}
        if Key.INFERENCE_WEIGHTS in given and not self.gives(Key.INFERENCE_WEIGHTS):
            given[Key.INFERENCE_WEIGHTS] = self.plan.inference.weights  # a mode may have chosen a narrower format
        wanted = {**given, **{path: self.wanted.value(path) for path in following}}
        return replace(self, wanted=with_values(self.plan, wanted))

    @property
    def filled_values(self) -> dict[str, object]:
        """What was chosen for the open fields: with these given as well, a change of what is pinned is complete."""
        return {path: self.plan.value(path) for path in open_fields(self.wanted)}

    def gives(self, path: str) -> bool:
        """Whether the user gave a field's value."""
        return self.wanted.value(path) not in (None, AUTO)

    def is_open(self, path: str) -> bool:
        """Whether the user left a field to the modes."""
        return self.wanted.value(path) == AUTO

    def evaluate(self, change: Mapping[str, object]) -> Candidate:
        """Return what becomes of the plan with a change.

        What the model learns stays as it is: where other hardware or settings would be filled in with another method,
        optimizer or length of sequences, those of the plan are part of the change.
        """
        made = candidate(self.wanted, change, self.catalog, self.machine, self.mode, named=self.named)
        if made.filled is None or set(change) & set(_LEARNED):
            return made
        filled = made.filled.resolved.plan
        kept = {str(path): self.plan.value(path) for path in _LEARNED if filled.value(path) != self.plan.value(path)}
        return self.evaluate({**change, **kept}) if kept else made

    def feasible(self, changes: Iterable[Mapping[str, object]]) -> Iterator[Candidate]:
        """Yield what becomes of the plan with each of several changes, as far as there are such plans."""
        yield from (made for change in changes if (made := self.evaluate(change)).filled is not None)

    def same_batch(self, change: Mapping[str, object]) -> Mapping[str, object]:
        """Return a change of a layout with the global batch that there is, where that follows and divides then."""
        parallel, training, batch = self.plan.parallelism, self.plan.training, self.plan.training.global_batch
        moved = any(path in change for path in (*model_sizes(), MICRO_BATCH)) and not set(change) & _OTHER_JOBS
        if not moved or not batch or self.plan.is_inference or self.gives(GLOBAL_BATCH):
            return change
        sizes = [change.get(f"parallelism.{name}", getattr(parallel, name)) for name in ("tp", "pp", "cp")]
        micro_batch = change.get(MICRO_BATCH, training.micro_batch)
        if AUTO in (*sizes, micro_batch):
            return change
        model = int(np.prod([int(str(size or 1)) for size in sizes]))
        at_once = int(str(micro_batch)) * max(1, int(self.resolved.cluster.devices) // model)
        return change if int(batch) % at_once else {**change, GLOBAL_BATCH: int(batch)}


_OTHER_JOBS = frozenset({GLOBAL_BATCH, Key.HARDWARE_DEVICES, Key.HARDWARE_NAME})  # What asks for another batch anyway


def _resolves_from_others(knob: Knob) -> bool:
    return knob.resolved_from_others


@dataclass(slots=True)
class Evaluator:
    """Plans each candidate of one plan once, as the balanced mode fills it."""

    plan: Plan
    limits: tuple[Limit, ...]  # what every candidate must keep
    catalog: Catalog
    machine: Machine | None = None
    # called with every candidate that was planned, and how many more are planned at the most
    callback: Callable[[Candidate, int], None] | None = None
    left: int = 0  # how many more those who ask for them expect at the most
    evaluated: dict[tuple[tuple[str, str], ...], Candidate] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Candidate, ...]:
        """Everything that was planned, in its order."""
        return tuple(self.evaluated.values())

    def evaluate(self, change: Mapping[str, object]) -> Candidate:
        """Return what becomes of the plan with a change."""
        key = tuple((path, str(entry)) for path, entry in change.items())
        if key not in self.evaluated:
            self.evaluated[key] = candidate(self.plan, change, self.catalog, self.machine, limits=self.limits)
            self.left = max(self.left - 1, 0)
            if self.callback is not None:
                self.callback(self.evaluated[key], self.left)
        return self.evaluated[key]
