"""Replicas that answer requests pass by pass, many side by side as arrays: continuous batching as engines do it.

Requests wait in the order in which they come until a place is free. A pass reads what it has room for of the prompts
that have a place, and gives every sequence that answers its next token, in the same pass where the engine mixes them.
A sequence gets a token with every such pass, so that the pass in which it ends is known when it begins: of the
sequences at work only their number and the tokens of their contexts are kept.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.estimate.serving import ServingRun, decode_pass, decode_phase, reading_phase
from capacity_tui.engine.estimate.timing import phase_time
from capacity_tui.engine.fleet.serving.question import Requests, Whole
from capacity_tui.engine.numeric import Number, largest
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.space import Floats

SHORTEST = 1e-12  # Stands for no time where something is divided by it
LOOK_AGAIN = 64  # Passes after which replicas that have done all that counts are left out
AHEAD = np.arange(1, 33)  # Passes that are worked at once where nobody comes and nobody ends, at most
FIRST_ROOM = 4096  # Passes that are made room for at first
LARGEST_BUDGET = 2**62  # Tokens that a pass of an engine without an end to them reads at most


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What became of the requests that count."""

    replicas: Whole
    first: Floats  # seconds from its arrival to its first token
    per_token: Floats  # seconds of each token after the first; nan where there is none
    busy: Floats  # seconds in which each replica works
    clock: Floats  # seconds that each replica was watched


def simulate(requests: Requests, times: StepTimes, slots: Whole, reading: Floats, answering: Floats) -> Answered:
    """Return when requests get their tokens.

    Args:
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
        seconds = self.flat.take(self.times.indices(running, contexts, taken))
        seconds = np.where(works, seconds * np.where(reads, self.reading, self.answering), 0.0)
        answers = works if self.times.mixes else works & ~reads
        alike = np.where(works & ~reads, self._repeated_passes(seconds), 1)
        spent = alike * seconds
        self.busy += spent
        # Where nobody is at work time goes on to the next request, and stands still behind the last.
        ahead = np.where(np.isfinite(self.upcoming), self.upcoming, self.clock)
        self.clock = np.where(works, self.clock + spent, ahead)
        self._answer(running, alike * answers)
        if reads.any():
            self.read += taken
            self._read()

    def _repeated_passes(self, seconds: Floats) -> Whole:
        """Return how many passes follow each other until somebody comes or ends."""
        indices = (self.passed[:, None] + AHEAD) % self.ring + (self.own * self.ring)[:, None]
        ends = self.ending.take(indices) > 0
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
        index = self.own * self.ring + (self.passed + idle * (self.ring - 1)) % self.ring
        ending = self.ending.take(index)
        self.context += passes * running * self.times.accepted - self.leaving.take(index)
        self.ended += ending
        self.ending[index] = 0
        self.leaving[index] = 0.0

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
            index = whose * self.ring + (passed + passes) % self.ring
            self.ending[index] += goes_on
            self.leaving[index] += goes_on * (prompts + passes * self.times.accepted)
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
        result = np.where(tokens > 0, (last - self.first_token[which]) / np.maximum(tokens, 1), np.nan)
        return Answered(whose, first, result, self.busy, self.clock)


def percentile_by(values: Floats, groups: Whole, count: int, percent: float) -> Floats:
    """Return a percentile of each of several groups of values; nan where a group has none."""
    known = ~np.isnan(values)
    order = np.lexsort((values[known], groups[known]))
    ordered, sizes = values[known][order], np.bincount(groups[known], minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    index = starts + np.clip(np.ceil(sizes * percent / 100.0).astype(np.int64) - 1, 0, np.maximum(sizes - 1, 0))
    result: NDArray[np.float64] = np.full(count, np.nan)
    result[sizes > 0] = ordered[index[sizes > 0]]
    return result


SEQUENCES, CONTEXTS, CHUNKS = 24, 7, 13  # Places of the table: between two of them times are as good as straight lines
CONTEXT_CELLS, CHUNK_CELLS = 24, 48  # Cells in which the simulation looks contexts and chunks of prompts up
NEARLY_NONE = 1e-3  # Stands for no sequence where rates are divided by what is at work


@dataclass(frozen=True, slots=True, eq=False)
class StepTimes:
    """Seconds of a pass as one array; a place of it is sequences, cell of context, cell of prompts."""

    # by sequences that get their next token, cell of their mean context, and cell of tokens of prompts; the first cell
    # of prompts is a pass that reads none
    seconds: Floats
    context_cell: float  # tokens of a cell of context
    chunk_cell: float  # tokens of a cell of prompts
    slots: int  # most sequences at work at once
    budget: float  # most tokens of a pass, of prompts and answers together
    mixes: bool  # whether a pass that reads prompts gives others their next token too
    accepted: float = 1.0  # tokens a sequence gets from one pass

    @property
    def flat(self) -> Floats:
        """The times as one row."""
        return self.seconds.ravel()

    def indices(self, sequences: NDArray[np.int64], contexts: Floats, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where in the row the times of some passes stand.

        Args:
            sequences: that get their next token.
            contexts: mean tokens in the cache of each.
            tokens: of prompts that the pass reads.
        """
        _, depth, width = self.seconds.shape
        context = np.minimum((contexts / self.context_cell).astype(np.int64), depth - 1)
        chunk = np.minimum(np.ceil(tokens / self.chunk_cell).astype(np.int64), width - 1)
        return np.asarray((sequences * depth + context) * width + chunk, dtype=np.int64)


