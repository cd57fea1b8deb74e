"""Open fields of serving transformers, by the goal of a mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Mode
from capacity_tui.engine.estimate import Constraint, ResolvedPlan, resolve_plan
from capacity_tui.engine.estimate.serving import limits_of, released_format
from capacity_tui.engine.keys import SERVING, Figure, Key
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import Number, largest
from capacity_tui.engine.plan import Plan, plan_layout, with_values
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes.mode_plan import Reasons, budget_text, memory_budget
from capacity_tui.engine.solve.space.axes import Axis, Grid, Values, layout_axes, powers_of_two
from capacity_tui.engine.solve.space.configurations import serving_space
from capacity_tui.engine.solve.space.space import Block, Ranked, SpaceCache, best, over
from capacity_tui.engine.units import FP16_BITS, format_bytes, format_quantity, format_seconds

# Formats of weights to try, the least quantized first.
FORMATS = ("bf16", "int8", "nf4")
WEIGHTS, CACHE, BATCH = Key.INFERENCE_WEIGHTS, Key.INFERENCE_KV_CACHE, Key.INFERENCE_BATCH
TENSOR, PIPELINE = Key.PARALLELISM_TP, Key.PARALLELISM_PP
# Requests of one replica at once at most, where a mode sets no end; batches tried in one call between powers of two.
MOST_REQUESTS = 1024
POINTS = 16
LARGEST_BATCH = 256  # Sequences served at once where a mode sets no end (vLLM's default for max_num_seqs)
KEEPS_INSIDE, KEEPS, INSIDE, FITS, TOO_LARGE = 0.0, 1.0, 2.0, 3.0, 4.0  # Where settings stand before the goal counts
# Share by which a limit is missed at most, so that what has no end can be ranked.
BEYOND = 1e9


@dataclass(frozen=True, slots=True)
class ServingChoice:
    """What a mode chooses from."""

    plan: Plan  # the plan as the user gave it
    shape: TransformerShape
    mode: Mode  # whose goal and share of memory decide
    catalog: Catalog
    cache: SpaceCache  # what was evaluated for other modes

    @property
    def goal(self) -> str:
        """What is chosen by: the fewest devices become the most answers where the plan limits latency."""
        by_devices = self.mode.serving.goal == "devices"
        return "throughput" if by_devices and limits_of(self.plan.inference) else self.mode.serving.goal

    @property
    def output_tokens(self) -> float:
        return float(self.plan.inference.output_tokens)

    @property
    def most(self) -> int:
        """Requests of one replica at most."""
        return int(self.mode.batch_range[1] or (LARGEST_BATCH if self.goal == "devices" else MOST_REQUESTS))

    def best_settings(self, resolved: ResolvedPlan, axes: Sequence[Axis]) -> tuple[Ranked, int] | None:
        """Return the best settings over some axes in one format, and how many there were; None where none can be."""
        space = serving_space(self.plan, resolved, self.shape, self.catalog, axes)
        blocks = tuple(self.cache.blocks(space))
        ranked = best(blocks, lambda block: self._order(block, resolved))
        return None if ranked is None else (ranked, sum(block.grid.count(block.feasible) for block in blocks))

    def refined(self, resolved: ResolvedPlan, ranked: Ranked) -> Ranked:
        """Return the best batch between a power of two and the next, for the layout of some settings."""
        low = int(str(ranked.values[BATCH]))
        high = min(2 * low - 1, self.most)
        layout = tuple(Axis(path, (value,)) for path, value in ranked.values.items() if path != BATCH)
        while True:
            batches = tuple(sorted({int(batch) for batch in np.ceil(np.linspace(low, high, POINTS))}))
            again = self.best_settings(resolved, (*layout, Axis(BATCH, batches)))
            assert again is not None  # noqa: S101 - the batch that was found is among them
            ranked = again[0]
            index = batches.index(int(str(ranked.values[BATCH])))
            after = batches[index + 1 : index + 2]
            low = batches[index]
            if not after or after[0] == low + 1:
                return ranked
            high = after[0] - 1

    def _order(self, block: Block, resolved: ResolvedPlan) -> tuple[Number, ...]:
        """Return what settings are chosen by, less being better: where they stand, then the mode's goal."""
        budget, reserved = memory_budget(self.mode, resolved.cluster), block.number(Figure.MEMORY_RESERVED_BYTES)
        fits = np.asarray(True) if block.fits is None else block.fits
        keeps, exceeded = np.asarray(True), np.asarray(0.0)
        for constraint in block.limits:
            if constraint.figure.startswith(f"{SERVING}."):
                keeps, exceeded = keeps & constraint.kept, exceeded + _excess(constraint)
            else:
                fits = fits & constraint.kept
        inside = fits & np.less_equal(reserved, np.inf if budget is None else budget)
        standing = np.where(keeps, np.where(inside, KEEPS_INSIDE, KEEPS), np.where(inside, INSIDE, FITS))
        standing = np.where(fits, standing, TOO_LARGE)
        excluded = np.greater(block.grid.numbers(BATCH), self.most) if block.grid.has(BATCH) else np.asarray(False)
        score = np.where(keeps & fits, self._by_goal(block), np.where(fits, exceeded, reserved))
        return np.where(excluded, np.inf, standing), score, *self._after_goal(block)

    def _by_goal(self, block: Block) -> Number:
        if self.goal == "latency":
            return request_seconds(block, self.output_tokens)
        if self.goal == "throughput":
            return -request_rate(block)
        return _along(block.grid, TENSOR) * _along(block.grid, PIPELINE)

    def _after_goal(self, block: Block) -> tuple[Number, ...]:
        """Return what settles the fewest devices: fewer stages, then the largest batch."""
        if self.goal != "devices":
            return ()
        return _along(block.grid, PIPELINE), -_along(block.grid, BATCH)


