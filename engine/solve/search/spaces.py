"""The spaces of a question, one after the other: each holds what can be stacked into arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import field, replace
from itertools import product
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import resolve_cluster
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import ResolvedPlan, resolve_plan
from capacity_tui.engine.estimate.transformer import transformer_run
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import family_of
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.plan import FOLLOWING, LENGTHS, Plan, edited, placeholders, plan_layout, with_values
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.modes.modes import fill, open_fields
from capacity_tui.engine.solve.modes.serving_settings import MOST_REQUESTS
from capacity_tui.engine.solve.modes.training_settings import chosen_precision
from capacity_tui.engine.solve.search.question import Question, hardware_ids, model_names
from capacity_tui.engine.solve.space.axes import (
    LAYOUT_SIZES,
    Axis,
    Grid,
    Values,
    layout_axes,
    open_axes,
    open_fields_of_training,
    powers_of_two,
)
from capacity_tui.engine.solve.space.configurations import (
    CHOSEN,
    TRAINING_NUMBERS,
    ServingSpace,
    serving_space,
    training_space,
)
from capacity_tui.engine.solve.space.space import Space, one_by_one
from capacity_tui.engine.solve.space.stacking import can_stack

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

BATCH, SEQUENCE = Key.TRAINING_GLOBAL_BATCH, Key.TRAINING_SEQ_LEN
REQUESTS, REPLICAS, GROUP = Key.INFERENCE_BATCH, Key.PARALLELISM_DP, Key.PARALLELISM_SHARD

# What rules of layouts look at, and how many combinations of it they judge at once.
_JUDGED = frozenset({*LAYOUT_SIZES, BATCH, SEQUENCE})

MOST_LAYOUTS = 2**20

# Sections and fields of which every value is a space of its own: what they change are names, the length of the job,
# or what published runs a range rests on.
_APART_SECTIONS = ("model.", "hardware.", "pricing.", f"{Key.TRAINING_ADAPTER}.")

_APART = frozenset(
    {
        *(f"training.{name}" for name in LENGTHS),
        *(Key.TRAINING_SAMPLES, Key.TRAINING_METHOD, Key.TRAINING_PRECISION, Key.TRAINING_OPTIMIZER),
        *(Key.TRAINING_QUANTIZATION, Key.TRAINING_FRAMEWORK),
    }
)

_FOLLOWING = frozenset(f"parallelism.{name}" for name in FOLLOWING)


@dataclass(frozen=True, slots=True)
class Refused:
    """A space, or combinations of one, that cannot be: ``change`` is what they have in common."""

    change: Values
    error: CapacityError
    count: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """One space of a question."""

    change: Values  # what is to be said with every combination: what sets the space apart, and what the plan left open
    space: Space
    apart: Values  # what sets it apart from the other spaces of the question


@dataclass(frozen=True, slots=True)
class Spaces:
    """The spaces of a question."""

    question: Question
    catalog: Catalog
    machine: Machine | None
    outer: tuple[Axis, ...]  # axes of which every combination of values is a space of its own
    inner: tuple[Axis, ...]  # axes that a space holds as arrays
    # what plans left open, by model
    filled: dict[tuple[object, ...], Values] = field(default_factory=dict, compare=False, repr=False)

    @property
    def count(self) -> int:
        """How many spaces there are at least."""
        return Grid(self.outer).size

    def all(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, Prepared | Refused]]:
        """Yield every space from a first number to before a last, with its number, made when it is asked for."""
        outer = Grid(self.outer)
        for number in range(first, self.count if last is None else last):
            change = outer.at(number)
            try:
                for prepared in self._prepared(change):
                    yield number, prepared
            except CapacityError as error:
                yield number, Refused(change, error, Grid(self.inner).size)

    def fill(self, number: int) -> None:
        """Fill what the plan of a space leaves open, unless one of its model did before.

        Where spaces are made in another order than their own, this is done first, in their own.
        """
        with suppress(CapacityError):
            plan = self._plan(Grid(self.outer).at(number))
            if family_of(plan.model.name, self.catalog).is_transformer and not plan.is_inference:
                self._filled(plan)

    def _plan(self, change: Values) -> Plan:
        return edited(self.question.plan, change, self.catalog).plan if change else self.question.plan

    def _prepared(self, change: Values) -> Iterator[Prepared | Refused]:
        plan = self._plan(change)
        if not family_of(plan.model.name, self.catalog).is_transformer:
            yield self._space_of_one(plan, change)
            return
        if plan.is_inference:
            served, filled = served_space(plan, self.inner, not self.question.vary, self.catalog, self.machine)
            yield Prepared({**change, **filled}, served, change)
            return
        plan, filled = self._filled(plan)
        paths = {axis.path for axis in self.inner}
        wanted = self._wanted(plan) - paths
        following: Values = {BATCH: None, **({REPLICAS: None} if plan.parallelism.dp == AUTO else {})}
        resolved = _resolved(plan, paths | wanted, self.catalog, self.machine, following)
        assert resolved.shape is not None  # noqa: S101 - other kinds of models went another way
        replica_batch = self.catalog.modes["balanced"].replica_batch
        usual = open_axes(plan, resolved, wanted, replica_batch, self.catalog)
        base = plan
        if (paths | wanted) & LAYOUT_SIZES.keys() and REPLICAS not in paths:
            base = with_values(plan, {REPLICAS: None})
        if base.parallelism.shard is not None and GROUP not in paths:
            filled = {**filled, GROUP: base.parallelism.shard}
        axes = (*self.inner, *usual)
        for made in trained_spaces(base, resolved, resolved.shape, self.catalog, axes):
            if isinstance(made, Refused):
                yield replace(made, change={**change, **made.change})
            else:
                yield Prepared({**change, **filled}, made, change)

    def _space_of_one(self, plan: Plan, change: Values) -> Prepared:
        """Return the space of a model whose configurations need an estimate each."""
        lacking = [path for path in open_fields(plan) if all(axis.path != path for axis in self.inner)]
        filled: Values = {}
        if lacking:
            chosen = fill(plan, "balanced", self.machine, self.catalog).plan
            filled = {path: chosen.value(path) for path in lacking}
        space = one_by_one(with_values(plan, filled), self.inner, self.catalog, self.machine)
        return Prepared({**change, **filled}, space, change)

    def _wanted(self, plan: Plan) -> set[str]:
        """Return the fields that vary though nobody gave values for them."""
        fields = (*open_fields_of_training(), Key.PARALLELISM_OFFLOAD)
        is_open = {path for path in fields if plan.value(path) == AUTO}
        return is_open if self.question.vary else {*open_fields_of_training(), *is_open}

    def _filled(self, plan: Plan) -> tuple[Plan, Values]:
        """Return the plan with what it leaves open and the search does not vary, as the balanced mode fills it.

        All hardware gets the same job. Precision is the one that suits each device.
        """
        varied = {*self._wanted(plan), *(axis.path for axis in self.inner), BATCH, REPLICAS}
        lacking = [path for path in open_fields(plan) if path not in varied]
        values: Values = {}
        if Key.TRAINING_PRECISION in lacking:
            lacking.remove(Key.TRAINING_PRECISION)
            cluster = resolve_cluster(plan.hardware, plan.pricing, self.catalog, self.machine)
            values[Key.TRAINING_PRECISION], _ = chosen_precision(cluster.device, self.catalog)
        if lacking:
            key = (str(plan.model), *lacking)
            if key not in self.filled:
                filled = fill(plan, "balanced", self.machine, self.catalog).plan
                self.filled[key] = {path: filled.value(path) for path in lacking}
            values |= self.filled[key]
        return with_values(plan, values), values


def spaces_of(question: Question, catalog: Catalog, machine: Machine | None = None) -> Spaces:
    """Return the spaces of a question; raises PlanError if a field varies twice."""
    apart = [axis for axis in question.vary if _is_apart(axis.path)]
    inner = tuple(axis for axis in question.vary if not _is_apart(axis.path))
    named = (
        (Key.MODEL_NAME, model_names(question.models, question.plan, catalog)),
        (Key.HARDWARE_NAME, hardware_ids(question.hardware, catalog)),
        (Key.HARDWARE_DEVICES, question.devices),
    )
    outer = (*(Axis(path, tuple(values)) for path, values in named if values), *apart)
    paths = [axis.path for axis in (*outer, *inner)]
    for path in paths:
        if paths.count(path) > 1:
            raise PlanError("varies twice", path, "give its values once")
    return Spaces(question, catalog, machine, outer, inner)


def _is_apart(path: str) -> bool:
    return path in _APART or path.startswith(_APART_SECTIONS)


def trained_spaces(
    plan: Plan, resolved: ResolvedPlan, shape: TransformerShape, catalog: Catalog, axes: tuple[Axis, ...]
) -> Iterator[Space | Refused]:
    """Yield the spaces of a training plan, and values that no run can have.

    Args:
        plan: the plan as the user gave it: sizes that it leaves out follow from the others.
        resolved: the same with placeholders where it is open, and in what varies.
    """
    # The sequence of a model over images follows from the image.
    axes = tuple(axis for axis in axes if shape.vision is None or axis.path != SEQUENCE)
    # Settings change first and few values before many: the inner loops of arrays are long, and small arrays stay small.
    ordered = sorted(axes, key=lambda axis: (axis.path in TRAINING_NUMBERS, len(axis.values)))
    cuts: list[list[Axis]] = []
    for axis in ordered:
        parts, unusable = _stackable_axis(resolved, shape, catalog, axis)
        others = Grid(tuple(axes)).size // len(axis.values)
        yield from (Refused({axis.path: value}, error, others) for value, error in unusable)
        cuts.append(parts)
    replica_batch = None
    if plan.training.global_batch == AUTO and not any(axis.path == BATCH for axis in axes):
        replica_batch = catalog.modes["balanced"].replica_batch
    for stackable in product(*cuts):
        for part in _judged_at_once(stackable):
            yield training_space(plan, resolved, shape, catalog, part, replica_batch=replica_batch)


def _stackable_axis(
    resolved: ResolvedPlan, shape: TransformerShape, catalog: Catalog, axis: Axis
) -> tuple[list[Axis], list[tuple[object, CapacityError]]]:
    """Return an axis in parts whose values differ in numbers alone, and the values that no run can have."""
    if axis.path in TRAINING_NUMBERS:
        return [axis], []
    groups: list[tuple[object, list[object]]] = []
    unusable: list[tuple[object, CapacityError]] = []
    for value in axis.values:
        try:
            run = transformer_run(with_values(resolved.plan, {axis.path: value}), shape, resolved.cluster, catalog)
        except CapacityError as error:
            unusable.append((value, error))
            continue
        for like, values in groups:
            if can_stack(run, like):
                values.append(value)
                break
        else:
            groups.append((run, [value]))
    return [Axis(axis.path, tuple(values)) for _, values in groups], unusable


def _judged_at_once(axes: tuple[Axis, ...]) -> Iterator[tuple[Axis, ...]]:
    """Yield axes in parts of which rules judge all layouts at once: many sizes would take all memory."""
    judged = Grid(tuple(axis for axis in axes if axis.path in _JUDGED))
    for block in judged.blocks(MOST_LAYOUTS):
        part = {axis.path: axis for axis in judged.part(block).axes}
        yield tuple(part.get(axis.path, axis) for axis in axes)


def served_space(
    plan: Plan, axes: tuple[Axis, ...], everything: bool, catalog: Catalog, machine: Machine | None
) -> tuple[ServingSpace, Values]:
    """Return the configurations of a plan that serves, and what was filled in for all of them.

    What the plan leaves open of layout and batch varies too; where one size of a layout is asked for, the other is 1.
    """
    paths = {axis.path for axis in axes}
    filled: Values = {}
    if not paths.isdisjoint(CHOSEN):
        filled = {path: 1 for path in CHOSEN if path not in paths and plan.value(path) is None}
    wanted = set(_wanted(with_values(plan, filled), paths, everything))
    lacking = [path for path in open_fields(with_values(plan, filled)) if path not in paths | wanted]
    if lacking:
        chosen = fill(plan, "balanced", machine, catalog).plan
        filled |= {path: chosen.value(path) for path in lacking}
    whole = with_values(plan, filled)
    resolved = _resolved(whole, paths | wanted, catalog, machine, {})
    usual = tuple(_usual_axes(resolved, wanted, catalog))
    assert resolved.shape is not None  # noqa: S101 - only transformers come here
    return serving_space(whole, resolved, resolved.shape, catalog, (*axes, *usual)), filled


def _wanted(plan: Plan, given: Collection[str], everything: bool) -> Iterator[str]:
    """Yield the fields that vary though nobody gave values for them."""
    loaded = plan.inference.is_load
    for path in CHOSEN if loaded else (*CHOSEN, REQUESTS):
        if path not in given and (everything or plan.value(path) in (None, AUTO)):
            yield path


def _resolved(
    plan: Plan, varied: Collection[str], catalog: Catalog, machine: Machine | None, following: Values
) -> ResolvedPlan:
    """Return the plan resolved with placeholders in what varies, and with what follows from that."""
    usual = placeholders()
    values: Values = {path: usual[path] for path in varied if path in usual}
    sizes = [path for path in varied if path in LAYOUT_SIZES]
    if sizes:
        values |= {**{path: None if path in _FOLLOWING else 1 for path in sizes}, REPLICAS: None}
    return resolve_plan(with_values(plan, {**values, **following}), catalog, machine)


def _usual_axes(resolved: ResolvedPlan, wanted: Collection[str], catalog: Catalog) -> Iterator[Axis]:
    """Yield the axes of fields whose values nobody gave."""
    assert resolved.shape is not None  # noqa: S101 - only transformers come here
    layout = plan_layout(resolved.plan, resolved.shape, catalog)
    yield from layout_axes(layout, int(resolved.cluster.per_node), wanted)
    if REQUESTS in wanted:
        yield Axis(REQUESTS, powers_of_two(MOST_REQUESTS))
