"""The sizes a layout may have, as axes."""

from __future__ import annotations

from collections.abc import Container, Iterator

from capacity_tui.engine.choose.space.grid import Axis, divisors
from capacity_tui.engine.plan.layout_rules import Layout

# Deeper pipelines are not tried.
MOST_STAGES = 64


def layout_axes(layout: Layout, inside: int, wanted: Container[str]) -> Iterator[Axis]:
    """Yield the axes of the open sizes of a layout: tensor parallelism, and pipeline stages.

    Args:
        layout: the plan's.
        inside: devices of a node, which tensor parallelism stays in; software that spreads whole layers has none.
        wanted: paths of the open fields.
    """
    sizes = divisors(int(layout.devices))
    if "parallelism.tp" in wanted:
        most = inside if layout.splits_layers else 1
        yield Axis("parallelism.tp", tuple(size for size in sizes if size <= most))
    if "parallelism.pp" in wanted:
        most = min(int(layout.layers), MOST_STAGES)
        yield Axis("parallelism.pp", tuple(size for size in sizes if size <= most))
