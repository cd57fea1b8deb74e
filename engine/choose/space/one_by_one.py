"""Configurations of which each needs an estimate of its own: networks of layers, classical algorithms, plug-ins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.space.excluded import Excluded
from capacity_tui.engine.choose.space.grid import Axis, Grid, Values
from capacity_tui.engine.choose.space.space import BLOCK, Block, LazyBlock, Space
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import ResolvedPlan, estimate_resolved, resolve_plan
from capacity_tui.engine.plan import LayoutRule, Plan, edited

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(frozen=True, slots=True)
class OneByOneSpace:
    """Configurations of one plan, each estimated by itself.

    Attributes:
        catalog: facts.
        grid: the fields that vary.
        feasible: the combinations that can be, with the plans they make.
        excluded: what cannot be, by what is wrong with it.
    """

    catalog: Catalog
    grid: Grid
    feasible: tuple[tuple[Values, ResolvedPlan], ...]
    excluded: tuple[Excluded, ...]

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
    """Return the configurations of a plan over some axes.

    Args:
        plan: the plan, with nothing open.
    """
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
