"""How much load one replica keeps its limits under, and how many replicas that makes: by simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from capacity_tui.engine.estimate.serving import serving_work
from capacity_tui.engine.fleet.serving.candidates import Candidate
from capacity_tui.engine.fleet.serving.question import Lengths, ServingQuestion, Whole, steady_requests
from capacity_tui.engine.fleet.serving.simulation import Answered, StepTimes, percentile_by, simulate, step_times
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.space import Floats

End = Literal["value", "low", "high"]
Binding = Literal["ttft", "tpot", "rate"]
ENDS: tuple[End, ...] = ("value", "low", "high")  # The times of passes as estimated, and at both ends of their ranges

# Shares of the most that a replica answers which are tried first, and those below where none of them is kept.
SHARES, LIGHT_SHARES = (0.35, 0.55, 0.7, 0.82, 0.9, 0.97), (0.02, 0.08, 0.2)
# Replicas that are simulated side by side for each load, and requests that count of all of them, as the search narrows.
SIDE_BY_SIDE, COUNTED = 3, 900
FINAL_SIDE_BY_SIDE, FINAL_COUNTED = 12, 5000
# Of light loads, whose requests hardly meet, fewer count: those of so many stays of a request, at least so many.
LIGHT_STAYS, LIGHT_COUNTED = 8.0, 30.0
NUMBERS = 8  # Numbers of replicas that one call tries
MOST_BEYOND = 1.5  # Replicas beyond what was seen to do, as a share, among which the fewest that do are looked for
STEP = 1.02  # By how much more each next number is tried, at least one
# Time to fill a replica, in times that a request stays in a full one; longest lengths, in deviations above the mean.
FILLING, TAIL = 1.0, 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """What requests see of replicas under some loads; an entry of each array is a load."""

    rates: Floats  # requests a second of one replica
    slots: Whole  # requests at work at once at most
    # first, per_token: seconds to the first token and of each token after it, at the percentile
    first: Floats
    per_token: Floats
    # first_mean, per_token_mean: the same, the mean
    first_mean: Floats
    per_token_mean: Floats
    kept: Floats  # share of the requests that keep both limits
    busy: Floats  # share of the time in which a replica works
    holds: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]  # whether the percentiles keep the limits


@dataclass(frozen=True, slots=True)
class Sized:
    """A fleet of one kind of replica."""

    candidate: Candidate
    # how many keep the limits, with times of passes at each end of their range; None where none do
    replicas: Mapping[End, int | None]
    slots: int  # requests at work at once in a replica at most: the batch to set
    rate: float  # most requests a second of one replica that were seen to keep the limits
    loaded: Mapping[End, Loaded]  # what requests see of so many replicas, with times at each end of their range
    binding: Binding  # what keeps a replica from more load
    why: str

    @property
    def instances(self) -> int:
        """Instances that hold the replicas."""
        return self.candidate.instances(self.replicas["value"] or 0)

    @property
    def usd_per_hour(self) -> float | None:
        """Dollars an hour of them; None where a price is not known."""
        return self.candidate.usd(self.replicas["value"] or 0)


class Replica:
    """One kind of replica, simulated under loads."""

    def __init__(self, candidate: Candidate, question: ServingQuestion) -> None:
        self.candidate, self.question, run = candidate, question, candidate.run
        self.lengths = Lengths(
            mean(run.fresh), mean(run.traffic.prompt_deviation), mean(run.output), mean(run.traffic.output_deviation)
        )
        longest = mean(run.prompt) + mean(run.output) * (1.0 + TAIL * mean(run.output_spread))
        chunk = mean(run.fresh) * (1.0 + TAIL * mean(run.prompt_spread)) * candidate.slots
        self.times: StepTimes = step_times(run, candidate.slots, longest, chunk)
        self.factors: dict[End, tuple[float, float]] = {
            "value": (1.0, 1.0),
            "low": (mean(candidate.reading.low), mean(candidate.answering.low)),
            "high": (mean(candidate.reading.high), mean(candidate.answering.high)),
        }

    def largest_rates(self, slots: Whole) -> Floats:
        """Return the requests a second that a replica answers at most with so many at work at once."""
        run = self.candidate.run
        full = serving_work(replace(run, traffic=replace(run.traffic, concurrency=slots.astype(np.float64))))
        assert full.served is not None and full.served.loaded is not None  # noqa: S101 - requests come singly
        return np.broadcast_to(np.asarray(full.served.loaded.largest_rate, dtype=np.float64), slots.shape)

    def stay(self, slots: int) -> float:
        """Return the seconds for which a request stays in a replica that is full, or keeps its limits."""
        full = slots / float(self.largest_rates(np.array([slots]))[0])
        limits = self.question.ttft, self.question.tpot
        if None in limits:
            return full
        return min(full, (limits[0] or 0.0) + (limits[1] or 0.0) * self.lengths.output)

    def loaded(self, rates: Floats, slots: Whole, ends: list[End], *, final: bool = False) -> Loaded:
        """Return what requests see under some loads.

        Args:
            rates: requests a second of one replica.
            slots: requests at work at once at most, of each load.
            ends: which end of the times, of each load.
            final: whether to count more requests.
        """
        side, counted = (FINAL_SIDE_BY_SIDE, FINAL_COUNTED) if final else (SIDE_BY_SIDE, COUNTED)
        factors = np.array([self.factors[end] for end in ends])
        stay = self.stay(int(slots.max())) * float(factors.max())
        every = np.repeat(rates, side)
        longest = np.maximum(LIGHT_STAYS * stay, LIGHT_COUNTED / every)
        seconds = np.maximum(np.minimum(counted / side / every, longest), stay)
        requests = steady_requests(every, FILLING * stay, seconds, stay / 2.0, self.lengths, self.question.seed)
        reading, answering = np.repeat(factors, side, axis=0).T
        result = simulate(requests, self.times, np.repeat(slots, side), reading, answering)
        return self._seen(rates, slots, result, side)

    def _seen(self, rates: Floats, slots: Whole, answered: Answered, side: int) -> Loaded:
        question, count = self.question, rates.size
        groups, percent = answered.replicas // side, question.percentile
        first = percentile_by(answered.first, groups, count, percent)
        per_token = np.nan_to_num(percentile_by(answered.per_token, groups, count, percent))
        numbers = np.maximum(np.bincount(groups, minlength=count), 1)

        def average(values: Floats) -> Floats:
            return np.bincount(groups, np.nan_to_num(values), minlength=count) / numbers

        ttft, tpot = question.ttft or np.inf, question.tpot or np.inf
        kept = (answered.first <= ttft) & (np.nan_to_num(answered.per_token) <= tpot)
        holds = (first <= ttft) & (per_token <= tpot)
        busy = (answered.busy / np.maximum(answered.clock, 1e-9)).reshape(count, side).mean(axis=1)
        return Loaded(
            rates,
            slots,
            first,
            per_token,
            average(answered.first),
            average(answered.per_token),
            average(kept.astype(float)),
            busy,
            holds,
        )


def sized(replica: Replica) -> Sized | None:
    """Return the fewest replicas of a kind that keep the limits; None where not even one request alone keeps them."""
    question, candidate = replica.question, replica.candidate
    if not candidate.keeps_limits_unloaded(question):
        return None
    bounds = _load_bounds(replica, SHARES)
    if any(kept <= 0 for of_batch in bounds.values() for kept, _ in of_batch.values()):
        light = _load_bounds(replica, (*LIGHT_SHARES, SHARES[0]))
        bounds = {
            slots: {end: light[slots][end] if entry[0] <= 0 else entry for end, entry in of_batch.items()}
            for slots, of_batch in bounds.items()
        }
    best = max(bounds, key=lambda slots: (bounds[slots]["value"][0], slots))
    kept, failing = bounds[best]["value"]
    if kept <= 0:
        return None
    replicas: dict[End, int | None] = {}
    asked: list[tuple[End, int]] = []
    for end in ENDS:
        most, least = bounds[best][end]
        if most > 0:
            asked += [(end, number) for number in _numbers(question.rate / least, question.rate / most)]
    seen = replica.loaded(
        np.array([question.rate / number for _, number in asked]),
        np.full(len(asked), best, dtype=np.int64),
        [end for end, _ in asked],
    )
    for end in ENDS:
        mine = [(number, bool(seen.holds[index])) for index, (own, number) in enumerate(asked) if own == end]
        # The last is as many as were seen to do.
        holding = [number for number, holds in mine if holds]
        replicas[end] = min(holding) if holding else (mine[-1][0] if mine else None)
    number = replicas["value"]
    assert number is not None  # noqa: S101 - the last one that is tried was seen to do
    final = _final(replica, number, best, failing)
    while not final.holds[0] and number * kept < question.rate * MOST_BEYOND:
        # So many did with fewer requests that counted; with more of them they do not.
        number = max(number + 1, int(number * STEP))
        final = _final(replica, number, best, failing)
    replicas["value"] = number
    replicas["low"], replicas["high"] = (_bounded(replicas.get(end), number, end) for end in ("low", "high"))
    loaded = {end: _entry(final, index) for index, end in enumerate(ENDS)}
    binding, why = _binding(question, _entry(final, len(ENDS)), best, candidate.slots)
    return Sized(candidate, replicas, best, min(max(kept, question.rate / number), failing), loaded, binding, why)


def _final(replica: Replica, number: int, slots: int, failing: float) -> Loaded:
    """Return what requests see of so many replicas, at each end of the times, and of one replica fewer at the last."""
    rate = replica.question.rate
    return replica.loaded(
        np.array([rate / number] * len(ENDS) + [max(rate / max(number - 1, 1), failing)]),
        np.full(len(ENDS) + 1, slots, dtype=np.int64),
        [*ENDS, "value"],
        final=True,
    )


def _bounded(count: int | None, number: int, end: End) -> int | None:
    """Return the replicas at an end of the times, which no chance puts on the other side of the estimate's."""
    if count is None:
        return None
    return min(count, number) if end == "low" else max(count, number)


