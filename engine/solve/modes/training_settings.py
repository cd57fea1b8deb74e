"""Open fields of training a transformer: the wish, and layout and settings that stay inside a mode's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Mode
from capacity_tui.engine.cluster import Cluster, Device, device_setting
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate import ResolvedPlan, resolve_plan
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.models.transformer import count_parameters
from capacity_tui.engine.numeric import Number, largest
from capacity_tui.engine.plan import EQUAL_STAGES, LayoutRule, Plan, open_jobs, with_values
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes.mode_plan import Reasons, budget_text, memory_budget
from capacity_tui.engine.solve.space.axes import (
    LARGEST_MICRO_BATCH,
    Axis,
    Grid,
    Values,
    choices_of,
    open_axes,
    published_tokens,
)
from capacity_tui.engine.solve.space.configurations import TrainingSpace, training_space
from capacity_tui.engine.solve.space.space import Block, Ranked, SpaceCache, best
from capacity_tui.engine.units import format_bytes, format_count, format_number

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

RESERVED, ALLOCATED, HOST = Figure.MEMORY_RESERVED_BYTES, Figure.MEMORY_PER_DEVICE_BYTES, Figure.MEMORY_HOST_BYTES
STEP, SPEED = Figure.STEP_SECONDS, Figure.TOKENS_PER_SECOND
BATCH_WORTH = 0.05  # A micro-batch of the mode's range is worth this share of speed (this program's choice)
# Unequal pipeline stages have to be written down by hand: they are taken where they save this share of time (likewise).
SPLIT_WORTH = 0.10
# Memory that differs by less than this share is the same where least memory is wanted: the faster is taken then.
SAME_MEMORY = 0.01
# Larger micro-batches are not tried where a mode takes as many sequences as fit (likewise).
MOST_SEQUENCES = 256
INSIDE, FITS, TOO_LARGE = 0.0, 1.0, 2.0
"""Where settings stand: inside the mode's memory, inside the device and its host, or in neither."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The settings a search chose."""

    values: Values
    reasons: Reasons
    inside: bool  # whether they stay inside the mode's memory
    fits: bool  # whether they fit the device and its host at all
    needed: float  # bytes of the fullest device
    step_seconds: float


