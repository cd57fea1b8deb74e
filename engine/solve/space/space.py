"""What every space of configurations offers, its evaluated blocks, and the best combinations of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import (
    Constraint,
    Figured,
    ResolvedPlan,
    central,
    estimate_resolved,
    read_figure,
    resolve_plan,
)
from capacity_tui.engine.numeric import Flags, Number
from capacity_tui.engine.plan import Layout, LayoutRule, Plan, edited
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.space.axes import Axis, Floats, Grid, Values
from capacity_tui.engine.uncertainty import Interval

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

# Combinations evaluated at once: enough that an array's own cost is small, few enough for some hundred megabytes.
BLOCK = 2**17


class Block:
    """One block of a space: every figure of a result by its key, as an array that broadcasts to the block's grid.

    Args:
        possible: those that no rule excludes.
        ranged: returns figures with ranges, which take as long again.
        limits: what the plan itself asks of its figures.
    """

    def __init__(
        self,
        grid: Grid,
        possible: Flags,
        plain: Figured,
        ranged: Callable[[], Figured],
        limits: tuple[Constraint, ...] = (),
    ) -> None:
        self.grid, self.feasible, self.limits = grid, possible, limits
        self._plain, self._with_ranges = plain, ranged

    def value(self, key: str) -> Number | None:
        """Return a figure by its result key; None where these runs have none."""
        return central(read_figure(self._plain, key))

    def number(self, key: str) -> Number:
        """Return a figure by its result key; NaN where these runs have none."""
        value = self.value(key)
        return np.nan if value is None else value

    def interval(self, key: str) -> Interval | None:
        """Return a figure with its range; both ends are the value itself where no range is known."""
        value = read_figure(self._ranged, key)
        return Interval.exactly(value) if isinstance(value, int | float | np.ndarray) else value

    def where(self, flags: Flags) -> Block:
        """Return the block with only those combinations possible at which a condition holds too."""
        return Block(self.grid, np.asarray(self.feasible) & flags, self._plain, self._with_ranges, self.limits)

    def constraint(self, key: str, most: float | None, least: float | None, *, with_range: bool = False) -> Constraint:
        """Return a limit of a figure beside what is reached of it, broken without a figure."""
        value = self.value(key)
        reached = self.interval(key) if with_range else None if value is None else Interval.exactly(value)
        return Constraint(key, key, reached=reached, most=most, least=least)

    @property
    def fits(self) -> Flags | None:
        """Which combinations the fullest device and its host hold as estimated; None where memory is unknown."""
        return self._plain.memory.fits

    @cached_property
    def _ranged(self) -> Figured:
        return self._with_ranges()


LazyBlock: TypeAlias = Callable[[], Block]


class Space(Protocol):
    """Configurations of one plan on one kind of hardware that differ in numbers alone, and so are evaluated as arrays.

    A search takes spaces of any kind one after the other. What cannot be stacked into arrays, such as the device type
    or the model, is a space of its own for each value.
    """

    @property
    def grid(self) -> Grid:
        """The fields that vary, without values that no possible combination has."""

    @property
    def excluded(self) -> tuple[Excluded, ...]:
        """What rules excluded, rule by rule."""

    @property
    def size(self) -> int:
        """Combinations, possible or not."""

    @property
    def count(self) -> int:
        """Combinations that no rule excludes."""

    def lazy_blocks(self, most: int = BLOCK) -> Iterator[LazyBlock]:
        """Yield the space piece by piece, each evaluated when it is called; whoever stops calling stops the search."""

    def settled(self, values: Values) -> Values:
        """Return the values of a combination with what else a plan has to say so that it means the same."""

    def reused(self, other: Space, blocks: tuple[Block, ...]) -> tuple[Block, ...] | None:
        """Return the blocks of another space as far as they hold this one's combinations; None where they do not."""


@dataclass(frozen=True, slots=True)
class SpaceCache:
    """Small spaces that were evaluated for one mode, and serve the others of the same comparison.

    All of them are of plans on the same hardware.
    """

    kept: list[tuple[Space, tuple[Block, ...]]] = field(default_factory=list)

    def blocks(self, space: Space) -> Iterator[Block]:
        """Yield a space's blocks, evaluated unless they already were."""
        for other, blocks in self.kept:
            reused = space.reused(other, blocks)
            if reused is not None:
                yield from reused
                return
        if space.grid.size > BLOCK:
            yield from (block() for block in space.lazy_blocks())
            return
        self.kept.append((space, tuple(block() for block in space.lazy_blocks())))
        yield from self.kept[-1][1]


