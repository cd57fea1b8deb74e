"""Open fields of training a transformer: the wish, and layout and settings that stay inside a mode's memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows.modes import Mode
from capacity_tui.engine.choose.modes.filled import Reasons, Values, budget_text
from capacity_tui.engine.choose.modes.shares import memory_budget
from capacity_tui.engine.choose.space.evaluations import Evaluations
from capacity_tui.engine.choose.space.grid import Axis, Grid, powers_of_two
from capacity_tui.engine.choose.space.layouts import layout_axes
from capacity_tui.engine.choose.space.ranking import top
from capacity_tui.engine.choose.space.training import Evaluated, TrainingSpace, training_space
from capacity_tui.engine.cluster.catalogue_devices import device_setting
from capacity_tui.engine.cluster.cluster import Cluster, Device
from capacity_tui.engine.estimate.resolve import ResolvedPlan, resolve_plan
from capacity_tui.engine.models.transformer.parameters import count_parameters
from capacity_tui.engine.numeric import Flags, Number
from capacity_tui.engine.plan.edit import with_values
from capacity_tui.engine.plan.field_lists import open_jobs
from capacity_tui.engine.plan.layout_rules import EQUAL_STAGES, LayoutRule, plan_layout
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.units import format_bytes, format_count

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine

# What is tried of each open field: what recomputes less first.
CHECKPOINTING = ("none", "selective-ops", "full")
OFFLOAD = ("none", "optimizer")
ZERO_STAGES = (0, 1, 2, 3)
LARGEST_MICRO_BATCH = 64
# A micro-batch of the mode's range is worth this share of speed (this program's choice).
BATCH_WORTH = 0.05
# Ranks any setting that does not fit behind all that do.
OUT_OF_REACH = 1e30


@dataclass(frozen=True, slots=True)
class Searched:
    """The settings a search chose.

    Attributes:
        values: what was chosen.
        reasons: why.
        inside: whether they stay inside the mode's memory.
        fits: whether they fit the device and its host at all.
        needed: bytes of the fullest device.
        step_seconds: time of a step.
    """

    values: Values
    reasons: Reasons
    inside: bool
    fits: bool
    needed: float
    step_seconds: float


@dataclass(frozen=True, slots=True)
class Search:
    """What stays the same from one search to the next.

    Attributes:
        plan: the plan as the user gave it.
        resolved: the same with placeholders where it is open.
        mode: whose figures decide.
        catalog: facts.
        machine: the detected machine, where there is one.
        evaluations: spaces that other modes evaluated.
    """

    plan: Plan
    resolved: ResolvedPlan
    mode: Mode
    catalog: Catalog
    machine: Machine | None
    evaluations: Evaluations = field(default_factory=Evaluations)

    def before(self, wanted: tuple[str, ...]) -> tuple[Values, Reasons]:
        """Choose what memory does not decide: precision and sequence."""
        values: Values = {}
        reasons: Reasons = {}
        device, shape = self.resolved.cluster.device, self.resolved.shape
        if "training.precision" in wanted:
            values["training.precision"], reasons["training.precision"] = _precision(device, self.catalog)
        if "training.seq_len" in wanted:
            context = 0.0 if shape is None else float(shape.max_context)
            upper = self.mode.sequence_range[1] or 2 * (self.mode.sequence_range[0] or 1024)
            values["training.seq_len"] = int(min(upper, context or upper))
            reasons["training.seq_len"] = f"upper end of the mode's range, within a context of {context:,.0f}"
        return values, reasons

    def settings(self, base: Values, wanted: tuple[str, ...]) -> Searched:
        """Choose the fastest settings that stay inside the mode's memory.

        Args:
            base: values besides the plan's own, which the search leaves alone.
            wanted: paths of the fields it may set.
        """
        resolved = resolve_plan(with_values(self.resolved.plan, base), self.catalog, self.machine, self.resolved)
        space = self._space(resolved, wanted)
        (found,) = top(self.evaluations.blocks(space), lambda block: _score(block, resolved.cluster, self.mode))
        inside, fits = (bool(flags) for flags in _standing(found.result, resolved.cluster, self.mode))
        values: Values = dict(found.values)
        if space.replica_batch is not None:
            values["training.global_batch"] = _global_batch(values, resolved.plan, space.replica_batch)
        training, counts = self.plan.training, count_parameters(space.shape)
        if "training.tokens" in wanted and not (training.steps or training.epochs):
            values["training.tokens"] = float(counts.total) * self.mode.tokens_per_parameter
        if isinstance(self.plan.parallelism.dp, int):
            values["parallelism.dp"] = self.plan.parallelism.dp
        tried = replace(space, grid=_within(space.grid, self.mode)).count
        reasons = _reasons(values, wanted, tried, found.result, inside, resolved.cluster, self.mode)
        needed, seconds = float(found.result.reserved_bytes), float(found.result.step_seconds)
        return Searched({**base, **values}, reasons, inside, fits, needed, seconds)

    def _space(self, resolved: ResolvedPlan, wanted: tuple[str, ...]) -> TrainingSpace:
        """Return what to try for every open field that memory and speed decide; the plan's layout where no other is."""
        assert resolved.shape is not None  # noqa: S101 - only transformers come here
        layout = plan_layout(resolved.plan, resolved.shape, self.catalog)
        sizes = tuple(layout_axes(layout, int(resolved.cluster.per_node), wanted))
        others = tuple(self._axes(resolved, wanted))
        replica_batch = self.mode.replica_batch if "training.global_batch" in wanted else None

        def over(axes: Iterable[Axis], *besides: LayoutRule) -> TrainingSpace:
            shape = resolved.shape
            assert shape is not None  # noqa: S101 - only transformers come here
            return training_space(self.plan, resolved, shape, self.catalog, axes, *besides, replica_batch=replica_batch)

        if not sizes:
            return over(others)
        group = _sharding_group(self.plan.parallelism.shard or 1)
        for besides in ((EQUAL_STAGES, group), (EQUAL_STAGES,)):
            space = over((*others, *sizes), *besides)
            if space.grid.size:
                return space
        return replace(over(others), rules=())

    def _axes(self, resolved: ResolvedPlan, wanted: tuple[str, ...]) -> Iterator[Axis]:
        """Yield the axes of open fields besides the layout's."""
        if "training.checkpointing" in wanted:
            yield Axis("training.checkpointing", CHECKPOINTING)
        if "parallelism.offload" in wanted:
            yield Axis("parallelism.offload", OFFLOAD)
        if "parallelism.zero" in wanted:
            yield Axis("parallelism.zero", ZERO_STAGES if resolved.cluster.devices > 1 else ZERO_STAGES[:1])
        if "training.micro_batch" in wanted:
            most = max(_largest_micro_batch(mode) for mode in self.catalog.modes.values())
            batch = self.plan.training.global_batch
            if "training.global_batch" not in wanted and isinstance(batch, int):
                most = min(most, max(1.0, batch / float(resolved.plan.parallelism.dp or 1)))
            yield Axis("training.micro_batch", powers_of_two(most))