def choose_serving(
    plan: Plan,
    resolved: ResolvedPlan,
    shape: TransformerShape,
    wanted: tuple[str, ...],
    mode: Mode,
    catalog: Catalog,
    cache: SpaceCache,
) -> tuple[Values, Reasons]:
    """Return values and reasons for the open fields: the best by the mode's goal that fits and keeps the limits.

    Of few devices for a replica that is the least quantized weights, the fewest devices, then the largest batch.
    """
    choice = ServingChoice(plan, shape, mode, catalog, cache)
    axes = tuple(layout_axes(plan_layout(resolved.plan, shape, catalog), int(resolved.cluster.per_node), wanted))
    if BATCH in wanted:
        axes = (*axes, Axis(BATCH, powers_of_two(MOST_REQUESTS)))
    chosen: tuple[Ranked, ResolvedPlan] | None = None
    evaluated = 0
    for formatted in formats(resolved, wanted, catalog):
        settings = choice.best_settings(formatted, axes) or choice.best_settings(formatted, axes[len(axes) :])
        if settings is None:
            continue
        evaluated += settings[1]
        if chosen is None or _is_better(choice.goal, settings[0], formatted, *chosen):
            chosen = settings[0], formatted
    if chosen is None:
        return {}, {}
    ranked, formatted = chosen
    if BATCH in ranked.values and ranked.order[0] < TOO_LARGE:
        ranked = choice.refined(formatted, ranked)
    stored: dict[str, object] = {path: formatted.plan.value(path) for path in (WEIGHTS, CACHE) if path in wanted}
    values = {**ranked.values, **stored}
    return values, dict.fromkeys(values, _reason(choice, ranked, formatted, evaluated))


def formats(resolved: ResolvedPlan, wanted: Sequence[str], catalog: Catalog) -> Iterator[ResolvedPlan]:
    """Yield the plan in each format of weights and cache that may be chosen, what rounds least first."""
    engines = catalog.engine_rows(resolved.plan.inference.engine)
    weights: tuple[object, ...] = (resolved.plan.inference.weights,)
    caches: tuple[str, ...] = (resolved.plan.inference.kv_cache,)
    if WEIGHTS in wanted:
        formats = next((row.tried_weights for row in engines if row.tried_weights), FORMATS)
        published, _ = released_format(resolved.plan.model, catalog)
        most = _bits(published, catalog)
        lighter = (name for name in formats if name != published and _bits(name, catalog) <= most)
        weights = tuple(dict.fromkeys((published, *lighter)))
    if CACHE in wanted:
        caches = (*caches, *(row.lighter_cache for row in engines[:1] if row.lighter_cache))
    pairs = [(weight, cache) for weight in weights for cache in caches]
    if len(pairs) == 1:
        yield resolved
        return
    for weight, cache in pairs:
        yield resolve_plan(with_values(resolved.plan, {WEIGHTS: weight, CACHE: cache}), catalog, like=resolved)


def _bits(weights: str, catalog: Catalog) -> float:
    return catalog.quantizations.find(weights).bits_per_weight or FP16_BITS


def request_seconds(block: Block, output_tokens: float) -> Number:
    """Return the time from a request to its last token."""
    whole, first, token = map(
        block.value, (Figure.REQUEST_SECONDS, Figure.TIME_TO_FIRST_TOKEN_SECONDS, Figure.TIME_PER_OUTPUT_TOKEN_SECONDS)
    )
    if whole is not None or first is None:
        return block.number(Figure.STEP_SECONDS) if whole is None else whole
    return first if token is None else first + max(output_tokens - 1.0, 0.0) * token


def request_rate(block: Block) -> Number:
    """Return the requests that are answered a second; under a load those that could be."""
    most = block.value(Figure.LARGEST_REQUESTS_PER_SECOND)
    return block.number(Figure.REQUESTS_PER_SECOND) if most is None else most