@dataclass(frozen=True, slots=True)
class Search:
    """What stays the same from one search to the next."""

    plan: Plan  # the plan as the user gave it
    resolved: ResolvedPlan  # the same with placeholders where it is open
    mode: Mode
    catalog: Catalog
    machine: Machine | None
    cache: SpaceCache = field(default_factory=SpaceCache)  # spaces that other modes evaluated

    def before(self, wanted: tuple[str, ...]) -> tuple[Values, Reasons]:
        """Choose what memory does not decide: precision and sequence."""
        values: Values = {}
        reasons: Reasons = {}
        device, shape = self.resolved.cluster.device, self.resolved.shape
        if Key.TRAINING_PRECISION in wanted:
            values[Key.TRAINING_PRECISION], reasons[Key.TRAINING_PRECISION] = chosen_precision(device, self.catalog)
        if Key.TRAINING_SEQ_LEN in wanted and shape is not None and shape.source_positions:
            values[Key.TRAINING_SEQ_LEN] = int(shape.source_positions)
            reasons[Key.TRAINING_SEQ_LEN] = "the sound that the model always reads"
        elif Key.TRAINING_SEQ_LEN in wanted:
            context = 0.0 if shape is None else float(shape.max_context)
            upper = self.mode.sequence_range[1] or 2 * (self.mode.sequence_range[0] or 1024)
            values[Key.TRAINING_SEQ_LEN] = int(min(upper, context or upper))
            reasons[Key.TRAINING_SEQ_LEN] = (
                f"upper end of the mode's range, within a context of {format_number(context)}"
            )
        return values, reasons

    def settings(self, base: Values, wanted: tuple[str, ...]) -> Searched:
        """Choose the fastest settings that stay inside the mode's memory."""
        resolved = resolve_plan(with_values(self.resolved.plan, base), self.catalog, self.machine, self.resolved)
        space, ranked = self._first_that_fits(resolved, wanted)
        standing, evaluated = ranked.order[0], space.count
        grows = standing == INSIDE and self.mode.batch_range[1] is None and Key.TRAINING_MICRO_BATCH in wanted
        if grows:
            space = _along_micro_batch(space, ranked)
            ranked = self._largest_batch(space, ranked)
        values: Values = space.settled(dict(ranked.values))
        training, counts = self.plan.training, count_parameters(space.shape)
        if Key.TRAINING_TOKENS in wanted and not (training.steps or training.epochs):
            values[Key.TRAINING_TOKENS] = float(counts.total) * self.mode.tokens_per_parameter
        if isinstance(self.plan.parallelism.dp, int):
            values[Key.PARALLELISM_DP] = self.plan.parallelism.dp
        needed, speed = ranked.number(RESERVED), format_count(ranked.number(SPEED))
        reached = f"{format_bytes(needed)}, {speed} tok/s"
        reasons = self._reasons(values, wanted, space, evaluated, standing == INSIDE, reached)
        if grows:
            limit = budget_text(self.mode, resolved.cluster)
            reasons[Key.TRAINING_MICRO_BATCH] = f"as many sequences as stay within {limit}: {reached}"
        return Searched(
            {**base, **values}, reasons, standing == INSIDE, standing < TOO_LARGE, needed, ranked.number(STEP)
        )

    def _first_that_fits(self, resolved: ResolvedPlan, wanted: tuple[str, ...]) -> tuple[TrainingSpace, Ranked]:
        """Return the first space with settings that fit, and its best; the first of all where none has any."""
        first: tuple[TrainingSpace, Ranked] | None = None
        spaces = self._spaces(resolved, wanted)
        for space in spaces:
            ranked = self._best(space, whole=True) or self._best(space, whole=False)
            if ranked is not None and ranked.order[0] < TOO_LARGE:
                return space, ranked
            first = first or (None if ranked is None else (space, ranked))
        if first is None:
            raise _nothing_possible(spaces[-1])
        return first

    def _spaces(self, resolved: ResolvedPlan, wanted: tuple[str, ...]) -> list[TrainingSpace]:
        """Return what to try for every open field that memory and speed decide, what a plan means the most first."""
        shape = resolved.shape
        assert shape is not None  # noqa: S101 - only transformers come here
        axes = tuple(open_axes(self.plan, resolved, wanted, self.mode.replica_batch, self.catalog))
        open_batch = self.mode.replica_batch if Key.TRAINING_GLOBAL_BATCH in wanted else None
        group = _sharding_group(self.plan.parallelism.shard or 1)

        def over(*besides: LayoutRule) -> TrainingSpace:
            return training_space(self.plan, resolved, shape, self.catalog, axes, *besides, replica_batch=open_batch)

        spaces = [over(group, rule) for rule in _sharing_states(self.plan.parallelism.zero)]
        spaces = [space for space in spaces if space.grid.size] or [over(group)]
        return spaces if spaces[0].grid.size else [over()]

    def _best(self, space: TrainingSpace, *, whole: bool) -> Ranked | None:
        """Return the fastest settings inside the mode's memory; where none is, the fastest of those that need least."""
        ranked = best(self.cache.blocks(space), lambda block: self._order(block, space, 0.0, whole=whole))
        if ranked is None or ranked.order[0] == INSIDE:
            return ranked
        most = ranked.number(RESERVED) * (1.0 + SAME_MEMORY)
        return best(self.cache.blocks(space), lambda block: self._order(block, space, most, whole=whole))

    def _order(self, block: Block, space: TrainingSpace, most: float, *, whole: bool) -> tuple[Number, ...]:
        """Return what settings are chosen by, less being better: where they stand, memory where it is short, time.

        Args:
            most: memory up to which all that is not inside the mode's counts the same.
            whole: whether a step has to be a whole number of micro-batches for each replica.
        """
        standing, reserved = self._standing(block, space.resolved.cluster), block.number(RESERVED)
        micro_batch = _along(block.grid, Key.TRAINING_MICRO_BATCH, lambda size: float(str(size)), 1.0)
        ways = choices_of(Key.TRAINING_CHECKPOINTING, self.catalog)
        recomputed = _along(block.grid, Key.TRAINING_CHECKPOINTING, lambda name: float(ways.index(name)), 0.0)
        # A hair less speed is worth less recomputation: settle ties, not differences.
        speed = block.number(SPEED) * (1.0 - 1e-6 * recomputed)
        preferred = np.greater_equal(micro_batch, self.mode.batch_range[0] or 1.0)
        speed = speed * np.where(np.equal(standing, INSIDE) & ~preferred, 1.0 - BATCH_WORTH, 1.0)
        speed = speed * np.where(EQUAL_STAGES.holds(space.layout(block.grid)), 1.0, 1.0 - SPLIT_WORTH)
        excluded = np.greater(micro_batch, self._largest_micro_batch)
        if whole:
            excluded = excluded | ~space.has_whole_steps(block.grid)
        short = np.where(np.equal(standing, INSIDE) | np.less_equal(reserved, most), 0.0, reserved)
        return np.where(excluded, np.inf, standing), short, -speed, reserved

    def _largest_batch(self, space: TrainingSpace, fastest: Ranked) -> Ranked:
        """Return the settings with the largest micro-batch inside the mode's memory that costs no notable speed."""
        least = fastest.number(SPEED) * (1.0 - BATCH_WORTH)

        def order(block: Block) -> tuple[Number, ...]:
            micro_batch = block.grid.numbers(Key.TRAINING_MICRO_BATCH)
            inside = np.equal(self._standing(block, space.resolved.cluster), INSIDE)
            good = inside & np.greater_equal(block.number(SPEED), least) & space.has_whole_steps(block.grid)
            return np.where(good, -micro_batch, np.inf), -block.number(SPEED)

        return best((block() for block in space.lazy_blocks()), order) or fastest

    def _standing(self, block: Block, cluster: Cluster) -> Number:
        """Return where settings stand: inside a mode's memory, inside the device and its host, or in neither.

        The allocator also keeps room for fragmentation, or for a spike of the peak, whichever is larger.
        """
        reserve, reserved, host_bytes = self.mode.reserve, block.number(RESERVED), block.number(HOST)
        capacity, budget = cluster.device.memory_bytes, memory_budget(self.mode, cluster)
        inside = fits = np.asarray(True)
        if budget is not None and capacity is not None:
            margin = max(reserve.fragmentation, reserve.spikes)
            peak = block.number(ALLOCATED) * (1.0 + margin) + reserve.context_gb * 1e9
            inside = np.less_equal(reserved, budget) & (np.less_equal(peak, capacity) | (cluster.device.is_processor))
            fits = np.less_equal(reserved, capacity)
        if cluster.host_memory_bytes is not None:
            there = largest(cluster.host_memory_bytes)
            host = max(0.0, there - reserve.system_gb * 1e9)
            inside = inside & np.less_equal(host_bytes, host * self.mode.utilization)
            fits = fits & np.less_equal(host_bytes, there)
        return np.where(inside & fits, INSIDE, np.where(fits, FITS, TOO_LARGE))

    @property
    def _largest_micro_batch(self) -> float:
        return self.mode.batch_range[1] or LARGEST_MICRO_BATCH

    def _reasons(
        self, values: Values, wanted: tuple[str, ...], space: TrainingSpace, evaluated: int, inside: bool, reached: str
    ) -> Reasons:
        """Say why each value was chosen, with the figures that decided."""
        limit = budget_text(self.mode, space.resolved.cluster)
        verdict = f"fastest of {format_number(evaluated)} settings that stay within {limit}"
        low, high = self.mode.batch_range
        if Key.TRAINING_MICRO_BATCH in wanted and high is None:
            verdict = f"within {100 * BATCH_WORTH:g} % of the {verdict}"
        elif Key.TRAINING_MICRO_BATCH in wanted and low is not None and low > 1:
            verdict += f", a micro-batch of {low:g} being worth {100 * BATCH_WORTH:g} %"
        verdict += f": {reached}"
        if not inside:
            least = f"the fastest of those that need least: {reached}"
            verdict = f"none of {format_number(evaluated)} settings stays inside {limit}; {least}"
        reasons = dict.fromkeys((path for path in values if path in wanted and path not in open_jobs()), verdict)
        if Key.TRAINING_GLOBAL_BATCH in values and space.batch is not None:
            reasons[Key.TRAINING_GLOBAL_BATCH] = _batch_reason(values, space, self.mode)
        if Key.TRAINING_TOKENS in values:
            ratio = f"{self.mode.tokens_per_parameter:g}"
            reasons[Key.TRAINING_TOKENS] = f"{ratio} tokens a parameter (Hoffmann et al. 2022; the mode's ratio)"
        return reasons


