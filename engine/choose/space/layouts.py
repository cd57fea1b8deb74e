"""The sizes a layout may have, as axes."""

from __future__ import annotations

from collections.abc import Container, Iterator

from capacity_tui.engine.choose.space.grid import Axis, Grid, divisors
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import AUTO, FOLLOWING, Layout, Plan, given_sizes

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
    own = given_sizes(plan.parallelism)
    sizes: dict[str, Number] = {name: float(getattr(plan.parallelism, name)) for name in own}
    if plan.parallelism.interleave != AUTO:
        sizes["interleave"] = float(plan.parallelism.interleave)
    return sizes | {LAYOUT_SIZES[axis.path]: grid.numbers(axis.path) for axis in grid.axes if axis.path in LAYOUT_SIZES}
