"""A fleet over a day: as many replicas as the peak needs, or as many as an autoscaler has ready at each moment."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Assumption
from capacity_tui.engine.estimate import equation
from capacity_tui.engine.fleet.options import Startup, assumed_startup
from capacity_tui.engine.fleet.serving.candidates import Candidate, DayPrices, day_prices
from capacity_tui.engine.fleet.serving.question import DAY_SECONDS, LoadCurve, ServingQuestion, varying_requests
from capacity_tui.engine.fleet.serving.simulation import percentile_by, simulate
from capacity_tui.engine.fleet.serving.sizing import Replica, Sized
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.space import Floats
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS

# Moments of a day at which the autoscaler looks, one a minute; pieces of a day that are simulated side by side, and
# requests that are watched in all of them together.
MOMENTS, PIECES, WATCHED = 1440, 192, 40_000
# Hours of a day.
HOURS = DAY_SECONDS / HOUR_SECONDS


@equation(
    "wanted = ceil(rate · (1 + reserve) / kept)",
    unit="replicas",
    source="each replica keeps its limits up to a rate; the reserve is there while others start",
)
def wanted_replicas(rate: Number, reserve: Number, kept: Number) -> Number:
    """Replicas that a load needs.

    Args:
        rate: requests that arrive in a second.
        reserve: replicas beyond what the load needs, as a share.
        kept: requests a second up to which a replica keeps its limits.
    """
    return np.maximum(np.ceil(rate * (1.0 + reserve) / kept), 1.0)


@equation(
    "usd = base · committed · 24 + sum(max(paid - base, 0) · on_demand · hours)",
    unit="USD",
    source="what always runs is paid for by a commitment, what comes and goes on demand",
    units={"committed": "USD", "on_demand": "USD"},
)
def day_usd(base: Number, paid: Floats, committed: Number, on_demand: Number) -> Number:
    """Dollars of a day.

    Args:
        base: units that are committed to.
        paid: units paid for at each moment of the day, along the last axis.
        committed: dollars an hour of a unit that is committed to, USD.
        on_demand: dollars an hour of one on demand, USD.
    """
    beyond = np.maximum(paid - np.asarray(base)[..., None], 0.0)
    return np.asarray(base * committed * HOURS + beyond.mean(axis=-1) * on_demand * HOURS)


@dataclass(frozen=True, slots=True, eq=False)
class FleetDay:
    """One way to run the fleet over a day.

    Attributes:
        replicas: ready at each moment.
        paid: paid for at each moment: those that start too.
        usd: dollars of the day on demand; None where no price is known.
        base: units that are best committed to, and what the day costs with them; None where no such price is known.
        usd_committed: that cost.
        kept: share of the requests that keep the limits.
        first, per_token: seconds to the first token and of each token after it, at the percentile.
        starts: replicas that were started in the day.
    """

    replicas: Floats
    paid: Floats
    usd: float | None
    base: int | None
    usd_committed: float | None
    kept: float
    first: float
    per_token: float
    starts: int


@dataclass(frozen=True, slots=True, eq=False)
class Day:
    """A fleet over a day.

    Attributes:
        load: requests a second over the day.
        rates: the same at each moment.
        startup: time until a new replica answers.
        scale_down_seconds: for which fewer must have been enough before a replica is given up.
        reserve: replicas beyond what the load needs, as a share.
        prices: of the instances.
        fixed: as many as the peak needs, all day.
        scaled: as many as an autoscaler has ready.
    """

    load: LoadCurve
    rates: Floats
    startup: Startup
    scale_down_seconds: float
    reserve: float
    prices: DayPrices
    fixed: FleetDay
    scaled: FleetDay


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
    moment = DAY_SECONDS / wanted.size
    paid = _largest_before(wanted, int(np.ceil(delay / moment)))
    behind = int(np.ceil(startup / moment))
    # What is ready was paid for all the time that a start takes.
    ready = -_largest_before(-paid, behind)
    return ready, paid


def _largest_before(values: Floats, moments: int) -> Floats:
    """Return the largest value of each moment and those before it, in a day that repeats itself."""
    window = min(moments, values.size - 1) + 1
    if window == 1:
        return values
    repeated = np.concatenate([values[-(window - 1) :], values])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(repeated, window).max(axis=1))


def over_day(replica: Replica, sized: Sized, load: LoadCurve, catalog: Catalog) -> Day:
    """Return a fleet over a day, fixed and with an autoscaler, each simulated.

    Args:
        replica: the kind of replica.
        sized: how many the peak needs, and what each keeps.
        load: requests a second over the day.
    """
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


def _run(
    replica: Replica,
    sized: Sized,
    rates: Floats,
    replicas: tuple[Floats, Floats],
    prices: DayPrices,
) -> FleetDay:
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