def step_times(run: ServingRun, slots: int, longest: float, largest_chunk: float) -> StepTimes:
    """Return the times of the passes of a replica, all by the equations of a single estimate.

    Args:
        slots: most sequences at work at once.
        longest: tokens of the longest context.
        largest_chunk: tokens of prompts that a pass reads at most.
    """
    budget = largest(run.runtime.chunk_tokens) * float(run.layout.pp)
    mixes = bool(np.any(run.runtime.mixes_prefill > 0)) and not run.shape.encoder_layers
    most = min(budget, largest_chunk) if budget else largest_chunk
    sequences = np.unique(np.concatenate([[0.0], np.round(np.geomspace(1.0, max(slots, 2), SEQUENCES))]))
    contexts = np.linspace(1.0, longest, CONTEXTS)
    chunks = np.unique(np.round(np.geomspace(1.0, max(most, 2.0), CHUNKS)))
    answering = _answering(run, sequences[:, None], contexts[None, :])
    reading = _reading(run, sequences[:, None, None], contexts[None, :, None], chunks[None, None, :], mixes)
    context_cell, chunk_cell = longest / CONTEXT_CELLS, most / CHUNK_CELLS
    wanted = (np.arange(slots + 1.0), _middles(CONTEXT_CELLS, context_cell), _middles(CHUNK_CELLS, chunk_cell))
    alone = _along(_along(answering, sequences, wanted[0], 0), contexts, wanted[1], 1)
    mixed = reading
    for axis, (have, want) in enumerate(zip((sequences, contexts, chunks), wanted, strict=True)):
        mixed = _along(mixed, have, want, axis)
    seconds = np.concatenate([alone[:, :, None], mixed], axis=2)
    return StepTimes(seconds, context_cell, chunk_cell, slots, budget or np.inf, mixes, largest(run.accepted))


def _answering(run: ServingRun, sequences: Floats, contexts: Floats) -> Floats:
    """Return the seconds of passes that give sequences their next tokens, the draft's guesses included."""
    loaded = replace(run, batch=np.maximum(sequences, 1.0), prompt=contexts, output=0.0)
    seconds = phase_time(decode_phase("decode", loaded, 1.0, run.guessing.tokens)).seconds
    if np.any(run.guessing.tokens > 0):
        seconds = seconds + run.guessing.drafts * phase_time(decode_phase("draft", loaded, 1.0, 0.0)).seconds
    return _over(seconds, sequences, contexts)


def _reading(run: ServingRun, sequences: Floats, contexts: Floats, chunks: Floats, mixes: bool) -> Floats:
    """Return the seconds of passes that read prompts, beside answers where the engine mixes them."""
    busy = np.maximum(sequences, NEARLY_NONE)
    groups = np.minimum(run.layout.pp, np.maximum(sequences, 1.0))
    answers = None
    if mixes:
        held = replace(run, prompt=contexts, output=0.0)
        answers = decode_pass(held, busy / groups, run.guessing.tokens)
    # Where answers stand still meanwhile, the host is busy with prompts alone.
    at_work = busy if mixes else np.maximum(chunks / run.fresh, 1.0)
    seconds = phase_time(reading_phase(run, chunks / groups, answers, at_work / groups, groups)).seconds
    return _over(seconds, sequences, contexts, chunks)


def _middles(cells: int, size: float) -> Floats:
    return np.asarray((np.arange(cells) + 0.5) * size, dtype=np.float64)


def _over(seconds: Number, *axes: Floats) -> Floats:
    return np.array(np.broadcast_to(seconds, np.broadcast_shapes(*(axis.shape for axis in axes))), dtype=np.float64)


def _along(values: Floats, have: Floats, want: Floats, axis: int) -> Floats:
    """Return values read off along one axis; beyond its ends as at them."""
    index = np.clip(np.interp(want, have, np.arange(have.size)), 0, have.size - 1)
    low = np.minimum(index.astype(np.int64), have.size - 2) if have.size > 1 else np.zeros(want.size, np.int64)
    high = np.minimum(low + 1, have.size - 1)
    share = (index - low).reshape([-1 if entry == axis else 1 for entry in range(values.ndim)])
    below, above = np.take(values, low, axis), np.take(values, high, axis)
    return np.asarray(below + share * (above - below))
