"""The cheapest fleet that serves a load inside its limits, and that fleet over a day: fixed, or scaled by the load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import monotonic

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.catalog.rows import Assumption
from capacity_tui.engine.estimate import equation, figures_of, formula
from capacity_tui.engine.fleet.options import Startup, assumed_startup
from capacity_tui.engine.fleet.serving.candidates import (
    Candidate,
    DayPrices,
    Unfit,
    candidates,
    day_prices,
    question_values,
)
from capacity_tui.engine.fleet.serving.question import DAY_SECONDS, LoadCurve, ServingQuestion, varying_requests
from capacity_tui.engine.fleet.serving.simulation import percentile_by, simulate
from capacity_tui.engine.fleet.serving.sizing import Replica, Sized, sized
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.plan import edited
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.solve.space import Floats
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS
from capacity_tui.engine.verdict import Verdict

# Moments of a day at which the autoscaler looks, one a minute; pieces of a day that are simulated side by side, and
# requests that are watched in all of them together.
MOMENTS, PIECES, WATCHED = 1440, 192, 40_000
HOURS = DAY_SECONDS / HOUR_SECONDS


wanted_replicas = formula()  # Replicas that a load needs


@equation
def day_usd(base: Number, paid: Floats, committed: Number, on_demand: Number) -> Number:
    beyond = np.maximum(paid - np.asarray(base)[..., None], 0.0)
    return np.asarray(base * committed * HOURS + beyond.mean(axis=-1) * on_demand * HOURS)


@dataclass(frozen=True, slots=True, eq=False)
class FleetDay:
    """One way to run the fleet over a day."""

    replicas: Floats  # ready at each moment
    paid: Floats  # paid for at each moment: those that start too
    usd: float | None  # dollars of the day on demand; None where no price is known
    # units that are best committed to, and what the day costs with them; None where no such price is known
    base: int | None
    usd_committed: float | None  # that cost
    kept: float  # share of the requests that keep the limits
    # first, per_token: seconds to the first token and of each token after it, at the percentile
    first: float
    per_token: float
    starts: int  # replicas that were started in the day


@dataclass(frozen=True, slots=True, eq=False)
class Day:
    """A fleet over a day."""

    load: LoadCurve  # requests a second over the day
    rates: Floats  # the same at each moment
    startup: Startup  # time until a new replica answers
    scale_down_seconds: float  # for which fewer must have been enough before a replica is given up
    reserve: float  # replicas beyond what the load needs, as a share
    prices: DayPrices  # of the instances
    fixed: FleetDay  # as many as the peak needs, all day
    scaled: FleetDay  # as many as an autoscaler has ready


def startup_of(candidate: Candidate, question: ServingQuestion, catalog: Catalog) -> Startup:
    """Return the time until a new replica answers: what was said, or the parts that are assumed."""
    startup_seconds = question.startup_seconds
    if startup_seconds is not None:
        return Startup(Interval.exactly(startup_seconds))
    weights = mean(candidate.filled.estimate.memory.parts["weights"]) * candidate.devices
    return assumed_startup(weights, catalog)


def ready_replicas(wanted: Floats, startup: float, delay: float) -> tuple[Floats, Floats]:
    """Return the replicas that are ready at each moment of a day that repeats itself, and those that are paid for.

    Args:
        wanted: replicas at each moment.
        startup: seconds from order to readiness.
        delay: seconds for which fewer must have been wanted before one is given up.
    """
    step = DAY_SECONDS / wanted.size
    paid = _largest_before(wanted, int(np.ceil(delay / step)))
    behind = int(np.ceil(startup / step))
    # What is ready was paid for all the time that a start takes.
    ready = -_largest_before(-paid, behind)
    return ready, paid


def _largest_before(values: Floats, steps: int) -> Floats:
    """Return the largest value of each moment and those before it, in a day that repeats itself."""
    window = min(steps, values.size - 1) + 1
    if window == 1:
        return values
    repeated = np.concatenate([values[-(window - 1) :], values])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(repeated, window).max(axis=1))


def over_day(replica: Replica, sized: Sized, load: LoadCurve, catalog: Catalog) -> Day:
    """Return a fleet over a day, fixed and with an autoscaler, each simulated."""
    question, candidate = replica.question, sized.candidate
    startup = startup_of(candidate, question, catalog)
    assumed = catalog.assumptions
    delay = _or(question.scale_down_seconds, assumed["scale-down-delay"])
    reserve = _or(question.reserve, assumed["replica-reserve"])
    rates = load.over_day(MOMENTS)
    wanted = np.asarray(wanted_replicas(rates, reserve, sized.rate))
    ready, paid = ready_replicas(_whole(wanted, candidate), mean(startup.seconds.value), delay)
    most = np.full(MOMENTS, float(_whole(np.array([float(sized.replicas["value"] or 1)]), candidate)[0]))
    prices = day_prices(candidate, catalog)
    fixed, scaled = (_run(replica, sized, rates, entry, prices) for entry in ((most, most), (ready, paid)))
    return Day(load, rates, startup, delay, reserve, prices, fixed, scaled)


def _or(value: float | None, row: Assumption) -> float:
    return row.value if value is None else value


def _whole(replicas: Floats, candidate: Candidate) -> Floats:
    """Return as many replicas as whole instances hold: they are rented whole."""
    return np.asarray(np.ceil(replicas / candidate.per_instance) * candidate.per_instance)


def _run(replica: Replica, sized: Sized, rates: Floats, replicas: tuple[Floats, Floats], prices: DayPrices) -> FleetDay:
    ready, paid = replicas
    stay, rate = replica.stay(sized.slots), rates / ready
    watched = min(DAY_SECONDS, WATCHED / float(rate.mean())) / PIECES
    requests = varying_requests(
        rate, DAY_SECONDS / MOMENTS, PIECES, watched, 2.0 * stay, stay, replica.lengths, replica.question.seed
    )
    slots = np.full(PIECES, sized.slots)
    seen = simulate(requests, replica.times, slots, np.ones(PIECES), np.ones(PIECES))
    question = replica.question
    kept = (seen.first <= (question.ttft or np.inf)) & (np.nan_to_num(seen.per_token) <= (question.tpot or np.inf))
    # A request of a time with many replicas stands for those of all of them.
    at = (
        (seen.replicas + 0.5) * (DAY_SECONDS / PIECES) + requests.arrivals[requests.counts] - 2.0 * stay - watched / 2.0
    )
    weights = ready[np.clip((at / DAY_SECONDS * MOMENTS).astype(np.int64), 0, MOMENTS - 1)]
    together = np.zeros(seen.first.size, np.int64)
    first, per_token = (
        float(percentile_by(values, together, 1, question.percentile)[0]) if values.size else 0.0
        for values in (seen.first, seen.per_token)
    )
    units, usd, committed = paid / sized.candidate.per_instance, prices.on_demand, prices.committed
    base, with_base = None, None
    if committed is not None and usd is not None:
        choices = np.unique(units)
        costs = np.asarray(day_usd(np.concatenate([[0.0], choices]), units[None, :], committed, usd))
        base, with_base = int(np.concatenate([[0.0], choices])[costs.argmin()]), float(costs.min())
    return FleetDay(
        replicas=ready,
        paid=paid,
        usd=None if usd is None else float(day_usd(0.0, units, 0.0, usd)),
        base=base,
        usd_committed=with_base,
        kept=float(np.average(kept, weights=weights)) if kept.size else 1.0,
        first=first,
        per_token=per_token,
        starts=int(np.maximum(np.diff(paid, append=paid[:1]), 0).sum()),
    )


MOST_SIMULATED = 4  # Kinds of replicas that are simulated at most, the least cost for each request at first


usd_per_million_tokens = formula()


@dataclass(frozen=True, slots=True)
class PlannedFleet:
    """A fleet as a plan: what planning makes of it in the steady state, beside what was simulated."""

    set: Mapping[str, object]  # the change that makes the plan of the question this one
    verdict: Verdict
    figures: Mapping[str, Interval]


@dataclass(frozen=True, slots=True, eq=False)
class ServingAnswer:
    """What serves a load."""

    question: ServingQuestion
    best: Sized | None  # the cheapest fleet that keeps the limits; None where none does
    others: tuple[Sized, ...]  # the other fleets that do, cheapest first
    failing: tuple[Candidate, ...]  # kinds of replicas of which not even a single request keeps the limits
    unfit: tuple[Unfit, ...]  # hardware that does not hold the model
    # kinds of replicas that cannot be cheaper, or were not simulated since too many are
    left_out: tuple[Candidate, ...]
    planned: PlannedFleet | None  # the best fleet as a plan; None where none keeps the limits
    day: Day | None  # the best fleet over a day; None where the load does not vary
    seconds: float

    @property
    def usd_per_million_tokens(self) -> float | None:
        """Dollars for a million tokens, read and written, at the rate asked about."""
        return self._usd(with_prompts=True)

    @property
    def usd_per_million_output_tokens(self) -> float | None:
        """Dollars for a million tokens of answers."""
        return self._usd(with_prompts=False)

    def _usd(self, *, with_prompts: bool) -> float | None:
        if self.best is None or self.best.usd_per_hour is None:
            return None
        run = self.best.candidate.run
        tokens = mean(run.output) + (mean(run.prompt) if with_prompts else 0.0)
        return mean(usd_per_million_tokens(self.best.usd_per_hour, self.question.rate, tokens))


def serve(
    question: ServingQuestion,
    catalog: Catalog | None = None,
    machine: Machine | None = None,
    stopped: Callable[[], bool] = lambda: False,
    callback: Callable[[str], None] | None = None,
) -> ServingAnswer:
    """Return the cheapest fleet that serves a load inside its limits.

    Args:
        stopped: asked between kinds of replicas; what was found by then is the answer.
        callback: gets what is at work, in words.

    Raises:
        CapacityError: the question makes no sense, or the plan serves no requests.
    """
    question.check()
    facts, begun = catalog or load_catalog(), monotonic()
    tell = callback or (lambda _: None)
    result, unfit = candidates(question, facts, machine, tell, stopped)
    fleets: list[tuple[Sized, Replica]] = []
    failing: list[Candidate] = []
    left_out: list[Candidate] = []
    seen: list[tuple[Replica, Sized | None]] = []
    for candidate in result:
        cheapest = min((_usd(fleet) for fleet, _ in fleets), default=np.inf)
        beyond = np.isfinite(cheapest) and candidate.usd_per_request_rate * question.rate >= cheapest
        known = next((pair for pair in seen if _has_same_times(pair[0].candidate, candidate)), None)
        if beyond or stopped() or (known is None and len(seen) >= MOST_SIMULATED):
            left_out.append(candidate)
            continue
        if known is None:
            tell(
                f"simulating {candidate.devices} x {candidate.instance}, {len(seen)} of at most {MOST_SIMULATED} done, "
                f"{len(fleets)} fleets keep the limits so far; ctrl-c stops"
            )
            replica = Replica(candidate, question)
            known = replica, sized(replica)
            seen.append(known)
        if known[1] is None:
            failing.append(candidate)
        else:
            fleets.append((replace(known[1], candidate=candidate), known[0]))
    fleets.sort(key=lambda pair: (_usd(pair[0]), pair[0].replicas["value"] or 0))
    day = None
    if fleets and question.load is not None:
        best, replica = fleets[0]
        tell(f"simulating a day of {best.candidate.instance}")
        day = over_day(replica, best, question.load.scaled(question.rate), facts)
    return ServingAnswer(
        question=question,
        best=fleets[0][0] if fleets else None,
        others=tuple(fleet for fleet, _ in fleets[1:]),
        failing=tuple(failing),
        unfit=tuple(unfit),
        left_out=tuple(left_out),
        planned=_planned(question, fleets[0][0], facts, machine) if fleets else None,
        day=day,
        seconds=monotonic() - begun,
    )


def _planned(question: ServingQuestion, fleet: Sized, catalog: Catalog, machine: Machine | None) -> PlannedFleet:
    candidate = fleet.candidate
    layout = candidate.filled.plan.parallelism
    replicas = fleet.replicas["value"] or 1
    changed = {path: value for path, value in question_values(question).items() if value != question.plan.value(path)}
    change = {
        **changed,
        Key.HARDWARE_NAME: candidate.instance,
        Key.HARDWARE_DEVICES: candidate.devices * replicas,
        Key.PARALLELISM_TP: layout.tp,
        Key.PARALLELISM_PP: layout.pp,
        Key.PARALLELISM_DP: replicas,
    }
    filled = fill(edited(question.plan, change, catalog).plan, "balanced", machine, catalog)
    return PlannedFleet(change, filled.estimate.verdict, figures_of(filled.estimate))


def _usd(fleet: Sized) -> float:
    return np.inf if fleet.usd_per_hour is None else fleet.usd_per_hour


def _has_same_times(one: Candidate, other: Candidate) -> bool:
    """Whether two kinds of replicas take the same time for everything, whoever rents them out."""
    same = one.devices == other.devices and one.slots == other.slots and one.largest_rate == other.largest_rate
    mine, others = one.filled.resolved.cluster, other.filled.resolved.cluster
    return same and mine.device == others.device and (one.answering.high == other.answering.high)
