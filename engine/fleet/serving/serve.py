"""The cheapest fleet that serves a load inside its limits, and that fleet over a day."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.estimate import equation, figures_of
from capacity_tui.engine.fleet.serving.autoscaling import Day, over_day
from capacity_tui.engine.fleet.serving.candidates import Candidate, Unfit, asked_values, candidates
from capacity_tui.engine.fleet.serving.question import ServingQuestion
from capacity_tui.engine.fleet.serving.sizing import Replica, Sized, sized
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.plan import edited
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import HOUR_SECONDS, MEGA
from capacity_tui.engine.verdict import Verdict

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

# Kinds of replicas that are simulated at most, the least cost for each request at first.
MOST_SIMULATED = 4


@equation(
    "usd = usd_per_hour / 3600 / (rate · tokens) · 10^6",
    unit="USD",
    source="price of the fleet over the tokens it reads and writes",
    units={"usd_per_hour": "USD"},
)
def usd_per_million_tokens(usd_per_hour: Number, rate: Number, tokens: Number) -> Number:
    """Dollars for a million tokens.

    Args:
        usd_per_hour: price of the fleet, USD.
        rate: requests answered in a second.
        tokens: tokens of a request that are counted.
    """
    return usd_per_hour / HOUR_SECONDS / (rate * tokens) * MEGA


@dataclass(frozen=True, slots=True)
class PlannedFleet:
    """A fleet as a plan: what planning makes of it in the steady state, beside what was simulated.

    Attributes:
        set: the change that makes the plan of the question this one.
    """

    set: Mapping[str, object]
    verdict: Verdict
    figures: Mapping[str, Interval]


@dataclass(frozen=True, slots=True, eq=False)
class ServingAnswer:
    """What serves a load.

    Attributes:
        best: the cheapest fleet that keeps the limits; None where none does.
        others: the other fleets that do, cheapest first.
        failing: kinds of replicas of which not even a single request keeps the limits.
        unfit: hardware that does not hold the model.
        left_out: kinds of replicas that cannot be cheaper, or were not simulated since too many are.
        planned: the best fleet as a plan; None where none keeps the limits.
        day: the best fleet over a day; None where the load does not vary.
    """

    question: ServingQuestion
    best: Sized | None
    others: tuple[Sized, ...]
    failing: tuple[Candidate, ...]
    unfit: tuple[Unfit, ...]
    left_out: tuple[Candidate, ...]
    planned: PlannedFleet | None
    day: Day | None
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
        known = next((pair for pair in seen if _is_alike(pair[0].candidate, candidate)), None)
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
    """Return a fleet as planning has it."""
    candidate = fleet.candidate
    layout = candidate.filled.plan.parallelism
    replicas = fleet.replicas["value"] or 1
    changed = {path: value for path, value in asked_values(question).items() if value != question.plan.value(path)}
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


def _is_alike(one: Candidate, other: Candidate) -> bool:
    """Whether two kinds of replicas take the same time for everything, whoever rents them out."""
    same = one.devices == other.devices and one.slots == other.slots and one.largest_rate == other.largest_rate
    mine, others = one.filled.resolved.cluster, other.filled.resolved.cluster
    return same and mine.device == others.device and (one.answering.high == other.answering.high)
