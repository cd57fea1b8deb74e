"""What varies where nobody says: the sizes of a layout and the settings of a training, each as an axis."""

from __future__ import annotations

from collections.abc import Container, Iterator

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.space.grid import Axis, divisors, powers_of_two
from capacity_tui.engine.choose.space.layouts import layout_axes
from capacity_tui.engine.choose.space.open_batch import expected_batch
from capacity_tui.engine.estimate import ResolvedPlan
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import Plan, all_fields, known_names, memory_searched, model_sizes, plan_layout

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
