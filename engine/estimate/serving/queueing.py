"""Waiting of requests: before prompts are read, before the cache has room for them, and of many that come at once."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.derivation import equation, formula, unrecorded
from capacity_tui.engine.estimate.serving.finite_load import Finite, Steady
from capacity_tui.engine.estimate.serving.pass_times import (
    LEAST,
    WEIGHTS,
    Floats,
    Passes,
    along,
    answer_passes,
    mixes_prompts,
    pass_times,
    room_in_pass,
    scattered,
    weighted_mean,
    weighted_percentile,
)
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.numeric import Number

EPSILON = np.finfo(float).eps


@equation
def reading_wait(rate: Number, work: Number, spread: Number) -> Number:
    """Seconds in which a prompt waits for those before it, the mean."""
    idle = 1.0 - rate * work
    return np.where(idle > 0, rate * work**2 * (1.0 + spread**2) / (2.0 * np.maximum(idle, EPSILON)), np.inf)


mean_pass = formula()
pass_at_random = formula()  # Seconds of the pass that is at work at a random moment, the mean
pass_wait = formula()  # Seconds until the pass at work has ended, the mean
shared_pass_wait = formula()  # Seconds that the prompts of others add to the pass that reads a prompt, the mean


@equation
def slot_wait(rate: Number, largest: Number, slots: Number, spread: Number) -> Number:
    """Seconds in which a request waits until the engine takes it up, the mean."""
    left = np.maximum(largest - rate, EPSILON * largest)
    power = np.sqrt(2.0 * (slots + 1.0)) - 1.0
    full = np.minimum(rate / largest, 1.0)
    return np.where(rate < largest, (1.0 + spread**2) / 2.0 * full**power / left, np.inf)


@equation
def closed_response(work: Number, rest: Number, slots: Number) -> Number:
    """Seconds from a request's start until its prompt is read, where each answer is followed by the next request."""
    ahead = work * slots - rest
    return (ahead + np.sqrt(ahead**2 + 2.0 * 2.0 * work * rest)) / 2.0


closed_rate = formula()  # Requests answered in a second, where each answer is followed by the next request

# Seconds in which a request waits until the cache has room, where each answer is followed by the next request.
closed_wait = formula()
first_token_seconds = formula()  # Seconds from a request's arrival to its first token, the mean
followed_seconds = formula()
started_seconds = formula()  # Seconds from the start of a running request to its first token, the mean


@equation
def loaded_token_seconds(answer: Number, tokens: Number, step: Number) -> Number:
    """Seconds between two output tokens of a sequence under a load, the mean."""
    return np.where(answer > 0, answer / tokens, step)


request_seconds = formula()  # Seconds from a request's arrival to its last token, the mean
following_prompts = formula()  # Seconds by which an answer takes longer since its request waited for others


@equation
def skewed_percentile(fixed: Number, mean: Number, scatter: Number, deviations: Number) -> Number:
    """Seconds that all but a share of the requests keep to, where nobody waits for room."""
    width = np.log(1.0 + (scatter / np.where(mean > 0, mean, 1.0)) ** 2)
    return fixed + mean * np.exp(deviations * np.sqrt(width) - width / 2.0)


@equation
def room_percentile(wait: Number, busy: Number, beyond: Number) -> Number:
    """Seconds of waiting for room that all but a share of the requests keep to."""
    exceeded = np.maximum(np.log(busy / beyond), 0.0)
    return np.where(exceeded > 0, wait / busy * exceeded, 0.0)


# Places in the order of those that come together at which they are looked at.
PLACES = 32


def burst_load(run: ServingRun, held: Number, steady: Steady) -> Finite:
    """Return what requests see of one replica; ``steady`` is what they would see, did the load go on."""
    with unrecorded():
        like = np.zeros_like(np.asarray(steady.stay + run.users + run.requests + run.traffic.beyond, dtype=np.float64))
        return _Burst(run, held + like, steady, like).seen()