@dataclass(frozen=True, slots=True)
class Excluded:
    """What one rule excluded that no rule before it did."""

    rule: LayoutRule
    count: int
    example: Values  # plan fields of one of them
    figures: str  # the sizes of that one that show it

    @property
    def words(self) -> str:
        """What is wrong, with the sizes of the example."""
        return f"{self.rule.broken}: {self.figures}"


def satisfied(layout: Layout, rules: Iterable[LayoutRule]) -> Flags:
    """Return where layouts keep all rules; the array has only the axes that rules look at."""
    kept = np.asarray(True)
    for rule in rules:
        kept = kept & rule.holds(layout)
    return kept


def excluded(layout: Layout, grid: Grid, rules: Iterable[LayoutRule]) -> tuple[Excluded, ...]:
    """Return what the rules exclude, each combination by the first rule that it breaks."""
    kept = np.ones((1,) * len(grid.axes), dtype=np.bool_)
    rejections = []
    for rule in rules:
        still = kept & rule.holds(layout)
        gone = kept & ~still
        if gone.any():
            index = np.unravel_index(int(np.argmax(gone)), gone.shape)
            example = {axis.path: axis.values[int(at)] for axis, at in zip(grid.axes, index, strict=True)}
            figures = rule.figures(_single(layout, gone.shape, index))
            rejections.append(Excluded(rule, grid.count(gone), example, figures))
        kept = still
    return tuple(rejections)


def _single(layout: Layout, shape: tuple[int, ...], index: tuple[np.intp, ...]) -> Layout:
    sizes = {entry.name: np.asarray(getattr(layout, entry.name)) for entry in fields(layout)}
    whole = np.broadcast_shapes(shape, *(size.shape for size in sizes.values()))
    at = tuple(int(where) % length for where, length in zip(index, whole, strict=True))
    return replace(layout, **{name: float(np.broadcast_to(size, whole)[at]) for name, size in sizes.items()})


Positions: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Ranked:
    """One combination of a block."""

    order: tuple[float, ...]  # what it was chosen by, column by column; less is better
    values: Values
    block: Block
    position: int  # its position in the flattened grid of the block

    def number(self, key: str) -> float:
        """Return one of its figures by result key; NaN where these runs have none."""
        return float(over(self.block.value(key), self.block.grid)[self.position])


def best(blocks: Iterable[Block], columns: Callable[[Block], tuple[Number, ...]]) -> Ranked | None:
    """Return the possible combination that comes first by columns of which less is better; None where none is possible.

    Args:
        blocks: evaluated blocks; of equal combinations the first stays.
        columns: returns what to choose by, over the arrays of a block; infinity excludes a combination.
    """
    first: Ranked | None = None
    for block in blocks:
        points = [over(column, block.grid) for column in columns(block)]
        usable = over(block.feasible, block.grid) > 0
        for point in points:
            usable &= np.isfinite(point)
        rows = np.flatnonzero(usable)
        if not rows.size:
            continue
        for point in points:
            values = point[rows]
            rows = rows[values == values.min()]
        index = int(rows[0])
        order = tuple(float(point[index]) for point in points)
        if first is None or order < first.order:
            first = Ranked(order, block.grid.at(index), block, index)
    return first


def best_of(points: Floats, rows: Positions, count: int) -> Positions:
    """Return the rows of the best points, column by column, the first of equal ones.

    Args:
        points: a row for each point, less of every column being better.
        rows: those to look at.
    """
    window = 16 * count
    while True:
        some = rows
        if rows.size > window:
            first = points[rows, 0]
            some = rows[first <= np.partition(first, window)[window]]
        ordered = some[np.lexsort((some, *points[some].T[::-1]))]
        in_order = points[ordered]
        new = np.ones(len(ordered), dtype=np.bool_)
        new[1:] = np.any(in_order[1:] != in_order[:-1], axis=1)
        first_of_equal = ordered[new]
        if first_of_equal.size >= count or some.size == rows.size:
            return np.asarray(first_of_equal[:count], dtype=np.intp)
        window *= 16


def over(value: Number | Flags | None, grid: Grid) -> Floats:
    """Return a number as a flat array over a grid; NaN where there is none."""
    return np.broadcast_to(np.asarray(np.nan if value is None else value, dtype=np.float64), grid.shape).ravel()


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
