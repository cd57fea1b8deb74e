"""The spaces of a question, one after the other: each holds what can be stacked into arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import resolve_cluster
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import ResolvedPlan, estimate_resolved, resolve_plan
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import family_of
from capacity_tui.engine.plan import FOLLOWING, LENGTHS, LayoutRule, Plan, edited, placeholders, with_values
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.modes.modes import fill, open_fields
from capacity_tui.engine.solve.modes.training_settings import chosen_precision
from capacity_tui.engine.solve.search.job_spaces import BATCH, Refused, served_space, trained_spaces
from capacity_tui.engine.solve.search.question import SERVED, Question, hardware_ids, model_names
from capacity_tui.engine.solve.space.axes import LAYOUT_SIZES, Axis, Grid, Values, open_axes, open_fields_of_training
from capacity_tui.engine.solve.space.space import BLOCK, Block, Excluded, LazyBlock, Space

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

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

_REPLICAS, _GROUP = Key.PARALLELISM_DP, Key.PARALLELISM_SHARD

_FOLLOWING = frozenset(f"parallelism.{name}" for name in FOLLOWING)


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
        """Yield every space with its number among them, made when it is asked for.

        Args:
            first: the number of the first.
            last: the number behind the last; None for all that follow.
        """
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
            if family_of(plan.model.name, self.catalog).kind == "transformer" and plan.task != SERVED:
                self._filled(plan)

    def _plan(self, change: Values) -> Plan:
        return edited(self.question.plan, change, self.catalog).plan if change else self.question.plan

    def _prepared(self, change: Values) -> Iterator[Prepared | Refused]:
        plan = self._plan(change)
        if family_of(plan.model.name, self.catalog).kind != "transformer":
            yield self._space_of_one(plan, change)
            return
        if plan.task == SERVED:
            served, filled = served_space(plan, self.inner, not self.question.vary, self.catalog, self.machine)
            yield Prepared({**change, **filled}, served, change)
            return
        plan, filled = self._filled(plan)
        paths = {axis.path for axis in self.inner}
        wanted = self._wanted(plan) - paths
        resolved = self._resolved(plan, paths | wanted)
        assert resolved.shape is not None  # noqa: S101 - other kinds of models went another way
        replica_batch = self.catalog.modes["balanced"].replica_batch
        usual = open_axes(plan, resolved, wanted, replica_batch, self.catalog)
        base = plan
        if (paths | wanted) & LAYOUT_SIZES.keys() and _REPLICAS not in paths:
            base = with_values(plan, {_REPLICAS: None})
        if base.parallelism.shard is not None and _GROUP not in paths:
            filled = {**filled, _GROUP: base.parallelism.shard}
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
        varied = {*self._wanted(plan), *(axis.path for axis in self.inner), BATCH, _REPLICAS}
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

    def _resolved(self, plan: Plan, varied: set[str]) -> ResolvedPlan:
        """Return the plan resolved with placeholders in what varies."""
        held = placeholders()
        values: Values = {path: held[path] for path in varied if path in held}
        sizes = varied & LAYOUT_SIZES.keys()
        if sizes:
            values |= {**dict.fromkeys(sizes - _FOLLOWING, 1), **dict.fromkeys(sizes & _FOLLOWING), _REPLICAS: None}
        values |= {BATCH: None}
        if plan.parallelism.dp == AUTO:
            values[_REPLICAS] = None
        return resolve_plan(with_values(plan, values), self.catalog, self.machine)


def spaces_of(question: Question, catalog: Catalog, machine: Machine | None = None) -> Spaces:
    """Return the spaces of a question.

    Raises:
        PlanError: a field varies twice.
    """
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


@dataclass(frozen=True, slots=True)
class OneByOneSpace:
    """Configurations of one plan, each estimated by itself."""

    catalog: Catalog
    grid: Grid
    feasible: tuple[tuple[Values, ResolvedPlan], ...]  # the combinations that can be, with the plans they make
    excluded: tuple[Excluded, ...]  # what cannot be, by what is wrong with it

    @property
    def size(self) -> int:
        """Combinations, possible or not."""
        return self.grid.size

    @property
    def count(self) -> int:
        """Combinations that can be."""
        return len(self.feasible)

    def lazy_blocks(self, most: int = BLOCK) -> Iterator[LazyBlock]:  # noqa: ARG002 - each is a piece of its own
        """Yield the combinations one after the other, each estimated when it is called."""
        return (partial(self._block, values, resolved) for values, resolved in self.feasible)

    def settled(self, values: Values) -> Values:
        """Return the values of a combination; they say all that a plan has to."""
        return values

    def reused(self, other: Space, blocks: tuple[Block, ...]) -> None:
        """Each space has plans of its own."""

    def _block(self, values: Values, resolved: ResolvedPlan) -> Block:
        grid = Grid(tuple(Axis(path, (value,)) for path, value in values.items()))
        estimate = estimate_resolved(resolved, self.catalog)
        return Block(grid, np.asarray(True), estimate, lambda: estimate, estimate.limits)


def one_by_one(plan: Plan, axes: Iterable[Axis], catalog: Catalog, machine: Machine | None) -> OneByOneSpace:
    """Return the configurations of a plan over some axes."""
    grid = Grid(tuple(axes))
    possible, refused = [], dict[str, Excluded]()
    for values in grid.combinations():
        try:
            resolved = resolve_plan(edited(plan, values, catalog).plan, catalog, machine)
        except CapacityError as error:
            before = refused.get(error.title)
            rule = LayoutRule("settings", error.title, "", error.hint, error.place.field or "", lambda _: False)
            count = 1 if before is None else before.count + 1
            refused[error.title] = Excluded(rule, count, values, error.detail)
        else:
            possible.append((values, resolved))
    return OneByOneSpace(catalog, grid, tuple(possible), tuple(refused.values()))
