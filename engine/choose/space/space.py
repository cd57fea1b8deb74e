"""What every space of configurations offers to whoever searches it, trained or served, and a part of it evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np

from capacity_tui.engine.choose.space.excluded import Excluded
from capacity_tui.engine.choose.space.grid import Grid, Values
from capacity_tui.engine.estimate import Constraint, Figured, central, read_figure
from capacity_tui.engine.numeric import Flags, Number
from capacity_tui.engine.uncertainty import Interval

# Combinations evaluated at once: enough that an array's own cost is small, few enough for some hundred megabytes.
BLOCK = 2**18


class Block:
    """One block of a space: every figure of a result by its key, as an array that broadcasts to the block's grid.

    Args:
        possible: those that no rule excludes.
        plain: figures without ranges.
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
    def held(self) -> Flags | None:
        """Which combinations the fullest device and its host hold as estimated; None where memory is unknown."""
        return self._plain.memory.held

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