def _load_bounds(replica: Replica, shares: tuple[float, ...]) -> dict[int, dict[End, tuple[float, float]]]:
    """Return, for some batches and each end of the times, the most load that was kept and the least that was not."""
    batches = _batches(replica)
    largest = replica.largest_rates(np.array(batches, dtype=np.int64))
    points = [
        (slots, end, share * rate / replica.factors[end][1])
        for slots, rate in zip(batches, largest, strict=True)
        for end in ENDS
        for share in shares
    ]
    seen = replica.loaded(
        np.array([rate for *_, rate in points]),
        np.array([slots for slots, *_ in points], dtype=np.int64),
        [end for _, end, _ in points],
    )
    data: dict[int, dict[End, tuple[float, float]]] = {slots: {} for slots in batches}
    for start in range(0, len(points), len(shares)):
        slots, end, _ = points[start]
        rates, holds = seen.rates[start : start + len(shares)], seen.holds[start : start + len(shares)]
        failing = int(np.argmin(holds)) if not holds.all() else len(shares)
        kept = float(rates[failing - 1]) if failing else 0.0
        data[slots][end] = kept, float(rates[failing] if failing < len(shares) else rates[-1] / shares[-1])
    return data


def _batches(replica: Replica) -> list[int]:
    """Return batches to try: what the cache holds, and what a pass answers inside the limit of each token."""
    most, limit = replica.candidate.slots, replica.question.tpot
    if limit is None:
        return [most]
    depth = replica.times.seconds.shape[1] // 2
    inside = np.flatnonzero(replica.times.seconds[:, depth, 0] <= limit * replica.times.accepted)
    largest = max(int(inside.max(initial=1)), 1)
    return sorted({most, largest})


