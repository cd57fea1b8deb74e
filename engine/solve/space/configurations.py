"""Configurations of a plan, evaluated block by block with the equations of a single estimate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate import (
    Assembled,
    ResolvedPlan,
    Work,
    evidence_before,
    plan_limits,
    run_splits,
    transformer_work,
    with_numbers,
)
from capacity_tui.engine.estimate.transformer import TransformerRun, transformer_run
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import Flags, Number, largest, where
from capacity_tui.engine.plan import (
    Layout,
    LayoutRule,
    Plan,
    broadcast_numbers,
    plan_layout,
    refusing,
    served_sizes,
    splits_layers,
    splits_whole_heads,
    with_following,
    with_values,
)
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.space.axes import LAYOUT_SIZES, Axis, Grid, OpenBatch, Values, open_batch, sizes_over
from capacity_tui.engine.solve.space.space import BLOCK, Block, Excluded, LazyBlock, Space, excluded, satisfied
from capacity_tui.engine.solve.space.stacking import Conflict, Settings
from capacity_tui.engine.uncertainty import Evidence

if TYPE_CHECKING:
    from capacity_tui.engine.estimate.serving import ServingRun

# Numbers that a run takes from the plan as they are; every other field is a setting, which may change several.
TRAINING_NUMBERS = frozenset({*LAYOUT_SIZES, *broadcast_numbers()})
SIZES = ("dp", "tp", "pp", "cp", "ep", "etp", "interleave", "shard", "sequence_parallel")
"""Sizes of a layout that a run has under the same names."""
MOST_SETTINGS = 512  # Settings of a block: each combination of them is a run to be made before any array is
# Fields by how many formulas depend on them, the fewest last: a block has all values of the last ones, and so most of
# its arrays are smaller than itself.
BY_DEPENDENCE = (
    Key.TRAINING_SEQ_LEN,
    Key.TRAINING_MICRO_BATCH,
    Key.PARALLELISM_TP,
    Key.PARALLELISM_CP,
    Key.PARALLELISM_PP,
    Key.PARALLELISM_OFFLOAD,
    Key.PARALLELISM_ZERO,
)


@dataclass(frozen=True, slots=True)
class TrainingSpace:
    """Configurations of one training plan of a transformer."""

    plan: Plan  # the plan as the user gave it: sizes that it leaves out follow from the others
    resolved: ResolvedPlan  # the same with placeholders where it is open
    shape: TransformerShape
    catalog: Catalog
    grid: Grid  # the fields that vary, without values that no possible combination has
    rules: tuple[LayoutRule, ...]  # rules that a layout must keep
    batch: OpenBatch | None = None  # sequences of a step, where the plan leaves them open
    excluded: tuple[Excluded, ...] = ()  # what the rules excluded, rule by rule
    known: dict[str, TransformerRun | Conflict] = field(default_factory=dict, compare=False, repr=False)

    @property
    def size(self) -> int:
        """Combinations, possible or not."""
        return self.count + sum(excluded.count for excluded in self.excluded)

    @property
    def count(self) -> int:
        """Combinations that no rule excludes."""
        return self.grid.count(satisfied(self.layout(self.grid), self.rules))

    def lazy_blocks(self, most: int = BLOCK) -> Iterator[LazyBlock]:
        """Yield the space piece by piece, each evaluated when it is called; whoever stops calling stops the search."""
        grid = self.grid.innermost(BY_DEPENDENCE)
        numbers = prod(len(axis.values) for axis in grid.axes if axis.path in TRAINING_NUMBERS)
        return (partial(self.block, grid.part(block)) for block in grid.blocks(min(most, numbers * MOST_SETTINGS)))

    def block(self, grid: Grid) -> Block:
        """Return every figure of a part of the grid."""
        run, plan = self.run(grid), self.resolved.plan
        work = transformer_work(run, plan)
        plain = Assembled(work, run.cluster, plan.pricing)

        def ranged() -> Assembled:
            with_evidence = replace(work, evidence=self._evidence(run, work))
            return Assembled(with_evidence, run.cluster, plan.pricing, time=plain.time)

        return Block(grid, self.feasible(grid), plain, ranged, plan_limits(self.plan, plain))

    def settled(self, values: Values) -> Values:
        """Return the values of a combination with the batch that its layout has where the plan leaves that open."""
        if self.batch is None or Key.TRAINING_GLOBAL_BATCH in values:
            return values
        one = Grid(tuple(Axis(path, (value,)) for path, value in values.items()))
        return {**values, Key.TRAINING_GLOBAL_BATCH: round(largest(self.global_batch(one)))}

    def reused(self, other: Space, blocks: tuple[Block, ...]) -> tuple[Block, ...] | None:
        """Return the blocks of another space as far as they hold this one's combinations; None where they do not.

        A batch that is given is among those that another has wherever a micro-batch asks for no more.
        """
        if not isinstance(other, TrainingSpace) or self._without_batch != other._without_batch:
            return None
        if self._batch == other._batch:
            return blocks
        given = self.plan.training.global_batch
        if self.batch is not None or other.batch is None or not isinstance(given, int) or given != other.batch.usual:
            return None
        return tuple(block.where(np.equal(other.global_batch(block.grid), float(given))) for block in blocks)

    @property
    def _batch(self) -> tuple[object, ...]:
        return self.resolved.plan.training.global_batch, self.plan.training.global_batch, self.batch

    @property
    def _without_batch(self) -> tuple[object, ...]:
        resolved = with_values(self.resolved.plan, {Key.TRAINING_GLOBAL_BATCH: None})
        return self.grid, [rule.id for rule in self.rules], self.plan.parallelism, resolved

    def _evidence(self, run: TransformerRun, work: Work) -> Evidence:
        """Return what the ranges rest on; names that decide it are the same in all of the space."""
        known = evidence_before(self.resolved, self.catalog)
        splits = run_splits(run.layout)
        flags = {**known.flags, "offloaded": run.layout.offload_optimizer}
        return with_numbers(replace(known, flags=flags), work, run.cluster.devices, splits)

    def layout(self, grid: Grid) -> Layout:
        """Return the layouts of a grid, over its arrays."""
        sizes = sizes_over(grid, self.plan)
        batch = self.plan.training.global_batch
        sizes["global_batch"] = float(batch) if isinstance(batch, int) else 0.0
        for name in ("seq_len", "global_batch"):
            if grid.has(f"training.{name}"):
                sizes[name] = grid.numbers(f"training.{name}")
        base = plan_layout(self.resolved.plan, self.shape, self.catalog)
        return with_following(replace(base, micro_batches=0.0, **sizes), sizes)

    def run(self, grid: Grid) -> TransformerRun:
        """Return the runs of a grid as one run of arrays."""
        run, layout = Settings(TRAINING_NUMBERS, self._single, self.known).over(grid), self.layout(grid)

        def number(path: str, otherwise: Number) -> Number:
            return grid.numbers(path) if grid.has(path) else otherwise

        micro_batch = number(Key.TRAINING_MICRO_BATCH, run.data.micro_batch)
        sizes = {name: getattr(layout, name) for name in SIZES}
        data = replace(
            run.data,
            seq_len=number(Key.TRAINING_SEQ_LEN, run.data.seq_len),
            micro_batch=micro_batch,
            global_batch=self._global_batch(grid, layout, micro_batch),
        )
        return replace(
            run, data=data, layout=replace(run.layout, **sizes, zero=number(Key.PARALLELISM_ZERO, run.layout.zero))
        )

    def feasible(self, grid: Grid) -> Flags:
        """Return which combinations no rule excludes; an open batch is whole micro-batches for each replica."""
        layout, micro_batch = self.layout(grid), self.micro_batch(grid)
        kept = satisfied(layout, self.rules)
        if grid.has(Key.TRAINING_GLOBAL_BATCH):
            return kept
        if self.batch is not None:
            return kept & self.batch.holds(layout.dp, micro_batch)
        if not grid.has(Key.TRAINING_MICRO_BATCH) or not np.any(layout.global_batch):
            return kept
        # Micro-batches that are tried are no larger than what a replica has of a step.
        return kept & (np.less_equal(layout.dp * micro_batch, layout.global_batch) | np.equal(micro_batch, 1.0))

    def has_whole_steps(self, grid: Grid) -> Flags:
        """Return where a step is a whole number of micro-batches for each replica."""
        layout, micro_batch = self.layout(grid), self.micro_batch(grid)
        return np.asarray(np.mod(self._global_batch(grid, layout, micro_batch), layout.dp * micro_batch) == 0)

    def global_batch(self, grid: Grid) -> Number:
        """Return the sequences of a step over the arrays of a grid."""
        return self._global_batch(grid, self.layout(grid), self.micro_batch(grid))

    def micro_batch(self, grid: Grid) -> Number:
        """Return the sequences of a micro-batch over the arrays of a grid."""
        path = Key.TRAINING_MICRO_BATCH
        return grid.numbers(path) if grid.has(path) else float(self.resolved.plan.training.micro_batch)

    def _global_batch(self, grid: Grid, layout: Layout, micro_batch: Number) -> Number:
        """Return the sequences of a step: as the grid or the plan gives them, else for each replica."""
        if grid.has(Key.TRAINING_GLOBAL_BATCH):
            return grid.numbers(Key.TRAINING_GLOBAL_BATCH)
        batch = self.plan.training.global_batch
        if isinstance(batch, int):
            return float(batch)
        return layout.dp * micro_batch if self.batch is None else self.batch.of(layout.dp, micro_batch)

    def _single(self, values: Values) -> TransformerRun:
        return transformer_run(with_values(self.resolved.plan, values), self.shape, self.resolved.cluster, self.catalog)


def training_space(
    plan: Plan,
    resolved: ResolvedPlan,
    shape: TransformerShape,
    catalog: Catalog,
    axes: Iterable[Axis],
    *besides: LayoutRule,
    replica_batch: float | None = None,
) -> TrainingSpace:
    """Return the configurations of a plan over some axes; values that no possible layout has are left out.

    Args:
        besides: rules to keep that would only be remarked on.
        replica_batch: sequences of a step for each device, where the plan leaves the global batch open.
    """
    rules = (*refusing(), *besides)
    whole = TrainingSpace(plan, resolved, shape, catalog, Grid(tuple(axes)), rules)
    layout = whole.layout(whole.grid)
    gone = excluded(layout, whole.grid, rules)
    kept = satisfied(layout, rules)
    space = replace(whole, grid=whole.grid.kept(kept), excluded=gone) if gone else whole
    if replica_batch is None or not np.any(kept):
        return space
    batch = open_batch(shape, float(layout.devices), float(resolved.plan.training.seq_len), replica_batch, catalog)
    fewest = np.min(np.where(kept, layout.dp, np.inf)) * np.min(whole.micro_batch(whole.grid))
    with_batch = replace(space, batch=batch.at_least(float(fewest)))
    if np.any(with_batch.feasible(with_batch.grid)):
        return with_batch
    return replace(space, batch=batch.at_least(float(fewest)).multiple_of(float(fewest)))


SERVING_NUMBERS = frozenset({*LAYOUT_SIZES, *served_sizes()})
ENGINE, BATCH = Key.INFERENCE_ENGINE, Key.INFERENCE_BATCH
# Limits that a plan sets, where they vary.
LIMITING = (
    Key.INFERENCE_REQUEST_RATE,
    Key.INFERENCE_TTFT_SECONDS,
    Key.INFERENCE_TPOT_SECONDS,
    Key.INFERENCE_REQUEST_SECONDS,
)
# Sizes that a plan has to say, since modes choose them where it does not.
CHOSEN = (Key.PARALLELISM_TP, Key.PARALLELISM_PP)


@dataclass(frozen=True, slots=True)
class Served:
    """What the ranges of settings rest on, and their runs."""

    evidence: Evidence
    run: ServingRun


@dataclass(frozen=True, slots=True)
class ServingSpace:
    """Configurations of one plan that serves a transformer."""

    plan: Plan  # the plan as the user gave it: sizes that it leaves out follow from the others
    resolved: ResolvedPlan  # the same with placeholders where it is open
    shape: TransformerShape
    catalog: Catalog
    grid: Grid  # the fields that vary, without values that no possible combination has
    settings: Settings[Served]  # the runs of its settings
    rules: tuple[LayoutRule, ...]  # rules that a layout must keep
    excluded: tuple[Excluded, ...] = ()  # what the rules excluded, rule by rule, and settings that do not go together

    @property
    def size(self) -> int:
        """Combinations, possible or not."""
        return self.count + sum(excluded.count for excluded in self.excluded)

    @property
    def count(self) -> int:
        """Combinations that no rule excludes and whose settings go together."""
        return sum(part.count(satisfied(self.layout(part), self.rules)) for part in self.settings.parts(self.grid))

    def lazy_blocks(self, most: int = BLOCK) -> Iterator[LazyBlock]:
        """Yield the space piece by piece, each evaluated when it is called; whoever stops calling stops the search."""
        for part in self.settings.parts(self.grid):
            for block in part.blocks(most):
                yield partial(self.block, part.part(block))

    def block(self, grid: Grid) -> Block:
        """Return every figure of a part of the grid whose settings are alike."""
        served, layout = self.settings.over(grid), self.layout(grid)
        run = self._run(grid, served.run, layout)
        plain = self._assembled(run)

        def ranged() -> Assembled:
            splits = run_splits(replace(run.layout, cp=layout.cp, zero=0.0))
            evidence = with_numbers(served.evidence, plain.work, run.cluster.devices, splits)
            work = replace(plain.work, evidence=evidence)
            return Assembled(work, run.cluster, self.resolved.plan.pricing, "batch", plain.time)

        varied = (axis for axis in grid.axes if axis.path in LIMITING)
        numbers = {axis.path: None if None in axis.values else grid.numbers(axis.path) for axis in varied}
        limits = plan_limits(self.resolved.plan, plain, {**numbers, BATCH: run.batch})
        return Block(grid, satisfied(layout, self.rules), plain, ranged, limits)

    def settled(self, values: Values) -> Values:
        """Return the values of a combination with the sizes that modes would choose for another."""
        return {**{path: self.resolved.plan.value(path) for path in CHOSEN}, **values}

    def reused(self, other: Space, blocks: tuple[Block, ...]) -> tuple[Block, ...] | None:
        """Return the blocks of another space with the same plan and axes; None where they are of others."""
        is_same = isinstance(other, ServingSpace) and (self.resolved.plan, self.grid) == (
            other.resolved.plan,
            other.grid,
        )
        return blocks if is_same else None

    def layout(self, grid: Grid) -> Layout:
        """Return the layouts of a grid, over its arrays."""
        sizes = sizes_over(grid, self.plan)
        layout = replace(plan_layout(self.resolved.plan, self.shape, self.catalog), **sizes)
        if grid.has(ENGINE):
            layout = replace(
                layout,
                whole_heads=grid.along(ENGINE, lambda name: splits_whole_heads(str(name), self.catalog)),
                splits_layers=grid.along(ENGINE, lambda name: splits_layers(str(name), self.catalog)),
            )
        return with_following(layout, sizes)

    def _run(self, grid: Grid, run: ServingRun, layout: Layout) -> ServingRun:
        """Return the runs of a grid as one run of arrays."""

        def number(name: str) -> Number:
            path = f"inference.{name}"
            return grid.numbers(path) if grid.has(path) else float(getattr(self.resolved.plan.inference, name))

        sizes = {name: getattr(layout, name) for name in ("dp", "tp", "pp", "ep", "etp")}
        prompt = run.prompt if self.shape.vision is not None else number("prompt_tokens")
        output = where(run.output > 0, number("output_tokens"), run.output)
        return replace(run, layout=replace(run.layout, **sizes), prompt=prompt, output=output, batch=number("batch"))

    def _assembled(self, run: ServingRun) -> Assembled:
        from capacity_tui.engine.estimate.serving import serving_work  # noqa: PLC0415 - of plans that serve alone

        return Assembled(serving_work(run), run.cluster, self.resolved.plan.pricing, "batch")


def serving_space(
    plan: Plan,
    resolved: ResolvedPlan,
    shape: TransformerShape,
    catalog: Catalog,
    axes: Iterable[Axis],
    *besides: LayoutRule,
) -> ServingSpace:
    """Return the configurations of a plan over some axes; values that no possible layout has are left out.

    Args:
        besides: rules to keep that would only be remarked on.
    """
    from capacity_tui.engine.estimate.serving import serving_run  # noqa: PLC0415 - of plans that serve alone

    def served(values: Values) -> Served:
        changed = replace(resolved, plan=with_values(resolved.plan, values))
        return Served(evidence_before(changed, catalog), serving_run(changed.plan, shape, changed.cluster, catalog))

    rules, grid = (*refusing(), *besides), Grid(tuple(axes))
    whole = ServingSpace(plan, resolved, shape, catalog, grid, Settings(SERVING_NUMBERS, served), rules)
    layout = whole.layout(grid)
    gone = excluded(layout, grid, rules)
    kept = replace(whole, grid=grid.kept(satisfied(layout, rules))) if gone else whole
    return replace(kept, excluded=(*gone, *_refused(kept)))


def _refused(space: ServingSpace) -> Iterator[Excluded]:
    """Yield what layouts leave and settings exclude that do not go together."""
    for part, why in space.settings.refused(space.grid):
        holds = satisfied(space.layout(part), space.rules)
        if holds.any():
            field = next((axis.path for axis in part.axes), "")
            rule = LayoutRule("settings", why.title, "", why.hint, field, lambda _: False)
            index = int(np.argmax(np.broadcast_to(holds, part.shape)))
            yield Excluded(rule, part.count(holds), part.at(index), why.detail)
