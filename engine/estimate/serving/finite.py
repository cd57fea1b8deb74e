"""Loads that end: requests ramp up, meet each other, wait and drain, stepped over time for many plans at once.

Requests are followed as a fluid in the order in which they come. In every step of time as many begin as have come, have
a place and can be read; those that run get a token with every pass, whose seconds follow from how many they are. A
request is then timed by the passes that go by between its start and its end. A load of more requests than it takes to
come to rest is that of fewer, with the others where it rests.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import unrecorded
from capacity_tui.engine.estimate.serving.operators import decode_pass
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.serving.speed import decode_phase, reading_phase
from capacity_tui.engine.estimate.timing.schedule import phase_time
from capacity_tui.engine.numeric import Number, any_true, where
from capacity_tui.engine.record import dataclass

Floats = NDArray[np.float64]

# Steps of time until the last request is read, and of passes until the last answer ends.
STEPS, DRAINING = 48, 24
# Numbers of sequences, and of prompts in one pass, at which passes are worked out.
SEQUENCES, PROMPTS = 10, 6
# Prompts in one pass that are looked at in any case.
FEW = 4.0
# Stays of a request after which a load is at rest, and where in these the others are.
AT_REST, RESTING = 4.0, 0.7
# Rounds in which a distribution below the longest answer is found that has the mean and the spread that were said.
ROUNDS = 6
# Deviations at which scatter is looked at, and the share of the requests that each stands for.
SCATTER = np.linspace(-2.4, 2.4, 9)
WEIGHTS = np.exp(-(SCATTER**2) / 2.0) / np.exp(-(SCATTER**2) / 2.0).sum()
MARGIN = 1.2  # steps over those that the largest rate asks for
UNIFORM = counted("uniform-square")
LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Steady:
    """What requests see of a replica in the steady state, in seconds.

    Attributes:
        largest: requests that it answers in a second at most.
        stay: of a request that runs.
        alongside: requests that run beside one whose prompt is read.
        first: to the first token, without the host's time; infinite where more come than are answered.
        token: of each token after it.
    """

    largest: Number
    stay: Number
    alongside: Number
    first: Number
    token: Number


@dataclass(frozen=True, slots=True)
class Finite:
    """What the requests of a load that ends see of one replica, in seconds.

    Attributes:
        first, first_percentile: to the first token, without the host's time: the mean, and at the plan's percentile.
        token, token_percentile: of each token after it.
        request: from arrival to the last token, the mean.
        seconds: from the first arrival to the last token.
        running: requests at work, the mean over these.
        waiting: requests that wait, likewise.
    """

    first: Number
    first_percentile: Number
    token: Number
    token_percentile: Number
    request: Number
    seconds: Number
    running: Number
    waiting: Number


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """Seconds of passes: for answers by sequences, and what prompts add to one by their number."""

    answering: Floats
    reading: Floats
    slots: Floats
    fewest: Floats
    most: Floats

    def answer(self, sequences: Floats) -> Floats:
        """Return the seconds of a pass that gives so many sequences their next token."""
        return _between(self.answering, np.ones_like(self.slots), self.slots, sequences)

    def read(self, prompts: Floats) -> Floats:
        """Return the seconds that so many prompts add to a pass, or take in one of their own."""
        return _between(self.reading, self.fewest, self.most, prompts)


def _between(table: Floats, low: Floats, high: Floats, value: Floats) -> Floats:
    """Return what a table over geometric steps from low to high says of a value; beyond its ends as at them."""
    width = np.maximum(np.log(high / low), LEAST)
    place = np.clip(np.log(np.maximum(value, low) / low) / width, 0.0, 1.0) * (len(table) - 1)
    index = np.minimum(place.astype(np.int64), len(table) - 2)
    before = np.take_along_axis(table, index[np.newaxis], 0)[0]
    after = np.take_along_axis(table, index[np.newaxis] + 1, 0)[0]
    return np.asarray(before + (place - index) * (after - before))


def _passes(run: ServingRun, slots: Floats, alongside: Number, requests: Number) -> Passes:
    """Return the seconds of passes up to as many sequences as there are places."""
    sequences = slots ** _along(np.linspace(0.0, 1.0, SEQUENCES), slots)
    answering = phase_time(decode_phase("decode", replace(run, batch=sequences), 1.0, run.guessing.tokens)).seconds
    if any_true(run.guessing.tokens > 0):
        drafts = phase_time(decode_phase("draft", replace(run, batch=sequences), 1.0, 0.0)).seconds
        answering = answering + run.guessing.drafts * drafts
    mixes = _mixes(run)
    budget = where(run.runtime.chunk_tokens > 0, run.runtime.chunk_tokens, np.inf)
    room = np.maximum(budget - mixes * alongside, 1.0) / run.fresh
    most = np.minimum(np.maximum(room, LEAST), np.maximum(requests, FEW)) + 0.0 * slots
    fewest = np.minimum(1.0, most)
    prompts = fewest * (most / fewest) ** _along(np.linspace(0.0, 1.0, PROMPTS), slots)
    groups = np.minimum(run.layout.pp, np.maximum(alongside, 1.0))
    answers = decode_pass(run, alongside / groups, run.guessing.tokens) if any_true(mixes > 0) else None
    at_work = np.maximum(prompts, 1.0) + mixes * alongside
    reading = phase_time(reading_phase(run, prompts * run.fresh / groups, answers, at_work / groups, groups)).seconds
    if answers is not None:
        alone = phase_time(decode_phase("decode", replace(run, batch=alongside), 1.0, run.guessing.tokens)).seconds
        reading = np.maximum(reading - mixes * alone, 0.0)
    whole = np.broadcast_shapes(np.shape(answering), sequences.shape)
    return Passes(
        np.array(np.broadcast_to(answering, whole), dtype=np.float64),
        np.array(np.broadcast_to(reading, (PROMPTS, *whole[1:])), dtype=np.float64),
        slots,
        fewest,
        most,
    )


def _mixes(run: ServingRun) -> Number:
    return 0.0 if run.shape.encoder_layers else run.runtime.mixes_prefill


def _lengths(run: ServingRun, like: Floats) -> Floats:
    """Return passes of answers at some deviations: their logit below the longest is normal; far from it, lognormal."""
    shares, deviations = _along(WEIGHTS, like), _along(SCATTER, like)
    mean, wanted = np.maximum(run.output + 0.0 * like, LEAST), run.output_spread + 0.0 * like
    longest = np.clip(run.traffic.longest_output + 0.0 * like, mean * (1.0 + LEAST), mean / LEAST)
    width = np.sqrt(np.log(1.0 + wanted**2))
    middle = np.log(mean / (longest - mean))
    for _ in range(ROUNDS):
        for _ in range(ROUNDS):
            part = 1.0 / (1.0 + np.exp(-middle - deviations * width))
            slope = (part * (1.0 - part) * shares).sum(axis=0)
            off = mean / longest - (part * shares).sum(axis=0)
            middle = middle + np.clip(off / np.maximum(slope, LEAST**2), -1.0, 1.0)
        here = np.sqrt((((part * longest - mean) ** 2) * shares).sum(axis=0)) / mean
        width = width * np.clip(wanted / np.maximum(here, LEAST), 0.5, 2.0)
    return np.asarray(np.maximum(part * longest - 1.0, 0.0) / run.accepted)


def finite_load(run: ServingRun, held: Number, steady: Steady) -> Finite:
    """Return what requests see of one replica.

    Args:
        run: the replica's run.
        held: sequences that the cache holds.
        steady: what they would see, did the load go on.
    """
    with unrecorded():
        like = np.zeros_like(np.asarray(steady.stay + run.rate + run.requests + run.traffic.beyond, dtype=np.float64))
        return _Stepped(run, run.requests + like, held + like, steady).seen()


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """What happens in one step of time; the state is that at its end.

    Attributes:
        begin: requests whose prompts are read in it.
        start: passes that went by until these begin to answer.
        middle: when they do, in seconds.
        first: seconds to their first token.
        scatter: standard deviation of these.
        prompt_seconds: seconds in which one of their prompts is read.
        time, done, joined: seconds, passes and requests until its end.
        running, waiting: requests that run, and that wait.
    """

    begin: Floats
    start: Floats
    middle: Floats
    first: Floats
    scatter: Floats
    prompt_seconds: Floats
    time: Floats
    done: Floats
    joined: Floats
    running: Floats
    waiting: Floats


class _Stepped:
    """A load in its steps; the first axis of arrays is that of steps."""

    def __init__(self, run: ServingRun, requests: Floats, held: Floats, steady: Steady) -> None:
        self.run, self.whole, self.steady = run, requests, steady
        self.largest = steady.largest + 0.0 * requests
        self.rate = np.maximum(run.rate + 0.0 * requests, LEAST)
        self.slots = np.minimum(run.slots, requests)
        at_work = np.minimum(np.minimum(self.rate, self.largest) * steady.stay, self.slots)
        self.requests = np.minimum(requests, np.maximum(AT_REST * at_work, STEPS / AT_REST))
        # Tokens that the cache holds, and those for which a request must find room: all, or its prompt where it grows.
        self.grows = run.runtime.reserved_output < 1.0
        self.cache = np.maximum(held, 1.0) * run.held_length
        self.asked = where(self.grows, run.prompt, run.length) + 0.0 * requests
        self.passes = _passes(run, np.maximum(self.slots, 1.0), steady.alongside, requests)
        self.mixes = _mixes(run) + 0.0 * requests
        self.lengths = _lengths(run, requests)
        self.steps: list[_Step] = []
        size = self.requests / np.minimum(self.rate, self.largest) * MARGIN / STEPS
        for number in range(STEPS):
            self.steps.append(self._next(size, is_last=number == STEPS - 1))

    def _next(self, size: Floats, *, is_last: bool) -> _Step:
        """Return the step after those that there are; in the last all begin that are left."""
        run, passes, zero = self.run, self.passes, np.zeros_like(self.requests)
        last = self.steps[-1] if self.steps else None
        time, done, joined = (zero, zero, zero) if last is None else (last.time, last.done, last.joined)
        running, tokens = self._running(done)
        # What the cache cannot hold of those that run waits for its turn.
        fits = np.minimum(self.cache / np.maximum(tokens, LEAST), 1.0)
        come, before = (np.minimum(self.rate * moment, self.requests) for moment in (time + size, time))
        coming = np.maximum((come - before) / size, LEAST)
        met = np.minimum(1.0 + running * fits * (1.0 - 1.0 / np.maximum(self.requests, 1.0)), self.slots)
        answering = passes.answer(met)
        waiting = np.maximum(before - joined, 0.0)
        # A pass reads those that came during the one before, where any did.
        together = coming * answering
        prompts = np.clip(np.maximum(waiting, together / -np.expm1(-together)), passes.fewest, passes.most)
        reading = passes.read(prompts)
        prompt_seconds, mixed = reading / prompts, self.mixes * answering
        # What prompts add that are longer than the mean: less than the mean of all, where passes read weights first.
        longer = np.where(
            prompts * 2.0 <= passes.most, (passes.read(prompts * 2.0) - reading) / prompts, prompt_seconds
        )
        begin = np.maximum(come - joined, 0.0)
        if not is_last:
            room = np.minimum(self.slots - running, (self.cache - tokens) / self.asked)
            begin = np.minimum(begin, np.minimum(np.maximum(room, 0.0), size * prompts / (mixed + reading)))
        going = np.maximum(size - begin * prompt_seconds, 0.0) / answering * fits
        share, busy = np.clip(begin * prompt_seconds / size, 0.0, 1.0), -np.expm1(-running)
        # A random moment falls into a pass in proportion to its length; those that come during it are read together.
        at_work = (1.0 - share) * answering + share * (mixed + reading + longer * run.prompt_spread**2)
        alongside = begin / size * busy * at_work
        own = np.clip(1.0 + alongside, passes.fewest, passes.most)
        started = (passes.read(own) + self.mixes * passes.answer(np.maximum(met, 1.0))) / np.minimum(own, 1.0)
        middle = time + size / 2.0
        waited = np.maximum(middle - (joined + begin / 2.0) / self.rate, 0.0)
        return _Step(
            begin=begin,
            start=done + going / 2.0,
            middle=middle,
            first=waited + busy * at_work / 2.0 + started,
            scatter=np.sqrt(
                (busy * at_work) ** 2 / (2.0 * UNIFORM)
                + longer**2 * (run.prompt_spread**2 + (1.0 + run.prompt_spread**2) * alongside)
            ),
            prompt_seconds=prompt_seconds,
            time=time + size,
            done=done + going,
            joined=joined + begin,
            running=running + begin / 2.0,
            waiting=waiting,
        )

    def _running(self, done: Floats) -> tuple[Floats, Floats]:
        """Return how many run when so many passes have gone by, and the tokens that they hold in the cache."""
        if not self.steps:
            return np.zeros_like(done), np.zeros_like(done)
        run, begun = self.run, self.over("begin")
        ages = done - self.over("start")
        alive = ((ages[:, np.newaxis] < self.lengths[np.newaxis]) * _along(WEIGHTS, done)).sum(axis=1) * begun
        tokens = where(self.grows, run.prompt + np.maximum(ages, 0.0) * run.accepted, run.length)
        return np.asarray(alive.sum(axis=0)), np.asarray((alive * tokens).sum(axis=0))

    def over(self, name: str) -> Floats:
        """Return one attribute of all steps."""
        return np.stack([getattr(step, name) for step in self.steps])

    def drained(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return seconds, passes and requests begun at every end of a step, and on until all are answered.

        The last are the seconds in which requests run.
        """
        zero, last = np.zeros_like(self.requests), self.steps[-1]
        times, done, joined = ([zero, *self.over(name)] for name in ("time", "done", "joined"))
        busy = (self.over("running") * self.steps[0].time).sum(axis=0)
        size = self.lengths.max(axis=0) / DRAINING
        for _ in range(DRAINING):
            running, tokens = self._running(done[-1] + size / 2.0)
            fits = np.minimum(self.cache / np.maximum(tokens, LEAST), 1.0)
            spent = size * self.passes.answer(np.maximum(running * fits, 1.0)) / fits * (running > LEAST)
            busy = busy + spent * running
            times.append(times[-1] + spent)
            done.append(done[-1] + size)
            joined.append(last.joined)
        return np.stack(times), np.stack(done), np.stack(joined), busy

    def seen(self) -> Finite:
        """Return what the requests saw."""
        run, others = self.run, np.maximum(self.whole - self.requests, 0.0)
        times, done, joined, busy = self.drained()
        begin, middle, first = map(self.over, ("begin", "middle", "first"))
        order, ends = self.over("joined") - begin / 2.0, self.over("start")[:, np.newaxis] + self.lengths[np.newaxis]
        answer = np.maximum(_read_off(ends, done, times) - middle[:, np.newaxis], 0.0)
        given, tokens = self.lengths * run.accepted, np.maximum(self.lengths * run.accepted, 1.0)
        meanwhile = np.maximum(_read_off(ends, done, joined) - order[:, np.newaxis], 0.0)
        counted = np.sqrt(meanwhile * (1.0 + run.prompt_spread**2)) / tokens
        scatter = self.over("prompt_seconds")[:, np.newaxis] * counted
        # Those beyond what comes to rest see the steady state; where more come than are answered, they wait.
        resting = np.argmin(np.abs(order - RESTING * self.requests), axis=0)
        number = _along(np.arange(STEPS), others)
        behind = others * np.maximum(1.0 / self.largest - 1.0 / self.rate, 0.0)
        first = first + (number > resting) * behind
        at_rest = np.take_along_axis(first, resting[np.newaxis], 0)[0]
        late = where(self.steady.first < np.inf, self.steady.first, at_rest)
        parts = late + _along((np.arange(len(SCATTER)) + 0.5) / len(SCATTER), others) * behind
        of_step = self.over("scatter")
        rest = np.take_along_axis(of_step, resting[np.newaxis], 0), others[np.newaxis] / len(SCATTER)
        by_step = _scattered(first, of_step, begin), _scattered(parts, *(part + 0.0 * parts for part in rest))
        values, shares = (np.concatenate(both) for both in zip(*by_step, strict=True))
        of_lengths = (begin + (number == resting) * others)[:, np.newaxis] * _along(WEIGHTS, others)
        is_steady = (number == resting) & (others > self.requests) & (self.steady.first < np.inf)
        answer = np.where(is_steady[:, np.newaxis], self.steady.token * given, answer)
        # Answers of one token have none after it; where all are, the next would take as long as where load goes on.
        more = (given > 0).any(axis=0)
        token = np.where(more, answer / tokens, self.steady.token)
        of_tokens = of_lengths * np.where(more, given > 0, 1.0)
        per_token = _scattered(*(part.reshape(-1, *others.shape) for part in (token, scatter, of_tokens)))
        percentile, seconds = 1.0 - run.traffic.beyond, times[-1] + others / np.minimum(self.rate, self.largest)
        mean_first, mean_answer = _mean(values, shares, others.ndim), _mean(answer, of_lengths, others.ndim)
        waiting = (self.over("waiting") * self.steps[0].time).sum(axis=0)
        return Finite(
            first=mean_first,
            first_percentile=_percentile(values, shares, percentile),
            token=_mean(token, of_tokens, others.ndim),
            token_percentile=_percentile(*per_token, percentile),
            request=mean_first + mean_answer,
            seconds=seconds,
            running=(busy + others * mean_answer) / seconds,
            waiting=(waiting + others * parts.mean(axis=0)) / seconds,
        )


