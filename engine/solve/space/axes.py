"""Axes of a space of plans: grids of fields with the values they take, and the axes whose values nobody gave."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate import ResolvedPlan
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer import TransformerShape, count_parameters
from capacity_tui.engine.numeric import Flags, Number, largest
from capacity_tui.engine.plan import (
    FOLLOWING,
    Layout,
    Plan,
    all_fields,
    given_sizes,
    known_names,
    memory_searched,
    model_sizes,
    plan_layout,
    software_id,
)
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO

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


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """Sequences of a step that a layout takes where the plan gives none."""

    usual: float  # sequences of a step, whatever the layout
    most: float  # more than these nobody is known to use for a model of this size
    follows: bool = False  # whether the usual ones are rounded down to whole micro-batches of all replicas

    def of(self, replicas: Number, micro_batch: Number) -> Number:
        """Return the sequences of a step: the usual ones, or one micro-batch for each replica where that is more."""
        together = np.asarray(replicas * micro_batch)
        return together * np.maximum(1.0, self.usual // together) if self.follows else np.maximum(self.usual, together)

    def holds(self, replicas: Number, micro_batch: Number) -> Flags:
        """Return where a step is a whole number of micro-batches for each replica, and no larger than people use."""
        together = np.asarray(replicas * micro_batch)
        return np.asarray((np.mod(self.of(replicas, micro_batch), together) == 0) & (together <= self.most))

    def at_least(self, sequences: float) -> OpenBatch:
        """Return the same with room for so many sequences, where a plan's own sizes leave no fewer."""
        return self if sequences <= self.most else replace(self, usual=max(self.usual, sequences), most=sequences)

    def multiple_of(self, sequences: float) -> OpenBatch:
        """Return the same with as many whole steps of so many sequences as its usual ones hold."""
        return replace(self, usual=sequences * max(1.0, self.usual // sequences))


def open_batch(
    shape: TransformerShape, devices: float, seq_len: float, replica_batch: float, catalog: Catalog
) -> OpenBatch:
    """Return the sequences of a step for a job: some for each device, up to what runs of that size use.

    They are a multiple of the devices, of half of them, of a quarter ..., so that layouts divide them.

    Args:
        replica_batch: sequences for each device.
    """
    most = max(1.0, published_tokens(shape, catalog) // seq_len)
    unit = devices
    while unit > most and unit % 2 == 0:
        unit /= 2
    usual = min(replica_batch * devices, max(unit, most // unit * unit))
    return OpenBatch(usual, max(usual, most))


def expected_batch(plan: Plan, resolved: ResolvedPlan, replica_batch: float, catalog: Catalog) -> float | None:
    """Return the sequences of a step as far as they are known before a layout is."""
    given, shape = plan.training.global_batch, resolved.shape
    if given != AUTO or shape is None:
        return float(given) if isinstance(given, int) else None
    devices, length = largest(resolved.cluster.devices), float(resolved.plan.training.seq_len)
    return open_batch(shape, devices, length, replica_batch, catalog).usual


def published_tokens(shape: TransformerShape, catalog: Catalog) -> float:
    """Return the largest batch, in tokens, of published runs of models as large as this or smaller.

    For a model that is smaller than all of them it is the batch of the smallest.
    """
    size, mixture = float(count_parameters(shape).total), bool(shape.experts)
    rows = [row for row in catalog.training_batches.values() if row.mixture == mixture]
    smallest = min(rows, key=lambda row: row.parameters)
    return max((row.tokens_per_step for row in rows if row.parameters <= size), default=smallest.tokens_per_step)


# Sizes of a layout, by the plan field that gives them.
LAYOUT_SIZES = {f"parallelism.{name}": name for name in ("tp", "pp", "cp", "ep", "interleave", *FOLLOWING)}

MOST_STAGES = 64  # Deeper pipelines are not tried


def layout_axes(layout: Layout, inside: int, wanted: Container[str]) -> Iterator[Axis]:
    """Yield the axes of the open sizes of a layout: tensor parallelism, and pipeline stages.

    Args:
        inside: devices of a node, which tensor parallelism stays in; software that spreads whole layers has none.
    """
    sizes = divisors(int(layout.devices))
    if Key.PARALLELISM_TP in wanted:
        most = inside if layout.splits_layers else 1
        yield Axis(Key.PARALLELISM_TP, tuple(size for size in sizes if size <= most))
    if Key.PARALLELISM_PP in wanted:
        most = min(int(layout.layers), MOST_STAGES)
        yield Axis(Key.PARALLELISM_PP, tuple(size for size in sizes if size <= most))


def sizes_over(grid: Grid, plan: Plan) -> dict[str, Number]:
    """Return the sizes of layouts by name: those of the axes, over their arrays, and those a plan gives itself."""
    given = given_sizes(plan.parallelism)
    sizes: dict[str, Number] = {name: float(getattr(plan.parallelism, name)) for name in given}
    if plan.parallelism.interleave != AUTO:
        sizes["interleave"] = float(plan.parallelism.interleave)
    return sizes | {LAYOUT_SIZES[axis.path]: grid.numbers(axis.path) for axis in grid.axes if axis.path in LAYOUT_SIZES}


LARGEST_MICRO_BATCH = 64
LEAST_TOKENS = 2048  # Sequences are not cut into shorter pieces than this

# Chunks of a pipeline stage that are tried, and the sequences a step has for each device at the most where they are:
# with more of them a pipeline is full most of the time without taking turns.
CHUNKS = (1, 2, 4, 8)

FEW_SEQUENCES = 16.0


def open_fields_of_training() -> tuple[str, ...]:
    """Return the fields a search of training varies where nobody says, in the order of the plan file."""
    return tuple(dict.fromkeys((*memory_searched(), *model_sizes())))


def choices_of(path: str, catalog: Catalog) -> tuple[object, ...]:
    """Return every value of a field that has a list of them; none for others."""
    known = all_fields().get(path)
    if known is None:
        return ()
    if known.knob.kind == "switch":
        return (False, True)
    names = tuple(known_names(path, catalog)) or known.knob.choices
    return tuple(int(name) if name.isdigit() else name for name in names)


def open_axes(
    plan: Plan, resolved: ResolvedPlan, wanted: Container[str], replica_batch: float, catalog: Catalog
) -> Iterator[Axis]:
    """Yield the axes of fields whose values nobody gave, with the values that the plan's software has.

    Args:
        resolved: the same with placeholders in these fields.
        replica_batch: sequences of a step for each device, where the plan leaves the global batch open.
    """
    for axis in _all_axes(plan, resolved, wanted, replica_batch, catalog):
        has = offered(plan, catalog).get(axis.path, axis.values)
        yield replace(axis, values=tuple(value for value in axis.values if value in has) or axis.values)


def offered(plan: Plan, catalog: Catalog) -> dict[str, tuple[object, ...]]:
    """Return the values that a plan's training software has, of fields of which it lacks some."""
    software = catalog.frameworks[software_id(plan.training.framework, catalog)]
    splits = software.splits if plan.training.adapter is None else software.adapter_splits
    sizes = {"tp": ("tp",), "pp": ("pp", "interleave"), "cp": ("cp",), "ep": ("ep",)}
    has: dict[str, tuple[object, ...]] = {
        f"parallelism.{size}": (1,) for name, names in sizes.items() if name not in splits for size in names
    }
    has[Key.PARALLELISM_ZERO] = software.stages
    return {**has, Key.TRAINING_CHECKPOINTING: software.recomputes} if software.recomputes else has


def _all_axes(
    plan: Plan, resolved: ResolvedPlan, wanted: Container[str], replica_batch: float, catalog: Catalog
) -> Iterator[Axis]:
    """Yield the axes of fields whose values nobody gave, whatever the software."""
    shape, cluster = resolved.shape, resolved.cluster
    devices = int(cluster.devices)
    batch = expected_batch(plan, resolved, replica_batch, catalog)
    for path in (Key.TRAINING_CHECKPOINTING, Key.PARALLELISM_OFFLOAD):
        if path in wanted:
            yield Axis(path, choices_of(path, catalog))
    if Key.PARALLELISM_ZERO in wanted:
        yield Axis(Key.PARALLELISM_ZERO, choices_of(Key.PARALLELISM_ZERO, catalog) if devices > 1 else (0,))
    if Key.TRAINING_MICRO_BATCH in wanted:
        yield Axis(Key.TRAINING_MICRO_BATCH, powers_of_two(LARGEST_MICRO_BATCH))
    if shape is None:
        return
    layout = plan_layout(resolved.plan, shape, catalog)
    yield from layout_axes(layout, int(cluster.per_node), wanted)
    if Key.PARALLELISM_CP in wanted:
        pieces = max(1, int(resolved.plan.training.seq_len) // LEAST_TOKENS)
        sizes = divisors(devices)
        yield Axis(Key.PARALLELISM_CP, tuple(size for size in sizes if size <= pieces and size & (size - 1) == 0))
    if Key.PARALLELISM_EP in wanted:
        experts = int(layout.experts)
        yield Axis(
            Key.PARALLELISM_EP, tuple(size for size in divisors(experts) if size <= devices) if experts else (1,)
        )
    if Key.PARALLELISM_INTERLEAVE in wanted:
        few = batch is not None and batch < FEW_SEQUENCES * devices
        yield Axis(Key.PARALLELISM_INTERLEAVE, CHUNKS if few else CHUNKS[:1])