def _is_better(goal: str, ranked: Ranked, formatted: ResolvedPlan, best_yet: Ranked, of: ResolvedPlan) -> bool:
    """Whether rounding more is worth it: where it stands better for it, of the cache also for the goal."""
    alike = formatted.plan.inference.weights == of.plan.inference.weights and goal != "devices"
    if alike or best_yet.order[0] == TOO_LARGE:
        return ranked.order < best_yet.order
    return ranked.order[0] < best_yet.order[0]


def _reason(choice: ServingChoice, ranked: Ranked, resolved: ResolvedPlan, evaluated: int) -> str:
    """Say what the settings were chosen by, and what they reach of it."""
    standing, budget = ranked.order[0], budget_text(choice.mode, resolved.cluster)
    needed = format_bytes(ranked.number(Figure.MEMORY_RESERVED_BYTES))
    if standing == TOO_LARGE:
        return f"no layout fits: of {evaluated} settings {_layout_words(ranked.values)} needs least, {needed} a device"
    if choice.goal == "devices":
        return _fewest_devices(choice, ranked, resolved, budget)
    words = "lowest request latency" if choice.goal == "latency" else "highest request throughput"
    seconds = float(over(request_seconds(ranked.block, choice.output_tokens), ranked.block.grid)[ranked.position])
    rate = float(over(request_rate(ranked.block), ranked.block.grid)[ranked.position])
    answered = format_quantity(rate, "requests/s")
    reached = (
        f"{format_seconds(seconds)} a request, {answered}" if np.isfinite(seconds) else f"{answered}, below the load"
    )
    limited = " and the latency limits" if limits_of(choice.plan.inference) else ""
    chosen_by = {
        KEEPS_INSIDE: f"{words} of {evaluated} settings within {budget}{limited}",
        KEEPS: f"nothing stays within {budget}{limited}; {words} of what fits",
        INSIDE: f"none of {evaluated} settings meets the latency limits; the nearest within {budget}",
        FITS: f"none of {evaluated} settings meets the latency limits within {budget}; the nearest",
    }
    return f"{chosen_by[standing]}: {reached}"


def _fewest_devices(choice: ServingChoice, ranked: Ranked, resolved: ResolvedPlan, budget: str) -> str:
    """Say which layout of one replica fits and, where it is not the smallest, why that one does not."""
    cluster, values, needed = resolved.cluster, ranked.values, ranked.number(Figure.MEMORY_RESERVED_BYTES)
    layout = _layout_words(values)
    if cluster.device.memory_bytes is None:
        return f"{layout}: no memory limit known"
    capacity = largest(cluster.device.memory_bytes)
    size = int(_size(values, TENSOR, resolved) * _size(values, PIPELINE, resolved))
    given = choice.plan.parallelism.dp
    copies = given if isinstance(given, int) else int(np.max(cluster.devices)) // max(size, 1)
    fits = (
        f"fits with {layout}: {format_bytes(needed)} of {format_bytes(capacity)} on each device, "
        f"{copies} {'replica' if copies == 1 else 'replicas'}"
    )
    if BATCH in values:
        fits = f"{fits}; as many sequences as fit within {budget}, up to the mode's end"
    smallest: Values = dict.fromkeys((path for path in (TENSOR, PIPELINE) if path in values), 1)
    if size == 1 or not smallest:
        return fits
    alone = choice.best_settings(resolved, [Axis(path, (1,)) for path in smallest])
    if alone is None:
        return fits
    least = alone[0].number(Figure.MEMORY_RESERVED_BYTES)
    if least > capacity:
        return f"does not fit with {_layout_words(smallest)} ({format_bytes(least)}); {fits}"
    return f"{_layout_words(smallest)} ({format_bytes(least)}) does not stay within {budget}; {fits}"


def _excess(constraint: Constraint) -> Number:
    """Return by which share of a limit it is missed, 0 where it holds; beyond all bounds where there is no figure."""
    if constraint.reached is None:
        return BEYOND
    value = constraint.reached.value
    over_most = 0.0 if constraint.most is None else np.maximum(value / constraint.most - 1.0, 0.0)
    under_least = (
        0.0 if constraint.least is None else np.maximum(constraint.least / np.maximum(value, 1e-300) - 1.0, 0.0)
    )
    return np.minimum(np.nan_to_num(over_most + under_least, nan=BEYOND), BEYOND)


def _layout_words(values: Values) -> str:
    stages = values.get(PIPELINE, 1)
    tensor = f"TP {values[TENSOR]}" if TENSOR in values else "the layout of the plan"
    return tensor if stages == 1 else f"{tensor}, PP {stages}"


def _size(values: Values, path: str, resolved: ResolvedPlan) -> float:
    return float(str(values.get(path, resolved.plan.value(path) or 1)))


def _along(grid: Grid, path: str) -> Number:
    return grid.numbers(path) if grid.has(path) else 1.0
