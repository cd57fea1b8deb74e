"""Open fields of serving: the format of the weights, the layout of one replica, and the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows.modes import Mode
from capacity_tui.engine.choose.modes.filled import Reasons, Values, budget_text
from capacity_tui.engine.choose.modes.limits import largest_that_fits, serving_needs
from capacity_tui.engine.choose.modes.serving_formats import chosen_formats, formats, laid_out, spread
from capacity_tui.engine.choose.modes.serving_goals import Facts, ServedSettings, Trials, choose_by_goal, is_limited
from capacity_tui.engine.choose.modes.shares import memory_budget
from capacity_tui.engine.choose.space.excluded import held
from capacity_tui.engine.choose.space.grid import Floats, Grid
from capacity_tui.engine.choose.space.layouts import layout_axes
from capacity_tui.engine.estimate.resolve import ResolvedPlan
from capacity_tui.engine.estimate.serving.resolve import serving_run
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.models.transformer.shape import TransformerShape
from capacity_tui.engine.numeric import Flags
from capacity_tui.engine.plan.layout_rules import plan_layout, refusing
from capacity_tui.engine.units import format_bytes

# Sequences served at once where a mode sets no end (vLLM's default for max_num_seqs).
LARGEST_BATCH = 256


@dataclass(frozen=True, slots=True)
class Layouts:
    """Layouts of one replica with the memory that each needs; arrays run over layouts.

    Attributes:
        resolved: the plan, in one format of weights.
        choices: tensor- and pipeline-parallel sizes, the fewest devices first.
        needed: bytes of the fullest device.
        held: whether the cache holds the batch inside the share of memory that the engine takes.
    """

    resolved: ResolvedPlan
    choices: tuple[Mapping[str, int], ...]
    needed: Floats
    held: Flags

    def smallest_within(self, limit: float | None) -> int | None:
        """Return the place of the first layout inside a limit in bytes; None where there is none."""
        if limit is None:
            return 0
        inside = self.held & (self.needed <= limit)
        return int(np.argmax(inside)) if inside.any() else None


def choose_serving(
    resolved: ResolvedPlan,
    shape: TransformerShape,
    wanted: tuple[str, ...],
    replicas: int | None,
    mode: Mode,
    catalog: Catalog,
    settings: ServedSettings,
) -> tuple[Values, Reasons]:
    """Return values and reasons: what the mode's goal asks for.

    Of few devices for a replica that is the least quantized weights, the fewest devices, then the largest batch.

    Args:
        resolved: the plan with placeholders where it is open.
        shape: sizes of the model.
        wanted: paths of the open fields.
        replicas: replicas where the plan gives them.
        mode: whose figures decide.
        catalog: facts.
        settings: what was evaluated for other modes.
    """
    if mode.serving.goal != "devices" or is_limited(resolved):
        return choose_by_goal(Trials(shape, mode, Facts(replicas, catalog), settings), resolved, wanted)
    device, budget = resolved.cluster.device, memory_budget(mode, resolved.cluster)
    capacity = None if device.memory_bytes is None else float(np.max(device.memory_bytes))
    tried = [_tried(chosen, shape, wanted, replicas, catalog) for chosen in formats(resolved, wanted, catalog)]
    # Inside the mode's share if anything is, else what fits at all, else what needs least.
    fitting = [
        (each, place)
        for limit in (budget, capacity)
        for each in tried
        if (place := each.smallest_within(limit)) is not None
    ]
    found, place = fitting[0] if fitting else (tried[-1], int(np.argmin(tried[-1].needed)))
    values: Values = {}
    reasons: Reasons = {}
    for path, name in chosen_formats(found.resolved, wanted).items():
        values[path], reasons[path] = name, _format_reason(found, place, bool(fitting), mode)
    layout = found.choices[place]
    why = _layout_reason(found, place, bool(fitting), mode, replicas)
    for path in ("parallelism.tp", "parallelism.pp"):
        if path in wanted:
            values[path], reasons[path] = layout[path], why
    if "inference.batch" in wanted:
        run = serving_run(found.resolved.plan, shape, resolved.cluster, catalog)
        sizes = {path.removeprefix("parallelism."): float(size) for path, size in layout.items()}
        run = laid_out(run, spread(plan_layout(found.resolved.plan, shape, catalog), sizes, replicas))
        limit = capacity if budget is not None and found.needed[place] > budget else budget
        batch = _largest_batch(run, limit, int(mode.batch_range[1] or LARGEST_BATCH))
        values["inference.batch"] = batch
        within = "no memory limit known" if limit is None else format_bytes(limit)
        reasons["inference.batch"] = f"as many sequences as fit into {within}, up to the mode's end"
    return values, reasons


def _largest_batch(run: ServingRun, limit: float | None, most: int) -> int:
    """Return the largest batch inside a limit in bytes; 1 where nothing fits."""

    def holds(batches: Floats) -> Flags:
        needed, held = serving_needs(replace(run, batch=batches))
        return held & (needed <= (np.inf if limit is None else limit))

    return largest_that_fits(holds, 1, most) or 1


def _tried(
    resolved: ResolvedPlan, shape: TransformerShape, wanted: Sequence[str], replicas: int | None, catalog: Catalog
) -> Layouts:
    """Return the layouts that can be, the fewest devices first; the plan's own where none can."""
    own = plan_layout(resolved.plan, shape, catalog)
    grid = Grid(tuple(layout_axes(own, int(resolved.cluster.per_node), wanted)))
    sizes = {axis.path.removeprefix("parallelism."): grid.numbers(axis.path) for axis in grid.axes}
    layout = spread(own, sizes, replicas)
    possible = np.broadcast_to(held(layout, refusing()), grid.shape)
    if not possible.any():
        grid, layout, possible = Grid(()), spread(own, {}, replicas), np.asarray(True)
    needed, holds = serving_needs(laid_out(serving_run(resolved.plan, shape, resolved.cluster, catalog), layout))
    tp, pp = (np.broadcast_to(np.asarray(size), grid.shape).ravel() for size in (layout.tp, layout.pp))
    order = np.array([place for place in np.lexsort((pp, tp * pp)) if possible.ravel()[place]], dtype=np.intp)
    return Layouts(
        resolved,
        tuple({"parallelism.tp": int(tp[place]), "parallelism.pp": int(pp[place])} for place in order),
        np.broadcast_to(needed, grid.shape).ravel()[order],
        np.broadcast_to(holds, grid.shape).ravel()[order],
    )