def chosen_precision(device: Device, catalog: Catalog) -> tuple[str, str]:
    """Return the type that suits a device's generation, else the widest of 16 bits that it runs natively, and why."""
    suits, native = device_setting("precision", device, catalog), device.native("bf16")
    if suits is not None and suits.value in device.peaks:
        return suits.value, suits.reason
    if native == "fp32":
        return native, f"{device.name} has no 16-bit matrix units"
    return native, f"widest range of the 16-bit types {device.name} runs natively"


def _batch_reason(values: Values, space: TrainingSpace, mode: Mode) -> str:
    """Say how the sequences of a step came about."""
    sequences, length = float(str(values[Key.TRAINING_GLOBAL_BATCH])), float(space.resolved.plan.training.seq_len)
    published = published_tokens(space.shape, space.catalog)
    tokens = f"{format_count(sequences * length)} tokens a step"
    if sequences * length > published:
        least = "the least that its layout takes, and more than published"
        return f"{tokens}: {least} for models of this size ({format_count(published)})"
    if space.batch is not None and sequences < mode.replica_batch * float(space.resolved.plan.hardware.devices or 1):
        return f"{tokens}: no more than published for models of this size ({format_count(published)})"
    if space.batch is not None and space.batch.follows:
        return f"whole micro-batches of every replica, {tokens}"
    return f"{mode.replica_batch} sequences a device, {tokens}"


