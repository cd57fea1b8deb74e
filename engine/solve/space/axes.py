"""The axes of a training or a served plan whose values nobody gave: sizes of its layout, its batch and its settings."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

import numpy as np

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
)
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.space.grid import Axis, Grid, divisors, powers_of_two


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """Sequences of a step that a layout takes where the plan gives none.

    Attributes:
        usual: sequences of a step, whatever the layout.
        most: more than these nobody is known to use for a model of this size.
        follows: whether the usual ones are rounded down to whole micro-batches of all replicas.
    """

    usual: float
    most: float
    follows: bool = False

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
    """Return the sequences of a step as far as they are known before a layout is.

    Args:
        replica_batch: sequences for each device, where the plan leaves the batch open.
    """
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

# Deeper pipelines are not tried.
MOST_STAGES = 64


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
    """Return the sizes of layouts by name: those that the axes give, over their arrays, and those a plan gives itself.

    Args:
        plan: as the user gave it, so that sizes it leaves out follow from the others.
    """
    given = given_sizes(plan.parallelism)
    sizes: dict[str, Number] = {name: float(getattr(plan.parallelism, name)) for name in given}
    if plan.parallelism.interleave != AUTO:
        sizes["interleave"] = float(plan.parallelism.interleave)
    return sizes | {LAYOUT_SIZES[axis.path]: grid.numbers(axis.path) for axis in grid.axes if axis.path in LAYOUT_SIZES}


LARGEST_MICRO_BATCH = 64

# Sequences are not cut into shorter pieces than this.
LEAST_TOKENS = 2048

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
    """Yield the axes of fields whose values nobody gave.

    Args:
        resolved: the same with placeholders in these fields.
        replica_batch: sequences of a step for each device, where the plan leaves the global batch open.
    """
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
