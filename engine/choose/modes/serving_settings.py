"""Open fields of serving: the format of the weights, the layout of one replica, and the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows.modes import Mode
from capacity_tui.engine.choose.candidates import Choice, Flags, Floats, layouts
from capacity_tui.engine.choose.modes.filled import Reasons, Values, budget_text, memory_budget
from capacity_tui.engine.choose.modes.limits import largest_that_fits, serving_needs
from capacity_tui.engine.estimate.resolve import ResolvedPlan, resolve_plan
from capacity_tui.engine.estimate.serving.resolve import serving_run
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.plan.edit import with_values
from capacity_tui.engine.plan.layout_rules import plan_layout
from capacity_tui.engine.units import format_bytes

# Formats of weights to try, the least quantized first.
GGUF_FORMATS = ("f16", "q8_0", "q6_k", "q4_k_m", "q3_k_m", "q2_k")
FORMATS = ("bf16", "int8", "nf4")
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
    choices: tuple[Choice, ...]
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
) -> tuple[Values, Reasons]:
    """Return values and reasons: the least quantized weights that fit, the fewest devices, then the largest batch.

    Args:
        resolved: the plan with placeholders where it is open.
        shape: sizes of the model.
        wanted: paths of the open fields.
        replicas: replicas where the plan gives them.
        mode: whose figures decide.
        catalog: facts.
    """
    device, budget = resolved.cluster.device, memory_budget(mode, resolved.cluster)
    capacity = None if device.memory_bytes is None else float(np.max(device.memory_bytes))
    tried = [_tried(chosen, shape, wanted, replicas, catalog) for chosen in _formats(resolved, wanted, catalog)]
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
    if "inference.weights" in wanted:
        values["inference.weights"] = found.resolved.plan.inference.weights
        reasons["inference.weights"] = _weights_reason(found, place, bool(fitting), mode)
    layout = found.choices[place]
    why = _layout_reason(found, place, bool(fitting), mode, replicas)
    for path in ("parallelism.tp", "parallelism.pp"):
        if path in wanted:
            values[path], reasons[path] = layout[path], why
    if "inference.batch" in wanted:
        run = _spread(serving_run(found.resolved.plan, shape, resolved.cluster, catalog), (layout,), replicas)
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


def _formats(resolved: ResolvedPlan, wanted: Sequence[str], catalog: Catalog) -> list[ResolvedPlan]:
    """Return the plan in each format of weights that may be chosen."""
    if "inference.weights" not in wanted:
        return [resolved]
    names = GGUF_FORMATS if resolved.plan.inference.engine == "llamacpp" else FORMATS
    plans = (with_values(resolved.plan, {"inference.weights": name}) for name in names)
    return [resolve_plan(plan, catalog, like=resolved) for plan in plans]


def _tried(
    resolved: ResolvedPlan, shape: TransformerShape, wanted: Sequence[str], replicas: int | None, catalog: Catalog
) -> Layouts:
    tensor, pipeline = "parallelism.tp" in wanted, "parallelism.pp" in wanted
    inside = int(resolved.cluster.direct_devices)
    choices = layouts(plan_layout(resolved.plan, shape, catalog), inside, tensor, pipeline, replicas, equal=False)
    needed, held = serving_needs(
        _spread(serving_run(resolved.plan, shape, resolved.cluster, catalog), choices, replicas)
    )
    size = (len(choices),)
    return Layouts(resolved, choices, np.broadcast_to(needed, size), np.broadcast_to(held, size))


def _spread(run: ServingRun, choices: Sequence[Choice], replicas: int | None) -> ServingRun:
    """Return the run in several layouts, as arrays."""
    tp, pp = (np.array([float(str(choice[f"parallelism.{name}"])) for choice in choices]) for name in ("tp", "pp"))
    dp = np.floor(run.cluster.devices / (tp * pp)) if replicas is None else float(replicas)
    return replace(run, tp=tp, pp=pp, dp=dp, etp=np.where(run.ep > 1, run.etp, tp))


def _weights_reason(tried: Layouts, place: int, fits: bool, mode: Mode) -> str:
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
    size = int(str(tried.choices[place]["parallelism.tp"])) * int(str(tried.choices[place]["parallelism.pp"]))
    copies = replicas or int(cluster.devices) // size
    said = f"fits with {chosen}: {there}, {copies} {'replica' if copies == 1 else 'replicas'}"
    if place == 0:
        return said
    first, least = _named(tried.choices[0]), float(tried.needed[0])
    if least > capacity:
        return f"does not fit with {first} ({format_bytes(least)}); {said}"
    return f"{first} ({format_bytes(least)}) does not stay inside {budget_text(mode, cluster)}; {said}"


def _named(choice: Choice) -> str:
    stages = int(str(choice["parallelism.pp"]))
    return f"TP {choice['parallelism.tp']}" + (f", PP {stages}" if stages > 1 else "")