def _numbers(least: float, most: float) -> list[int]:
    """Return some whole numbers from one to another, both included, few enough for one call."""
    low, high = max(int(np.ceil(least)), 1), max(int(np.ceil(most)), 1)
    return sorted({int(number) for number in np.round(np.geomspace(low, high, NUMBERS))} | {low, high})


def _entry(seen: Loaded, index: int) -> Loaded:
    parts = (getattr(seen, name)[index : index + 1] for name in Loaded.__slots__)
    return Loaded(*parts)


def _binding(question: ServingQuestion, beyond: Loaded, slots: int, room: int) -> tuple[Binding, str]:
    """Return which limit more load breaks first."""
    over: dict[Binding, float] = {}
    if question.ttft is not None:
        over["ttft"] = float(beyond.first[0]) / question.ttft
    if question.tpot is not None:
        over["tpot"] = float(beyond.per_token[0]) / question.tpot
    worst: Binding = max(over, key=lambda name: over[name])
    if over[worst] <= 1.0:
        return "rate", "more requests would come than a replica answers"
    if worst == "tpot":
        return worst, "with more requests at once each token takes longer than its limit"
    held = "as many as the cache holds" if slots >= room else "the batch that keeps the limit of each token"
    return worst, f"with more requests prompts wait for a slot: {slots} are at work at once, {held}"
