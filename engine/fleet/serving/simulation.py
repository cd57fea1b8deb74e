"""Replicas that answer requests pass by pass, many side by side as arrays: continuous batching as engines do it.

Requests wait in the order in which they come until a place is free. A pass reads what it has room for of the prompts
that have a place, and gives every sequence that answers its next token, in the same pass where the engine mixes them.
A sequence gets a token with every such pass, so that the pass in which it ends is known when it begins: of the
sequences at work only their number and the tokens of their contexts are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.fleet.serving.requests import Requests, Whole
from capacity_tui.engine.fleet.serving.step_times import StepTimes
from capacity_tui.engine.solve.space import Floats

# Stands for no time where something is divided by it.
SHORTEST = 1e-12
# Passes after which replicas that have done all that counts are left out.
LOOK_AGAIN = 64
# Passes that are worked at once where nobody comes and nobody ends, at most.
AHEAD = np.arange(1, 33)
# Passes that are made room for at first.
FIRST_ROOM = 4096
# Tokens that a pass of an engine without an end to them reads at most.
LARGEST_BUDGET = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What became of the requests that count.

    Attributes:
        replicas: the replica of each.
        first: seconds from its arrival to its first token.
        each: seconds of each token after the first; nan where there is none.
        busy: seconds in which each replica works.
        clock: seconds that each replica was watched.
    """

    replicas: Whole
    first: Floats
    each: Floats
    busy: Floats
    clock: Floats


def simulate(requests: Requests, times: StepTimes, slots: Whole, reading: Floats, answering: Floats) -> Answered:
    """Return when requests get their tokens.

    Args:
        requests: of each replica.
        times: of a pass.
        slots: most sequences at work at once, of each replica.
        reading: times of passes that read prompts over those of the table, of each replica.
        answering: the same of passes that read none.
    """
    return _Replicas(requests, times, slots, reading, answering).run()