def _precision(device: Device, catalog: Catalog) -> tuple[str, str]:
    """Return the type that suits a device's generation, else the widest of 16 bits that it runs natively, and why."""
    suits, native = device_setting("precision", device, catalog), device.native("bf16")
    if suits is not None and suits.value in device.peaks:
        return suits.value, suits.reason
    if native == "fp32":
        return native, f"{device.name} has no 16-bit matrix units"
    return native, f"widest range of the 16-bit types {device.name} runs natively"


def _largest_micro_batch(mode: Mode) -> float:
    return mode.batch_range[1] or LARGEST_MICRO_BATCH


def _within(grid: Grid, mode: Mode) -> Grid:
    """Return the grid without micro-batches that are larger than a mode's."""
    most = _largest_micro_batch(mode)

    def of(axis: Axis) -> Axis:
        if axis.path != "training.micro_batch":
            return axis
        return Axis(axis.path, tuple(value for value in axis.values if float(str(value)) <= most))

    return Grid(tuple(map(of, grid.axes)))


def _global_batch(values: Values, plan: Plan, replica_batch: float) -> int:
    """Return the sequences of a step for the chosen layout and micro-batch."""

    def chosen(path: str) -> int:
        return int(str(values.get(path, plan.value(path))))

    model = chosen("parallelism.tp") * chosen("parallelism.pp") * plan.parallelism.cp
    replicas = max(1, int(plan.hardware.devices or 1) // model)
    return int(replicas * max(replica_batch, chosen("training.micro_batch")))


def _sharding_group(ranks: int) -> LayoutRule:
    """Return the rule that a layout leaves as many replicas as a given sharding group has."""
    return LayoutRule(
        "sharding_group",
        "fewer replicas than the sharding group has ranks",
        "{tp} x {pp}, devices {devices}",
        "lower parallelism.shard",
        "parallelism.shard",
        lambda layout: np.asarray(layout.tp * layout.pp * ranks <= layout.devices),
        refuses=False,
    )


def _standing(found: Evaluated, cluster: Cluster, mode: Mode) -> tuple[Flags, Flags]:
    """Return which settings stay inside a mode's memory, and which fit the device and its host at all.

    The allocator also keeps room for fragmentation, or for a spike of the peak, whichever is larger.
    """
    capacity, budget = cluster.device.memory_bytes, memory_budget(mode, cluster)
    inside = fits = np.asarray(True)
    if budget is not None and capacity is not None:
        margin = max(mode.reserve.fragmentation, mode.reserve.spikes)
        room = np.less_equal(found.allocated_bytes * (1.0 + margin) + mode.reserve.context_gb * 1e9, capacity)
        inside = np.less_equal(found.reserved_bytes, budget) & (room | (cluster.device.kind == "cpu"))
        fits = np.less_equal(found.reserved_bytes, capacity)
    if cluster.host_memory_bytes is not None:
        there = float(np.max(cluster.host_memory_bytes))
        host = max(0.0, there - mode.reserve.system_gb * 1e9)
        inside = inside & np.less_equal(found.host_bytes, host * mode.utilization)
        fits = fits & np.less_equal(found.host_bytes, there)
    return inside, fits


def _score(block: Evaluated, cluster: Cluster, mode: Mode) -> Number:
    """Return what settings are chosen by.

    That is speed inside the mode's memory; where none stays inside, the least memory of those that fit, or of all.
    """
    inside, fits = _standing(block, cluster, mode)
    recomputed: Number = 0.0
    if block.grid.has("training.checkpointing"):
        recomputed = block.grid.along("training.checkpointing", lambda name: CHECKPOINTING.index(str(name)))
    # A hair less speed is worth less recomputation: settle ties, not differences.
    speed = block.units_per_second * (1.0 - 1e-6 * recomputed)
    score = np.where(inside, speed, -np.where(fits, 1.0, OUT_OF_REACH) * block.reserved_bytes)
    if not block.grid.has("training.micro_batch"):
        return score
    batches = block.grid.numbers("training.micro_batch")
    preferred = batches >= (mode.batch_range[0] or 1.0)
    score = np.where(inside & ~preferred, score * (1.0 - BATCH_WORTH), score)
    return np.where(batches <= _largest_micro_batch(mode), score, -np.inf)


def _reasons(
    values: Values,
    wanted: tuple[str, ...],
    tried: int,
    found: Evaluated,
    inside: bool,
    cluster: Cluster,
    mode: Mode,
) -> Reasons:
    """Say why each value was chosen, with the figures that decided."""
    limit = budget_text(mode, cluster)
    used = format_bytes(float(found.reserved_bytes))
    speed = format_count(float(found.units_per_second))
    verdict = f"fastest of {tried} settings that stay inside {limit}: {used}, {speed} tok/s"
    if not inside:
        verdict = f"nothing of {tried} settings stays inside {limit}; this needs least: {used}"
    reasons = dict.fromkeys((path for path in values if path in wanted and path not in open_jobs()), verdict)
    if "training.global_batch" in values:
        reasons["training.global_batch"] = f"{mode.replica_batch} sequences a replica, {mode.accumulation} accumulation"
    if "training.tokens" in values:
        ratio = f"{mode.tokens_per_parameter:g}"
        reasons["training.tokens"] = f"{ratio} tokens a parameter (Hoffmann et al. 2022; the mode's ratio)"
    return reasons
