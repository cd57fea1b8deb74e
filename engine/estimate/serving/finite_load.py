"""Loads that end: requests ramp up, meet each other, wait and drain, stepped over time for many plans at once.

Requests are followed as a fluid in the order in which they come. In every step of time as many begin as have come, have
a place and can be read; those that run get a token with every pass, whose seconds follow from how many they are. A
request is then timed by the passes that go by between its start and its end. A load of more requests than it takes to
come to rest is that of fewer, with the others where it rests.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import unrecorded
from capacity_tui.engine.estimate.serving.pass_times import (
    LEAST,
    SCATTER,
    WEIGHTS,
    Floats,
    along,
    answer_passes,
    mixes_prompts,
    pass_times,
    read_off,
    scattered,
    weighted_mean,
    weighted_percentile,
)
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.numeric import Flags, Number, where
from capacity_tui.engine.record import dataclass

# Drifts, in standard deviations, at which the sum is worked out, up to that beyond which nothing is added.
POINTS = 400
FURTHEST = -NormalDist().inv_cdf(float(np.finfo(float).eps))
# A sum over whole numbers from the first is the integral from half of it.
FIRST = 0.5
# Standard deviation over the mean of a normal number's size.
HALF_NORMAL = math.sqrt(math.pi / 2.0 - 1.0)


def transient_wait(
    before: Floats, rate: Floats, largest: Floats, slots: Floats, spread: Number, lasting: Number
) -> tuple[Floats, Floats]:
    """Return how long requests wait for room because arrivals and answers scatter, beyond what their means say, s.

    These are the mean, and the standard deviation: first that of a normal number's size, at last of an exponential one.

    The wait is the sum over k of E[max(S_k, 0)] / k (Spitzer 1956), less the same without scatter. S_k is by how much k
    groups of as many requests as there are slots take longer than they take to come, as requests of equal answers wait
    for the slot that the one a group before them had; it is taken for normal. Where fewer come than are answered, the
    sum goes to the wait in the steady state.

    Args:
        before: requests that came before.
        rate: requests that arrive in a second, by a Poisson process.
        largest: requests that are answered in a second at most.
        slots: requests at work at once at most, from 1.
        spread: standard deviation of an answer's length over the mean, from 0.
        lasting: seconds of the wait in the steady state; infinite where there is none.
    """
    deviation = np.sqrt(slots * (1.0 / rate**2 + (spread / largest) ** 2))
    drift = np.maximum(slots * np.abs(1.0 / largest - 1.0 / rate) / deviation, LEAST)
    first, last = _summed(drift * np.sqrt(FIRST)), _summed(np.full_like(drift, np.inf))
    # The first group waits for nobody; on the whole a request has as many groups before it as whole ones and half.
    groups = np.maximum(before / slots - 1.0, 0.0)
    until = _summed(drift * np.sqrt(FIRST + groups + np.minimum(groups, FIRST)))
    whole = 2.0 * deviation / drift
    ends = np.isfinite(lasting)
    share = np.where(ends, (until - first) / np.maximum(last - first, LEAST), 0.0)
    mean = np.where(ends, share * np.where(ends, lasting, 0.0), whole * (until - first))
    return mean, mean * (HALF_NORMAL + (1.0 - HALF_NORMAL) * share)


def _summed(drifts: Floats) -> Floats:
    """Return the integral up to each drift of the mean by which a normal number exceeds it."""
    return np.interp(drifts, *_integral())


@cache
def _integral() -> tuple[Floats, Floats]:
    drifts = np.linspace(0.0, FURTHEST, POINTS)
    normal = NormalDist()
    below = np.array([normal.cdf(drift) for drift in drifts])
    density = np.array([normal.pdf(drift) for drift in drifts])
    return drifts, (below - 0.5 - drifts**2 * (1.0 - below) + drifts * density) / 2.0


# Steps of time until the last request is read, and of passes until the last answer ends.
STEPS, DRAINING = 48, 24
# Stays of a request after which a load is at rest, and where in these the others are.
AT_REST, RESTING = 4.0, 0.7
SETTLING = 2  # times that what begins in a step is found from what ends in it
MARGIN = 1.2  # steps over those that the largest rate asks for
UNIFORM = counted("uniform-square")


@dataclass(frozen=True, slots=True)
class Steady:
    """What requests see of a replica in the steady state, in seconds."""

    largest: Number  # requests that it answers in a second at most
    stay: Number  # of a request that runs, with what it takes longer
    alongside: Number  # requests that run beside one whose prompt is read
    first: Number  # to the first token, without the host's time; infinite where more come than are answered
    room: Number  # of these until the engine takes a request up
    token: Number  # of each token after it, the mean of an answer
    longer: Number = 0.0  # of which a whole answer, however long, waits for those who came before it began
    first_scatter: Number = 0.0  # standard deviation of ``first``
    token_scatter: Number = 0.0  # standard deviation of ``token``
    locked: Flags | bool = False  # whether requests of users start and end together


@dataclass(frozen=True, slots=True)
class Finite:
    """What the requests of a load that ends see of one replica, in seconds."""

    first: Number  # to the first token, without the host's time, the mean
    first_percentile: Number  # the same at the plan's percentile
    token: Number  # of each token after it, the mean
    token_percentile: Number  # the same at the plan's percentile
    request: Number  # from arrival to the last token, the mean
    seconds: Number  # from the first arrival to the last token
    running: Number  # requests at work, the mean over these
    waiting: Number  # requests that wait, likewise


def finite_load(run: ServingRun, held: Number, steady: Steady) -> Finite:
    """Return what requests see of one replica; ``steady`` is what they would see, did the load go on."""
    with unrecorded():
        like = np.zeros_like(np.asarray(steady.stay + run.rate + run.requests + run.traffic.beyond, dtype=np.float64))
        return _Stepped(run, run.requests + like, held + like, steady).seen()


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """What happens in one step of time; the state is that at its end."""

    begin: Floats  # requests whose prompts are read in it
    start: Floats  # passes that went by until these begin to answer
    middle: Floats  # when they do, in seconds
    first: Floats  # seconds to their first token, did arrivals not scatter
    late: Floats  # seconds by which it comes after the middle, where full passes of prompts give it to all at their end
    scatter: Floats  # standard deviation of these
    prompt_seconds: Floats  # seconds in which one of their prompts is read
    passes: Floats  # passes that give those that run a token
    time: Floats  # seconds until its end
    done: Floats  # passes until its end
    joined: Floats  # requests until its end
    running: Floats  # requests that run
    waiting: Floats  # requests that wait


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
        alongside = np.minimum(steady.alongside, self.slots)
        self.passes = pass_times(run, np.maximum(self.slots, 1.0), alongside, requests)
        self.mixes = mixes_prompts(run) + 0.0 * requests
        self.lengths = answer_passes(run, requests)
        self.steps: list[_Step] = []
        # Of each step those that begin, when they do in passes, and the passes of the step.
        self.begun = np.zeros((3, STEPS, *requests.shape))
        # All come, all are read, and those that have no place wait for one.
        slots = np.minimum(self.slots, np.maximum(held, 1.0))
        room = self.passes.room(slots)
        full = self.mixes * self.passes.answer(np.maximum(slots, 1.0)) + self.passes.read(room)
        seconds = self.requests * np.maximum(1.0 / self.rate, full / room)
        size = (seconds + np.maximum(self.requests - slots, 0.0) / self.largest) * MARGIN / STEPS
        for number in range(STEPS):
            step = self._next(size, is_last=number == STEPS - 1)
            self.begun[:, number] = step.begin, step.start, step.passes
            self.steps.append(step)

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
        # A pass reads those that came while the passes before it were at work that were scheduled at once.
        scheduled = answering * run.runtime.scheduled_passes
        together, most = coming * scheduled, passes.room(met)
        prompts = np.minimum(np.maximum(waiting, together / -np.expm1(-together)), most)
        reading = passes.read(prompts)
        prompt_seconds, mixed = reading / prompts, self.mixes * answering
        # What prompts add that are longer than the mean: less than the mean of all, where passes read weights first.
        longer = np.where(prompts * 2.0 <= most, (passes.read(prompts * 2.0) - reading) / prompts, prompt_seconds)
        begin = np.maximum(come - joined, 0.0)
        if not is_last:
            # Those that end in the step make room in it; the more begin, the fewer passes go by in which others end.
            come = np.minimum(begin, size * prompts / (mixed + reading))
            going = zero if last is None else last.passes
            for _ in range(SETTLING):
                left, their_tokens = self._running(done + going)
                room = np.minimum(self.slots - left, (self.cache - their_tokens) / self.asked)
                begin = np.minimum(come, np.maximum(room, 0.0))
                going = np.maximum(size - begin * prompt_seconds, 0.0) / answering * fits
        going = np.maximum(size - begin * prompt_seconds, 0.0) / answering * fits
        share, busy = np.clip(begin * prompt_seconds / size, 0.0, 1.0), -np.expm1(-running)
        # A random moment falls into a pass in proportion to its length; those that come during it are read together.
        at_work = (1.0 - share) * scheduled + share * (mixed + reading + longer * run.prompt_spread**2)
        # The next pass begins as soon as the first stage is free.
        turn = busy * at_work / passes.groups
        mixes = self.mixes * passes.answer(np.maximum(met, 1.0)) * passes.of_prompt(most)
        alongside = begin / size * turn
        started = passes.whole(most, 1.0 + alongside) + mixes + turn / 2.0
        # Of passes that are full of those who wait the mean prompt takes its turn half a stage after their start.
        queued = np.minimum(waiting / most, 1.0)
        full = mixed * passes.of_prompt(most) + np.maximum(reading * passes.of_prompt(most), passes.whole(most))
        ends = full * (1.0 - 1.0 / (2.0 * passes.groups))
        started = started + queued * (ends - started)
        middle = time + size / 2.0
        waited = np.maximum(middle - (joined + begin / 2.0) / self.rate, 0.0)
        return _Step(
            begin=begin,
            start=done + going / 2.0,
            middle=middle,
            first=waited + started,
            late=(1.0 - self.mixes) * queued * ends,
            scatter=np.sqrt(
                turn**2 / (2.0 * UNIFORM)
                + longer**2 * (run.prompt_spread**2 + (1.0 + run.prompt_spread**2) * alongside)
            ),
            prompt_seconds=prompt_seconds,
            passes=going,
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
        run, (begun, start, passes) = self.run, self.begun[:, : len(self.steps)]
        ages, apart = done - start, np.maximum(passes, LEAST)
        # Those that began during a step end as far apart.
        left = (self.lengths[np.newaxis] - ages[:, np.newaxis]) / apart[:, np.newaxis] + 0.5
        alive = (np.clip(left, 0.0, 1.0) * along(WEIGHTS, done)).sum(axis=1) * begun
        tokens = where(self.grows, run.prompt + np.maximum(ages, 0.0) * run.accepted, run.length)
        return np.asarray(alive.sum(axis=0)), np.asarray((alive * tokens).sum(axis=0))

    def _wait(self, before: Floats) -> tuple[Floats, Floats]:
        spread = self.run.output_spread
        return transient_wait(before, self.rate, self.largest, np.maximum(self.slots, 1.0), spread, self.steady.room)

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
        given_from = (middle + self.over("late"))[:, np.newaxis]
        answer = np.maximum(read_off(ends, done, times) - given_from, 0.0)
        given, tokens = self.lengths * run.accepted, np.maximum(self.lengths * run.accepted, 1.0)
        meanwhile = np.maximum(read_off(ends, done, joined) - order[:, np.newaxis], 0.0)
        counted = np.sqrt(meanwhile * (1.0 + run.prompt_spread**2)) / tokens
        scatter = self.over("prompt_seconds")[:, np.newaxis] * counted
        # Those beyond what comes to rest see the steady state; where more come than are answered, they wait.
        resting = np.argmin(np.abs(order - RESTING * self.requests), axis=0)
        number = along(np.arange(STEPS), others)
        behind = others * np.maximum(1.0 / self.largest - 1.0 / self.rate, 0.0)
        at_rest = np.take_along_axis(first, resting[np.newaxis], 0)[0]
        rests = np.isfinite(self.steady.first)
        late = where(rests, where(rests, self.steady.first, 0.0) - where(rests, self.steady.room, 0.0), at_rest)
        part = along((np.arange(len(SCATTER)) + 0.5) / len(SCATTER), others)
        # Arrivals that scatter make them wait longer, the more of them there were.
        after = number > resting
        waits, apart = self._wait(order + after * others)
        first = first + after * behind + waits
        their_waits, theirs = self._wait(np.take_along_axis(order, resting[np.newaxis], 0) + part * others)
        parts = late + part * behind + their_waits
        of_step = self.over("scatter")
        of_rest = np.hypot(np.take_along_axis(of_step, resting[np.newaxis], 0), theirs)
        shares = others[np.newaxis] / len(SCATTER) + 0.0 * parts
        by_step = scattered(first, np.hypot(of_step, apart), begin), scattered(parts, of_rest, shares)
        values, shares = (np.concatenate(both) for both in zip(*by_step, strict=True))
        of_lengths = (begin + (number == resting) * others)[:, np.newaxis] * along(WEIGHTS, others)
        # The more of them there are, the more of the load is at rest.
        share = np.clip(others / self.requests, 0.0, 1.0) * ((number == resting) & (self.steady.first < np.inf))
        going_on = self.steady.token - self.steady.longer / np.maximum(run.output - 1.0, 1.0)
        rested = where(given > 0, self.steady.longer, 0.0) + going_on * given
        answer = answer + share[:, np.newaxis] * (rested - answer)
        # Answers of one token have none after it; where all are, the next would take as long as where load goes on.
        more = (given > 0).any(axis=0)
        token = np.where(more, answer / tokens, self.steady.token)
        of_tokens = of_lengths * np.where(more, given > 0, 1.0)
        per_token = scattered(*(part.reshape(-1, *others.shape) for part in (token, scatter, of_tokens)))
        percentile, seconds = 1.0 - run.traffic.beyond, times[-1] + others / np.minimum(self.rate, self.largest)
        mean_first, mean_answer = (
            weighted_mean(values, shares, others.ndim),
            weighted_mean(answer, of_lengths, others.ndim),
        )
        waiting = (self.over("waiting") * self.steps[0].time + begin * waits).sum(axis=0)
        # Steps of time blur long prompts of a few requests: none takes longer than all of them.
        return Finite(
            first=np.minimum(mean_first, seconds),
            first_percentile=np.minimum(weighted_percentile(values, shares, percentile), seconds),
            token=weighted_mean(token, of_tokens, others.ndim),
            token_percentile=weighted_percentile(*per_token, percentile),
            request=np.minimum(mean_first + mean_answer, seconds),
            seconds=seconds,
            running=(busy + others * mean_answer) / seconds,
            waiting=(waiting + others * parts.mean(axis=0)) / seconds,
        )