class _Replicas:
    """The state of all replicas: an entry of each array is one of them."""

    def __init__(self, requests: Requests, times: StepTimes, slots: Whole, reading: Floats, answering: Floats) -> None:
        self.requests, self.times, self.flat = requests, times, times.flat
        count = slots.size
        self.slots, self.reading, self.answering = slots.astype(np.int64), reading, answering
        self.budget = int(min(times.budget, LARGEST_BUDGET))
        # Requests of all replicas in one row; arrivals with an end to each replica's.
        self.first_of, self.own = requests.starts[:-1], np.arange(count)
        self.arrivals = np.insert(requests.arrivals, requests.starts[1:], np.inf)
        self.tokens = np.concatenate([[0], np.cumsum(requests.prompts), [LARGEST_BUDGET]])
        self.passes = np.ceil((requests.outputs - 1) / times.accepted).astype(np.int64)
        self.ring = int(self.passes.max(initial=0)) + 2
        counting = np.flatnonzero(requests.counts)
        self.last = self.first_of.copy()
        np.maximum.at(self.last, requests.replicas[counting], counting + 1)
        self.clock, self.busy = np.zeros(count), np.zeros(count)
        self.come, self.done, self.ended = self.first_of.copy(), self.first_of.copy(), self.first_of.copy()
        self.upcoming = self.arrivals[self.come + self.own]
        self.read = self.tokens[self.first_of]
        self.passed, self.until = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.context = np.zeros(count)
        self.ending, self.leaving = np.zeros(count * self.ring, np.int64), np.zeros(count * self.ring)
        self.history = np.zeros((FIRST_ROOM, count))
        self.first_token = np.full(requests.arrivals.size, np.inf)
        self.joined = np.zeros(requests.arrivals.size, np.int64)

    def run(self) -> Answered:
        """Work pass by pass until all requests that count are answered."""
        number = 0
        while number % LOOK_AGAIN or np.any((self.done < self.last) | (self.passed < self.until)):
            self._pass()
            number += 1
        return self._answered()

    def _pass(self) -> None:
        late = self.upcoming <= self.clock
        while late.any():
            self.come += late
            self.upcoming = self.arrivals.take(self.come + self.own)
            late = self.upcoming <= self.clock
        running = self.done - self.ended
        # Who has come and has a place.
        placed = np.minimum(self.come, self.ended + self.slots)
        waiting = self.tokens.take(placed) - self.read
        room = np.maximum(self.budget - running, 1) if self.times.mixes else self.budget
        taken = np.minimum(waiting, room)
        reads, works = taken > 0, (running + taken) > 0
        contexts = self.context / np.maximum(running, 1)
        seconds = self.flat.take(self.times.places(running, contexts, taken))
        seconds = np.where(works, seconds * np.where(reads, self.reading, self.answering), 0.0)
        answers = works if self.times.mixes else works & ~reads
        alike = np.where(works & ~reads, self._alike(seconds), 1)
        spent = alike * seconds
        self.busy += spent
        # Where nobody is at work time goes on to the next request, and stands still behind the last.
        ahead = np.where(np.isfinite(self.upcoming), self.upcoming, self.clock)
        self.clock = np.where(works, self.clock + spent, ahead)
        self._answer(running, alike * answers)
        if reads.any():
            self.read += taken
            self._read()

    def _alike(self, seconds: Floats) -> Whole:
        """Return how many passes follow each other until somebody comes or ends."""
        places = (self.passed[:, None] + AHEAD) % self.ring + (self.own * self.ring)[:, None]
        ends = self.ending.take(places) > 0
        to_end = np.where(ends.any(axis=1), ends.argmax(axis=1) + 1, AHEAD.size)
        until = np.ceil((self.upcoming - self.clock) / np.maximum(seconds, SHORTEST))
        return np.asarray(np.minimum(to_end, np.maximum(until, 1.0)).astype(np.int64))

    def _answer(self, running: Whole, passes: Whole) -> None:
        """Give every sequence at work its next tokens, and end those whose last one it is."""
        self.passed += passes
        idle = passes == 0
        if int(self.passed.max(initial=0)) >= self.history.shape[0] - 1:
            self.history = np.concatenate([self.history, np.zeros_like(self.history)])
        count = self.own.size
        # Of replicas that give none now the place is that of a pass which has not been.
        self.history.reshape(-1)[(self.passed + idle) * count + self.own] = self.clock
        place = self.own * self.ring + (self.passed + idle * (self.ring - 1)) % self.ring
        ending = self.ending.take(place)
        self.context += passes * running * self.times.accepted - self.leaving.take(place)
        self.ended += ending
        self.ending[place] = 0
        self.leaving[place] = 0.0

    def _read(self) -> None:
        """Let prompts that are read have their first token, and a pass for each of the others from then on."""
        whose = np.flatnonzero(self.tokens.take(self.done + 1) <= self.read)
        while whose.size:
            which = self.done[whose]
            passed, passes, prompts = self.passed[whose], self.passes[which], self.requests.prompts[which]
            self.first_token[which] = self.clock[whose]
            self.joined[which] = passed
            self.done[whose] += 1
            goes_on = passes > 0
            place = whose * self.ring + (passed + passes) % self.ring
            self.ending[place] += goes_on
            self.leaving[place] += goes_on * (prompts + passes * self.times.accepted)
            self.context[whose] += goes_on * prompts
            self.ended[whose] += ~goes_on
            last = np.where(which < self.last[whose], passed + passes, 0)
            self.until[whose] = np.maximum(self.until[whose], last)
            whose = whose[self.tokens[which + 2] <= self.read[whose]]

    def _answered(self) -> Answered:
        requests = self.requests
        which = np.flatnonzero(requests.counts)
        whose = requests.replicas[which]
        last = self.history[self.joined[which] + self.passes[which], whose]
        tokens = requests.outputs[which] - 1
        first = self.first_token[which] - requests.arrivals[which]
        each = np.where(tokens > 0, (last - self.first_token[which]) / np.maximum(tokens, 1), np.nan)
        return Answered(whose, first, each, self.busy, self.clock)


def percentile_by(values: Floats, groups: Whole, count: int, percent: float) -> Floats:
    """Return a percentile of each of several groups of values; nan where a group has none.

    Args:
        values: of all groups.
        groups: the group of each.
        count: how many groups.
        percent: the percentile.
    """
    known = ~np.isnan(values)
    order = np.lexsort((values[known], groups[known]))
    ordered, sizes = values[known][order], np.bincount(groups[known], minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = starts + np.clip(np.ceil(sizes * percent / 100.0).astype(np.int64) - 1, 0, np.maximum(sizes - 1, 0))
    found: NDArray[np.float64] = np.full(count, np.nan)
    found[sizes > 0] = ordered[place[sizes > 0]]
    return found
