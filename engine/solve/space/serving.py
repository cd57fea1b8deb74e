"""Configurations of a plan that serves, evaluated block by block with the equations of a single estimate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate import Assembled, ResolvedPlan, evidence_before, plan_limits, run_splits, with_numbers
from capacity_tui.engine.estimate.serving import ServingRun, serving_run, serving_work
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import Number, where
from capacity_tui.engine.plan import (
    Layout,
    LayoutRule,
    Plan,
    plan_layout,
    refusing,
    served_sizes,
    splits_layers,
    splits_whole_heads,
    with_following,
    with_values,
)
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.space.axes import LAYOUT_SIZES, Axis, Grid, Values, sizes_over
from capacity_tui.engine.solve.space.space import BLOCK, Block, Excluded, LazyBlock, Space, excluded, satisfied
from capacity_tui.engine.solve.space.stacking import Settings
from capacity_tui.engine.uncertainty import Evidence

# Numbers that a run takes from the plan as they are; every other field is a setting, which may change several.
NUMBERS = frozenset({*LAYOUT_SIZES, *served_sizes()})
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

    def served(values: Values) -> Served:
        changed = replace(resolved, plan=with_values(resolved.plan, values))
        return Served(evidence_before(changed, catalog), serving_run(changed.plan, shape, changed.cluster, catalog))

    rules, grid = (*refusing(), *besides), Grid(tuple(axes))
    whole = ServingSpace(plan, resolved, shape, catalog, grid, Settings(NUMBERS, served), rules)
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