def _along(row: Floats | NDArray[np.int64], like: Floats) -> Floats:
    """Return a row over the first axis, the others being those of plans."""
    return np.asarray(row, dtype=np.float64).reshape((-1,) + (1,) * like.ndim)


def _mean(values: Floats, weights: Floats, plans: int) -> Floats:
    """Return the weighted mean over all axes but the last ones, which are those of plans."""
    axes = tuple(range(weights.ndim - plans))
    return np.asarray((values * weights).sum(axis=axes) / np.maximum(weights.sum(axis=axes), LEAST))


def _read_off(value: Floats, of: Floats, other: Floats) -> Floats:
    """Return for values of one rising row what the other says there; beyond its ends as at them."""
    shape, value = value.shape, value.reshape(-1, *of.shape[1:])
    index = np.clip((of[np.newaxis] <= value[:, np.newaxis]).sum(axis=1) - 1, 0, len(of) - 2)
    low, high = np.take_along_axis(of, index, 0), np.take_along_axis(of, index + 1, 0)
    share = np.clip((value - low) / np.maximum(high - low, LEAST), 0.0, 1.0)
    before, after = np.take_along_axis(other, index, 0), np.take_along_axis(other, index + 1, 0)
    return np.asarray(before + share * (after - before)).reshape(shape)


def _scattered(mean: Floats, scatter: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return values around means, skewed to the right, and how many requests each stands for; in one axis."""
    width = np.log(1.0 + (scatter / np.maximum(mean, LEAST)) ** 2)
    values = mean * np.exp(_along(SCATTER, mean) * np.sqrt(width) - width / 2.0)
    shares = _along(WEIGHTS, mean) * weights
    whole = (-1, *mean.shape[1:])
    return values.reshape(whole), np.broadcast_to(shares, values.shape).reshape(whole)


def _percentile(values: Floats, weights: Floats, share: Number) -> Floats:
    """Return the value that a share of the weights lies below."""
    order = np.argsort(values, axis=0)
    values, weights = np.take_along_axis(values, order, 0), np.take_along_axis(weights, order, 0)
    below = np.cumsum(weights, axis=0)
    below = (below - weights / 2.0) / np.maximum(below[-1], LEAST)
    wanted = np.broadcast_to(np.asarray(share, dtype=np.float64), below.shape[1:])[np.newaxis]
    return np.asarray(_read_off(np.asarray(wanted), below, values)[0])
