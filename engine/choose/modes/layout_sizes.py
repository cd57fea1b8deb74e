"""The parallel sizes with which a plan can be laid out: what a step of one of them may land on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.modes.modes import with_placeholders
from capacity_tui.engine.choose.space.grid import divisors
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.plan import Plan, given_sizes, model_sizes, plan_layout, possible, with_following

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


def feasible_sizes(plan: Plan, path: str, catalog: Catalog, machine: Machine | None = None) -> tuple[int, ...]:
    """Return the values of one parallel size that leave a layout that can be, all other sizes as they are.

    Args:
        plan: the plan; its replicas follow from the other sizes.
        path: field of the size, such as ``parallelism.tp``.

    Returns:
        The values in order; none for other fields, for models that are not divided, and where the rest of the plan
        cannot be laid out.
    """
    if path not in model_sizes():
        return ()
    name = path.rpartition(".")[2]
    try:
        resolved = resolve_plan(with_placeholders(plan, catalog), catalog, machine)
    except CapacityError:
        return ()
    if resolved.shape is None:
        return ()
    layout = plan_layout(resolved.plan, resolved.shape, catalog)
    sizes = np.array(divisors(int(layout.devices)), dtype=np.float64)
    tried = replace(layout, **{name: sizes}, micro_batches=0.0, global_batch=0.0)
    tried = with_following(tried, given_sizes(plan.parallelism) - {"dp"})
    return tuple(int(size) for size in sizes[np.broadcast_to(possible(tried), sizes.shape)])