def _nothing_possible(space: TrainingSpace) -> PlanError:
    """Return why no layout can use the devices, with what to change."""
    reasons = [rejection.words for rejection in space.excluded] or [
        "the global batch is no whole number of micro-batches"
    ]
    remedies = dict.fromkeys(rejection.rule.remedy for rejection in space.excluded if "{" not in rejection.rule.remedy)
    place = Place(field=space.excluded[0].rule.field if space.excluded else Key.TRAINING_GLOBAL_BATCH)
    hint = "; ".join((*remedies, "another number of devices, or a global batch that their replicas divide"))
    return PlanError("no layout can use these devices", "; ".join(reasons), hint, place)


def _along_micro_batch(space: TrainingSpace, settings: Ranked) -> TrainingSpace:
    """Return settings that differ in nothing but their micro-batch, which grows; an open batch follows it."""
    smallest = int(str(settings.values[Key.TRAINING_MICRO_BATCH]))
    sizes = tuple(range(smallest, MOST_SEQUENCES + 1))
    axes = tuple(
        Axis(axis.path, sizes if axis.path == Key.TRAINING_MICRO_BATCH else (settings.values[axis.path],))
        for axis in space.grid.axes
    )
    batch = None if space.batch is None else replace(space.batch, follows=True)
    return replace(space, grid=Grid(axes), batch=batch)


def _along(grid: Grid, path: str, number: Callable[[object], float], otherwise: float) -> Number:
    return grid.along(path, number) if grid.has(path) else otherwise


def _sharing_states(stage: int | str | None) -> Iterator[LayoutRule]:
    """Yield the rules of a ZeRO stage that a plan gives, the strictest first.

    States are spread over replicas then: those that split gradients too hold the model whole, and others are several.
    """
    if not isinstance(stage, int) or stage < 1:
        return
    sharing = LayoutRule(
        "shared_states",
        "no replicas that could share states",
        "{tp} x {pp}, devices {devices}",
        "lower parallelism.zero",
        Key.PARALLELISM_ZERO,
        lambda layout: np.asarray(layout.tp * layout.pp < layout.devices),
        refuses=False,
    )
    if stage > 1:
        yield replace(sharing, id="whole_replicas", holds=lambda layout: np.asarray(layout.tp * layout.pp == 1))
    yield sharing


def _sharding_group(ranks: int) -> LayoutRule:
    """Return the rule that a layout leaves as many replicas as a given sharding group has."""
    return LayoutRule(
        "sharding_group",
        "fewer replicas than the sharding group has ranks",
        "{tp} x {pp}, devices {devices}",
        "lower parallelism.shard",
        Key.PARALLELISM_SHARD,
        lambda layout: np.asarray(layout.tp * layout.pp * ranks <= layout.devices),
        refuses=False,
    )