def _format_reason(tried: Layouts, place: int, fits: bool, mode: Mode) -> str:
    needed = format_bytes(float(tried.needed[place]))
    if not fits:
        return f"no format of the engine fits; this one needs least: {needed}"
    return f"least quantized format that stays inside {budget_text(mode, tried.resolved.cluster)}: {needed}"


def _layout_reason(tried: Layouts, place: int, fits: bool, mode: Mode, replicas: int | None) -> str:
    """Say which layout fits and, where it is not the smallest, why that one does not."""
    cluster = tried.resolved.cluster
    needed = format_bytes(float(tried.needed[place]))
    chosen = _named(tried.choices[place])
    if cluster.device.memory_bytes is None:
        return f"{chosen}: no memory limit known"
    capacity = float(np.max(cluster.device.memory_bytes))
    there = f"{needed} of {format_bytes(capacity)} on each device"
    if not fits:
        alone = len(tried.choices) == 1
        return f"does not fit with {chosen}: {there}" if alone else f"no layout fits; {chosen} needs least: {there}"
    size = tried.choices[place]["parallelism.tp"] * tried.choices[place]["parallelism.pp"]
    copies = replicas or int(cluster.devices) // size
    said = f"fits with {chosen}: {there}, {copies} {'replica' if copies == 1 else 'replicas'}"
    if place == 0:
        return said
    first, least = _named(tried.choices[0]), float(tried.needed[0])
    if least > capacity:
        return f"does not fit with {first} ({format_bytes(least)}); {said}"
    return f"{first} ({format_bytes(least)}) does not stay inside {budget_text(mode, cluster)}; {said}"


def _named(choice: Mapping[str, int]) -> str:
    stages = choice["parallelism.pp"]
    return f"TP {choice['parallelism.tp']}" + (f", PP {stages}" if stages > 1 else "")
