"""Grids: plan fields with the values they take, one array dimension for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.numeric import Flags
from capacity_tui.engine.record import dataclass

Floats: TypeAlias = NDArray[np.float64]
Values: TypeAlias = dict[str, object]
Block: TypeAlias = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """One plan field that varies."""

    path: str
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination of the values of some axes.

    Arrays over a grid have one dimension for each axis, in their order; what does not depend on an axis has length 1
    there, and so is computed once for all of its values.
    """

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Values of each axis."""
        return tuple(len(axis.values) for axis in self.axes)

    @property
    def size(self) -> int:
        """Combinations."""
        return prod(self.shape)

    def has(self, path: str) -> bool:
        """Whether a field is an axis."""
        return any(axis.path == path for axis in self.axes)

    def along(self, path: str, number: Callable[[object], float]) -> Floats:
        """Return a number for each value of an axis, along its dimension."""
        index, axis = next((index, axis) for index, axis in enumerate(self.axes) if axis.path == path)
        shape = [1] * len(self.axes)
        shape[index] = len(axis.values)
        return np.array([number(value) for value in axis.values], dtype=np.float64).reshape(shape)

    def numbers(self, path: str) -> Floats:
        """Return the values of an axis of numbers, or of switches, along its dimension."""
        return self.along(path, lambda value: float(value) if isinstance(value, bool) else float(str(value)))

    def count(self, flags: Flags) -> int:
        """Return at how many combinations a condition holds, whose arrays may be smaller than the grid."""
        return int(np.count_nonzero(flags)) * self.size // max(1, flags.size)

    def over(self, paths: Iterable[str]) -> Grid:
        """Return the grid of some axes alone; the others keep their place with a length of 1."""
        kept = set(paths)
        return Grid(tuple(axis if axis.path in kept else Axis(axis.path, axis.values[:1]) for axis in self.axes))

    def innermost(self, paths: Sequence[str]) -> Grid:
        """Return the grid with some of its axes at the end, in the order given."""
        return Grid(tuple(sorted(self.axes, key=lambda axis: paths.index(axis.path) if axis.path in paths else -1)))

    def combinations(self) -> Iterator[Values]:
        """Yield the values of every combination, the last axis the fastest."""
        paths = [axis.path for axis in self.axes]
        return (dict(zip(paths, values, strict=True)) for values in product(*(axis.values for axis in self.axes)))

    def at(self, position: int) -> Values:
        """Return the values at a position of the flattened grid."""
        indices = np.unravel_index(position, self.shape)
        return {axis.path: axis.values[int(index)] for axis, index in zip(self.axes, indices, strict=True)}

    def part(self, block: Block) -> Grid:
        """Return one block as a grid of its own."""
        return Grid(tuple(Axis(axis.path, axis.values[cut]) for axis, cut in zip(self.axes, block, strict=True)))

    def blocks(self, most: int) -> Iterator[Block]:
        """Yield blocks of at most so many combinations that cover the grid, in its order."""
        inside = 1
        lengths = []
        for size in reversed(self.shape):
            lengths.append(max(1, min(size, most // inside)))
            inside *= lengths[-1]
        cuts = (
            [slice(start, min(start + length, size)) for start in range(0, size, length)]
            for size, length in zip(self.shape, reversed(lengths), strict=True)
        )
        return product(*cuts)

    def kept(self, flags: Flags) -> Grid:
        """Return the grid without values at which a condition holds nowhere."""
        flags = np.broadcast_to(flags, np.broadcast_shapes(flags.shape, (1,) * len(self.axes)))
        axes = []
        for index, axis in enumerate(self.axes):
            others = tuple(other for other in range(flags.ndim) if other != index)
            here = np.broadcast_to(flags.any(axis=others), (len(axis.values),))
            axes.append(Axis(axis.path, tuple(value for value, held in zip(axis.values, here, strict=True) if held)))
        return Grid(tuple(axes))


def powers_of_two(most: float) -> tuple[int, ...]:
    """Return 1, 2, 4 ... up to ``most``; at least 1."""
    return tuple(2**power for power in range(max(0, int(np.log2(max(most, 1.0)))) + 1))


def divisors(number: int) -> tuple[int, ...]:
    """Return the whole numbers that divide a positive one, in order."""
    small = [size for size in range(1, int(number**0.5) + 1) if number % size == 0]
    return tuple(sorted({*small, *(number // size for size in small)}))
