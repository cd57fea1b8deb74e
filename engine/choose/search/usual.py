"""What a search varies where nobody says: what the plan leaves open, and the layout and settings of a training."""

from __future__ import annotations

from collections.abc import Container, Iterator

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.search.axes import choices_of
from capacity_tui.engine.choose.space.grid import Axis, divisors, powers_of_two
from capacity_tui.engine.choose.space.layouts import layout_axes
from capacity_tui.engine.estimate.resolve import ResolvedPlan
from capacity_tui.engine.plan.field_lists import memory_searched, model_sizes
from capacity_tui.engine.plan.layout_rules import plan_layout

LARGEST_MICRO_BATCH = 64
# Sequences are not cut into shorter pieces than this.
LEAST_TOKENS = 2048


def usual_fields() -> tuple[str, ...]:
    """Return the fields a search of training varies where nobody says, in the order of the plan file."""
    return tuple(dict.fromkeys((*memory_searched(), *model_sizes())))


def usual_axes(
    resolved: ResolvedPlan, wanted: Container[str], catalog: Catalog, batch: int | None = None
) -> Iterator[Axis]:
    """Yield the axes of fields whose values nobody gave.

    Args:
        resolved: the plan, with placeholders in these fields.
        wanted: their paths.
        catalog: facts.
        batch: sequences of a step, where the plan gives them.
    """
    shape, plan, cluster = resolved.shape, resolved.plan, resolved.cluster
    devices = int(cluster.devices)
    if "training.checkpointing" in wanted:
        yield Axis("training.checkpointing", choices_of("training.checkpointing", catalog))
    if "parallelism.offload" in wanted:
        yield Axis("parallelism.offload", choices_of("parallelism.offload", catalog))
    if "parallelism.zero" in wanted:
        yield Axis("parallelism.zero", choices_of("parallelism.zero", catalog) if devices > 1 else (0,))
    if "training.micro_batch" in wanted:
        yield Axis("training.micro_batch", powers_of_two(min(LARGEST_MICRO_BATCH, batch or LARGEST_MICRO_BATCH)))
    if shape is None:
        return
    layout = plan_layout(plan, shape, catalog)
    yield from layout_axes(layout, int(cluster.per_node), wanted)
    sizes = divisors(devices)
    if "parallelism.cp" in wanted:
        pieces = max(1, int(plan.training.seq_len) // LEAST_TOKENS)
        yield Axis("parallelism.cp", tuple(size for size in sizes if size <= pieces and size & (size - 1) == 0))
    if "parallelism.ep" in wanted:
        experts = int(layout.experts)
        yield Axis("parallelism.ep", tuple(size for size in divisors(experts) if size <= devices) if experts else (1,))
