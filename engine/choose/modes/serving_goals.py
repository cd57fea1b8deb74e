"""Settings of serving by what they reach: the least latency, the most answers, the fewest devices inside limits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows.modes import Mode
from capacity_tui.engine.choose.modes.filled import Reasons, Values, budget_text
from capacity_tui.engine.choose.modes.serving_formats import chosen_formats, formats, laid_out, spread
from capacity_tui.engine.choose.modes.shares import memory_budget
from capacity_tui.engine.choose.space.excluded import held
from capacity_tui.engine.choose.space.grid import Axis, Floats, Grid, powers_of_two
from capacity_tui.engine.choose.space.layouts import layout_axes
from capacity_tui.engine.estimate.estimate import estimate_run
from capacity_tui.engine.estimate.resolve import ResolvedPlan
from capacity_tui.engine.estimate.result import InferenceSpeed
from capacity_tui.engine.estimate.serving.latency import limits_of, missed
from capacity_tui.engine.estimate.serving.resolve import serving_run
from capacity_tui.engine.estimate.serving.room import SEQUENCES
from capacity_tui.engine.models.transformer.shape import TransformerShape
from capacity_tui.engine.numeric import Flags, Number
from capacity_tui.engine.plan.layout_rules import plan_layout, refusing
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.units import format_quantity, format_seconds

# Requests of one replica that are tried at once at most, where a mode sets no end.
MOST_REQUESTS = 1024
# Batches that one call judges between two powers of two.
POINTS = 16
BATCH = "inference.batch"
# How good settings are before the goal counts: what keeps the limits inside the mode's memory, and what comes after it.
KEEPS_INSIDE, KEEPS, INSIDE, FITS, TOO_LARGE, IMPOSSIBLE = 5.0, 4.0, 3.0, 2.0, 1.0, 0.0


@dataclass(frozen=True, slots=True)
class Reached:
    """What settings in one format of weights and cache reach; arrays run over a flattened grid.

    Attributes:
        plan: the plan in this format.
        grid: layouts and batches.
        possible: which layouts can be.
        fits: which of them a device holds.
        needed: bytes of the fullest device.
        exceeded: by how much limits of latency are.
        batch: requests of a replica at once.
        request: seconds from a request to its last token.
        rate: requests answered a second, or that could be under a load.
    """

    plan: Plan
    grid: Grid
    possible: Flags
    fits: Flags
    needed: Floats
    exceeded: Floats
    batch: Floats
    request: Floats
    rate: Floats


@dataclass(frozen=True, slots=True)
class ServedSettings:
    """Settings that were evaluated for one mode, and serve the others of the same comparison as they are.

    Attributes:
        kept: what they reach; all of them on the same hardware.
    """

    kept: list[Reached] = field(default_factory=list)

    def over(self, resolved: ResolvedPlan, shape: TransformerShape, grid: Grid, facts: Facts) -> Reached:
        """Evaluate every setting of a grid in one call, unless that was done."""
        for each in self.kept:
            if (each.plan, each.grid) == (resolved.plan, grid):
                return each
        self.kept.append(_reached(resolved, shape, grid, facts))
        return self.kept[-1]


@dataclass(frozen=True, slots=True)
class Facts:
    """What stays the same from one grid to the next.

    Attributes:
        replicas: replicas where the plan gives them.
        catalog: facts.
    """

    replicas: int | None
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class Judged:
    """Settings as one mode ranks them.

    Attributes:
        reached: what they reach.
        tier: how good each is before the goal counts.
        score: what the goal counts, and where it does not count by how much limits or memory are exceeded.
    """

    reached: Reached
    tier: Floats
    score: Floats

    @property
    def place(self) -> int:
        """Where the best setting stands, the first of equals."""
        return int(np.lexsort((-np.arange(self.tier.size), self.score, self.tier))[-1])

    @property
    def rank(self) -> tuple[float, float]:
        """How good the best setting is."""
        return float(self.tier[self.place]), float(self.score[self.place])

    @property
    def values(self) -> Values:
        """The best setting."""
        return dict(self.reached.grid.at(self.place))


@dataclass(frozen=True, slots=True)
class Trials:
    """Evaluates settings, and ranks them as a mode does.

    Attributes:
        shape: sizes of the model.
        mode: whose goal and share of memory decide.
        facts: what stays the same.
        settings: what was evaluated for other modes.
    """

    shape: TransformerShape
    mode: Mode
    facts: Facts
    settings: ServedSettings = field(default_factory=ServedSettings)

    def over(self, resolved: ResolvedPlan, grid: Grid) -> Judged:
        """Rank every setting of a grid."""
        found = self.settings.over(resolved, self.shape, grid, self.facts)
        budget = memory_budget(self.mode, resolved.cluster)
        inside = found.fits & (found.needed <= (np.inf if budget is None else budget))
        keeps = found.exceeded <= 0
        tier = np.where(keeps, np.where(inside, KEEPS_INSIDE, KEEPS), np.where(inside, INSIDE, FITS))
        tier = np.where(found.fits, tier, TOO_LARGE)
        allowed = found.possible & ((found.batch <= self.most) | (not grid.has(BATCH)))
        goal = -found.request if self.mode.serving.goal == "latency" else found.rate
        score = np.where(keeps & found.fits, goal, np.where(found.fits, -found.exceeded, -found.needed))
        return Judged(found, np.where(allowed, tier, IMPOSSIBLE), score)

    def refined(self, resolved: ResolvedPlan, values: Values) -> Judged:
        """Return the best batch between a power of two and the next, for a layout."""
        low = int(str(values[BATCH]))
        high = min(2 * low - 1, self.most)
        layout = tuple(Axis(path, (value,)) for path, value in values.items() if path != BATCH)
        while True:
            batches = tuple(sorted({int(batch) for batch in np.ceil(np.linspace(low, high, POINTS))}))
            judged = self.over(resolved, Grid((*layout, Axis(BATCH, batches))))
            after = batches[judged.place + 1 : judged.place + 2]
            low = batches[judged.place]
            if not after or after[0] == low + 1:
                return judged
            high = after[0] - 1

    @property
    def most(self) -> int:
        """Requests of one replica at most."""
        return int(self.mode.batch_range[1] or MOST_REQUESTS)


def choose_by_goal(trials: Trials, resolved: ResolvedPlan, wanted: tuple[str, ...]) -> tuple[Values, Reasons]:
    """Return values and reasons for the open fields: the best by the mode's goal that fits and keeps the limits.

    Args:
        trials: evaluates settings.
        resolved: the plan with placeholders where it is open.
        wanted: paths of the open fields.
    """
    own = plan_layout(resolved.plan, trials.shape, trials.facts.catalog)
    axes = tuple(layout_axes(own, int(resolved.cluster.per_node), wanted))
    if BATCH in wanted:
        axes = (*axes, Axis(BATCH, powers_of_two(MOST_REQUESTS)))
    best: tuple[Judged, ResolvedPlan] | None = None
    tried = 0
    for each in formats(resolved, wanted, trials.facts.catalog):
        found = trials.over(each, Grid(axes))
        tried += int(np.count_nonzero(found.tier > IMPOSSIBLE))
        if best is None or _is_better(found, best[0]):
            best = found, each
    assert best is not None  # noqa: S101 - there always is one format
    found, chosen = best
    if BATCH in wanted and found.rank[0] > TOO_LARGE:
        found = trials.refined(chosen, found.values)
    values = {**found.values, **chosen_formats(chosen, wanted)}
    return values, dict.fromkeys(values, _reason(found, chosen, tried, trials.mode))


def _reached(resolved: ResolvedPlan, shape: TransformerShape, grid: Grid, facts: Facts) -> Reached:
    inference = resolved.plan.inference
    sizes = {name: grid.numbers(f"parallelism.{name}") for name in ("tp", "pp") if grid.has(f"parallelism.{name}")}
    layout = spread(plan_layout(resolved.plan, shape, facts.catalog), sizes, facts.replicas)
    run = laid_out(serving_run(resolved.plan, shape, resolved.cluster, facts.catalog), layout)
    if grid.has(BATCH):
        run = replace(run, batch=grid.numbers(BATCH))
    found = estimate_run(run, resolved.plan)
    memory, speed = found.memory, found.computation.infer
    assert speed is not None  # noqa: S101 - all that is served has speeds

    def over_grid(value: Number | Flags) -> Floats:
        return np.broadcast_to(np.asarray(value, dtype=np.float64), grid.shape).ravel()

    holds: Flags = np.asarray(True) if memory.held is None else memory.held
    if not run.traffic.comes_singly:
        holds = holds & np.asarray(found.details.get(SEQUENCES, np.inf) >= run.batch)
    return Reached(
        resolved.plan,
        grid,
        over_grid(held(layout, refusing())) > 0,
        over_grid(holds) > 0,
        over_grid(memory.reserved_bytes.value),
        over_grid(missed(inference, speed)),
        over_grid(run.batch),
        over_grid(_request_seconds(speed, run.output)),
        over_grid(_rate(speed)),
    )


def is_limited(resolved: ResolvedPlan) -> bool:
    """Whether a plan sets limits of latency."""
    return bool(limits_of(resolved.plan.inference))


def _is_better(found: Judged, best: Judged) -> bool:
    """Whether rounding more is worth it: of weights where that makes it fit alone, of the cache also for the goal."""
    alike = found.reached.plan.inference.weights == best.reached.plan.inference.weights
    return found.rank > best.rank if alike or best.rank[0] <= TOO_LARGE else found.rank[0] > best.rank[0]


def _request_seconds(speed: InferenceSpeed, output: Number) -> Number:
    """Return the time from a request to its last token."""
    if speed.request_seconds is not None:
        return speed.request_seconds.value
    first, each = speed.time_to_first_token_seconds, speed.time_per_output_token_seconds
    return first.value if each is None else first.value + np.maximum(output - 1.0, 0.0) * each.value


def _rate(speed: InferenceSpeed) -> Number:
    """Return the requests that are answered a second; under a load those that could be."""
    most = speed.largest_requests_per_second
    return (speed.requests_per_second if most is None else most).value


def _reason(found: Judged, resolved: ResolvedPlan, tried: int, mode: Mode) -> str:
    """Say what the settings were chosen by, and what they reach of it."""
    place, reached_there = found.place, found.reached
    words = "least time of a request" if mode.serving.goal == "latency" else "most answers a second"
    rate = format_quantity(float(reached_there.rate[place]), "requests/s")
    seconds = float(reached_there.request[place])
    reached = f"{format_seconds(seconds)} a request, {rate}" if np.isfinite(seconds) else f"{rate}, fewer than arrive"
    inside = f"inside {budget_text(mode, resolved.cluster)}"
    kept = " and the limits of latency" if is_limited(resolved) else ""
    said = {
        KEEPS_INSIDE: f"{words} of {tried} settings {inside}{kept}",
        KEEPS: f"nothing stays {inside}{kept}; {words} of what fits",
        INSIDE: f"nothing of {tried} settings keeps the limits of latency; this comes nearest {inside}",
        FITS: f"nothing of {tried} settings keeps the limits of latency {inside}; this comes nearest",
    }
    return f"{said.get(float(found.tier[place]), f'nothing of {tried} settings fits; this needs least')}: {reached}"