class _Burst:
    """The first requests in the order in which they are read; the first axis of arrays is that of places in it."""

    def __init__(self, run: ServingRun, held: Floats, steady: Steady, like: Floats) -> None:
        self.run, self.steady = run, steady
        self.requests = run.requests + like
        self.users = np.maximum(np.minimum(run.users, self.requests), 1.0)
        self.placed = np.minimum(self.users, np.maximum(held, 1.0))
        # Answers that end before the last prompt is read run with no more prompts than are read meanwhile.
        room = np.minimum(room_in_pass(run, 0.0), self.placed)
        alongside = np.minimum(self.placed / 2.0, np.maximum(room * run.decode_steps, 1.0))
        self.passes: Passes = pass_times(run, self.placed, alongside, self.placed)
        self.mixes = mixes_prompts(run) + like
        self.in_pass = np.minimum(self.passes.room(alongside), self.placed)
        self.alongside = np.maximum(self.in_pass * run.decode_steps, 1.0)
        self.of_prompt = self.passes.of_prompt(self.in_pass)
        self.all_passes = self._passes_of(self.placed - LEAST)
        self.read = self._seconds(self.all_passes)
        self.lengths = answer_passes(run, like)

    def _passes_of(self, order: Floats) -> Floats:
        """Return the passes until a prompt is read: whole ones, or parts of the last where a prompt takes several."""
        several = (np.floor(order) + 1.0) / np.minimum(self.in_pass, 1.0)
        before = np.floor(order / np.maximum(self.in_pass, 1.0))
        return np.asarray(np.where(self.in_pass >= 1.0, before + self.of_prompt, several))

    def _seconds(self, passes: Floats) -> Floats:
        """Return the seconds of the first so many passes; those who have been read answer in them where they mix."""
        prompts = np.minimum(passes * self.in_pass, self.placed)
        full = np.where(self.in_pass >= 1.0, np.floor(prompts / self.in_pass + LEAST), prompts / self.in_pass)
        rest = np.maximum(prompts - full * self.in_pass, 0.0)
        last = np.where(rest > LEAST * self.placed, self.passes.read(np.maximum(rest, self.passes.fewest)), 0.0)
        answers = self.passes.answer(np.clip((passes - 1.0) * self.in_pass / 2.0, 1.0, self.alongside))
        return np.asarray(full * self.passes.read(self.in_pass) + last + self.mixes * passes * answers)

    def _draining(self, running: Floats) -> Floats:
        """Return the seconds until answers of each length end, where nobody follows those that have ended."""
        alive = along(np.cumsum(WEIGHTS[::-1])[::-1].copy(), running) * running
        steps = np.diff(self.lengths, axis=0, prepend=0.0)
        return np.cumsum(steps * self.passes.answer(np.maximum(alive, 1.0)), axis=0)

    def _waves(self, once: Floats) -> Floats:
        """Return the seconds in which all requests are answered together, so many at a time, the last ones fewer."""
        waves = np.floor(self.requests / self.users + LEAST)
        fewer = np.minimum(np.maximum(self.requests - waves * self.users, 0.0), self.placed)
        last = self._seconds(self._passes_of(np.maximum(fewer - LEAST, 0.0))) + self._draining(fewer)[-1]
        return np.asarray(waves * once + np.where(fewer >= 1.0, last, fewer * once / self.users))

    def seen(self) -> Finite:
        """Return what the requests saw."""
        run, steady, users = self.run, self.steady, self.users
        largest = steady.largest + 0.0 * users
        others = np.where(steady.locked, 0.0, np.maximum(self.requests - users, 0.0))
        order = along((np.arange(PLACES) + 0.5) / PLACES, users) * users
        # Of those the cache has no place for at first some begin with every answer, or a group when one has ended.
        groups = np.floor(order / self.placed) * steady.locked
        passes = self._passes_of(np.minimum(order - groups * self.placed, self.placed - LEAST))
        own, begun, draining = self._seconds(self.of_prompt), self._seconds(passes), self._draining(self.placed)
        waits = (order >= self.placed) & ~np.asarray(steady.locked)
        first = np.where(waits, order / largest + own, groups * (self.read + draining[-1]) + begun)
        # While the rest is read those that mix get a token a pass, others none.
        rest = np.where(waits, 0.0, np.maximum(self.all_passes - passes, 0.0))[:, np.newaxis]
        reading = np.where(waits, 0.0, np.maximum(self.read - begun, 0.0))[:, np.newaxis]
        rides = np.minimum(self.mixes * rest, self.lengths)
        reading = np.where(self.mixes > 0, reading * rides / np.maximum(rest, LEAST), reading)
        left = (self.lengths - rides) / np.maximum(self.lengths, LEAST)
        # Those that go on with others see what these see; where nobody follows, fewer and fewer run.
        behind = np.where(steady.locked, 0.0, self.requests - np.maximum(order, self.placed))
        followed = np.clip(behind / self.placed, 0.0, 1.0)[:, np.newaxis]
        given = self.lengths * run.accepted
        going_on = followed * given * steady.token + (1.0 - followed) * draining
        answer = np.where(given > 0, reading + left * going_on, 0.0)
        of_first = np.broadcast_to(users / PLACES, first.shape)
        scatter = self.passes.read(self.in_pass) / self.in_pass * run.prompt_spread * np.sqrt(order + 1.0)
        firsts = scattered(first, scatter, of_first)
        after = scattered(*((part + 0.0 * users)[np.newaxis] for part in (steady.first, steady.first_scatter, others)))
        values, shares = (np.concatenate(both) for both in zip(firsts, after, strict=True))
        more = (given > 0).any(axis=0)
        token = np.where(more, answer / np.maximum(given, 1.0), steady.token)
        of_token = of_first[:, np.newaxis] * along(WEIGHTS, users) * np.where(more, given > 0, 1.0)
        flat = (-1, *users.shape)
        later = scattered(*((part + 0.0 * users)[np.newaxis] for part in (steady.token, steady.token_scatter, others)))
        tokens = np.concatenate([token.reshape(flat), later[0]])
        of_tokens = np.concatenate([of_token.reshape(flat), later[1]])
        percentile = 1.0 - run.traffic.beyond
        mean_first, mean_token = weighted_mean(values, shares, users.ndim), weighted_mean(tokens, of_tokens, users.ndim)
        by_length = along(WEIGHTS, users) + 0.0 * given
        # Short answers wait for the rest of the prompts as long as others do: a mean token times a length is too long.
        later_answer = steady.token * weighted_mean(given, by_length, users.ndim)
        first_answer = weighted_mean(answer.mean(axis=0), by_length, users.ndim)
        mean_answer = first_answer + others / (users + others) * (later_answer - first_answer)
        once = self.read + np.where(more, draining[-1], 0.0) + np.maximum(users - self.placed, 0.0) / largest
        seconds = np.where(run.output_spread <= 0, self._waves(once), once + others / largest)
        return Finite(
            first=mean_first,
            first_percentile=weighted_percentile(values, shares, percentile),
            token=mean_token,
            token_percentile=weighted_percentile(tokens, of_tokens, percentile),
            request=mean_first + mean_answer,
            seconds=seconds,
            running=self.requests * (mean_answer + own) / seconds,
            waiting=self.requests * np.maximum(mean_first - own, 0.0) / seconds,
        )
