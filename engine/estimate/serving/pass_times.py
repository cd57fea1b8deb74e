"""Times of passes by what they read and answer, and rounds of a replica: as many are answered as run at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.estimate.derivation import equation, formula, unrecorded
from capacity_tui.engine.estimate.serving.operators import decode_pass
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.serving.speed import decode_phase, loaded_phases, reading_phase
from capacity_tui.engine.estimate.timing.schedule import phase_time
from capacity_tui.engine.estimate.work import Phase
from capacity_tui.engine.numeric import Number, added, any_true, where
from capacity_tui.engine.record import dataclass

Floats = NDArray[np.float64]

# Numbers of sequences, and of prompts in one pass, at which passes are worked out.
SEQUENCES, PROMPTS = 10, 6
# Prompts in one pass that are looked at in any case.
FEW = 4.0
# Rounds in which a distribution below the longest answer is found that has the mean and the spread that were said.
ROUNDS = 6
# Deviations at which scatter is looked at, and the share of the requests that each stands for.
SCATTER = np.linspace(-2.4, 2.4, 9)
WEIGHTS = np.exp(-(SCATTER**2) / 2.0) / np.exp(-(SCATTER**2) / 2.0).sum()
LEAST = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """Seconds of passes: for answers by sequences, and what prompts add to one by their number, from fewest to most.

    Through stages there are as many passes side by side as ``groups``; sequences and prompts are those of all of them.
    """

    run: ServingRun
    groups: Floats
    answering: Floats
    reading: Floats
    slots: Floats
    fewest: Floats
    most: Floats

    def answer(self, sequences: Floats) -> Floats:
        """Return the seconds of a pass that gives so many sequences their next token."""
        return _between(self.answering, np.ones_like(self.slots), self.slots, sequences)

    def read(self, prompts: Floats) -> Floats:
        """Return the seconds that so many prompts add to passes, or take in some of their own."""
        return _between(self.reading, self.fewest, self.most, prompts)

    def room(self, running: Floats) -> Floats:
        """Return how many prompts passes have room for at most where so many sequences run."""
        return np.minimum(room_in_pass(self.run, running / self.groups) * self.groups, self.most)

    def whole(self, room: Floats, together: Number = 1.0) -> Floats:
        """Return the seconds in which a prompt goes through every stage, in one pass or several one after another.

        Args:
            room: prompts for which passes have room.
            together: prompts in the same pass.
        """
        return self.read(np.minimum(together * self.groups, room)) * self.of_prompt(room)

    def of_prompt(self, room: Floats) -> Floats:
        """Return the passes that a prompt takes one after another, where there is room for so many prompts."""
        return np.maximum(self.groups / room, 1.0)


def room_in_pass(run: ServingRun, running: Number) -> Number:
    """Return how many prompts a pass has room for beside the answers of those that run, where it gives them any.

    Where prompts fill every pass answers take their share of its tokens, as in the steady state.
    """
    mixes = mixes_prompts(run)
    budget = where(run.runtime.chunk_tokens > 0, run.runtime.chunk_tokens, np.inf)
    share = run.fresh / (run.fresh + mixes * run.decode_steps)
    tokens = np.maximum(np.maximum(budget - mixes * running, budget * share), 1.0)
    return np.maximum(tokens / run.fresh, LEAST)


def _between(table: Floats, low: Floats, high: Floats, value: Floats) -> Floats:
    """Return what a table over geometric steps from low to high says of values; beyond its ends as at them."""
    width = np.maximum(np.log(high / low), LEAST)
    place = np.clip(np.log(np.maximum(value, low) / low) / width, 0.0, 1.0) * (len(table) - 1)
    index = np.minimum(place.astype(np.int64), len(table) - 2)
    rows = index.reshape(-1, *low.shape)
    before, after = (np.take_along_axis(table, row, 0).reshape(index.shape) for row in (rows, rows + 1))
    return np.asarray(before + (place - index) * (after - before))


def pass_times(run: ServingRun, slots: Floats, alongside: Number, requests: Number) -> Passes:
    """Return the seconds of passes up to as many sequences as there are places."""
    sequences = slots ** along(np.linspace(0.0, 1.0, SEQUENCES), slots)
    answering = phase_time(decode_phase("decode", replace(run, batch=sequences), 1.0, run.guessing.tokens)).seconds
    if any_true(run.guessing.tokens > 0):
        drafts = phase_time(decode_phase("draft", replace(run, batch=sequences), 1.0, 0.0)).seconds
        answering = answering + run.guessing.drafts * drafts
    mixes = mixes_prompts(run)
    groups = np.minimum(run.layout.pp, np.maximum(alongside, 1.0)) + 0.0 * slots
    most = np.minimum(room_in_pass(run, 0.0), np.maximum(requests, FEW)) * groups
    fewest = np.minimum(np.minimum(1.0, room_in_pass(run, slots / groups)), most)
    prompts = fewest * (most / fewest) ** along(np.linspace(0.0, 1.0, PROMPTS), slots)
    answers = decode_pass(run, alongside / groups, run.guessing.tokens) if any_true(mixes > 0) else None
    at_work = np.maximum(prompts, 1.0) + mixes * alongside
    reading = phase_time(reading_phase(run, prompts * run.fresh / groups, answers, at_work / groups, groups)).seconds
    if answers is not None:
        alone = phase_time(decode_phase("decode", replace(run, batch=alongside), 1.0, run.guessing.tokens)).seconds
        reading = np.maximum(reading - mixes * alone, 0.0)
    whole = np.broadcast_shapes(np.shape(answering), sequences.shape)
    return Passes(
        run,
        groups,
        np.array(np.broadcast_to(answering, whole), dtype=np.float64),
        np.array(np.broadcast_to(reading, (PROMPTS, *whole[1:])), dtype=np.float64),
        slots,
        fewest,
        most,
    )


def mixes_prompts(run: ServingRun) -> Number:
    """Return 1 where passes that read prompts give answers too."""
    return 0.0 if run.shape.encoder_layers else run.runtime.mixes_prefill


def answer_passes(run: ServingRun, like: Floats) -> Floats:
    """Return passes of answers at some deviations: their logit below the longest is normal; far from it, lognormal."""
    shares, deviations = along(WEIGHTS, like), along(SCATTER, like)
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
    # What is left by rounding of an answer of one token is none.
    further = part * longest - 1.0
    return np.asarray(np.where(further > LEAST, further, 0.0) / run.accepted)


def along(row: Floats | NDArray[np.int64], like: Floats) -> Floats:
    """Return a row over the first axis, the others being those of plans."""
    return np.asarray(row, dtype=np.float64).reshape((-1,) + (1,) * like.ndim)


def weighted_mean(values: Floats, weights: Floats, plans: int) -> Floats:
    """Return the weighted mean over all axes but the last ones, which are those of plans."""
    axes = tuple(range(weights.ndim - plans))
    return np.asarray((values * weights).sum(axis=axes) / np.maximum(weights.sum(axis=axes), LEAST))


def read_off(value: Floats, of: Floats, other: Floats) -> Floats:
    """Return for values of one rising row what the other says there; beyond its ends as at them."""
    shape, value = value.shape, value.reshape(-1, *of.shape[1:])
    index = np.clip((of[np.newaxis] <= value[:, np.newaxis]).sum(axis=1) - 1, 0, len(of) - 2)
    low, high = np.take_along_axis(of, index, 0), np.take_along_axis(of, index + 1, 0)
    share = np.clip((value - low) / np.maximum(high - low, LEAST), 0.0, 1.0)
    before, after = np.take_along_axis(other, index, 0), np.take_along_axis(other, index + 1, 0)
    return np.asarray(before + share * (after - before)).reshape(shape)


def scattered(mean: Floats, scatter: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return values around means, skewed to the right, and how many requests each stands for; in one axis."""
    width = np.log(1.0 + (scatter / np.maximum(mean, LEAST)) ** 2)
    values = mean * np.exp(along(SCATTER, mean) * np.sqrt(width) - width / 2.0)
    shares = along(WEIGHTS, mean) * weights
    whole = (-1, *mean.shape[1:])
    return values.reshape(whole), np.broadcast_to(shares, values.shape).reshape(whole)


def weighted_percentile(values: Floats, weights: Floats, share: Number) -> Floats:
    """Return the value that a share of the weights lies below; values of no weight lie nowhere between others."""
    values = np.where(weights > 0, values, np.where(weights > 0, values, np.inf).min(axis=0))
    order = np.argsort(values, axis=0, kind="stable")  # processors sort equal values otherwise, each in its own way
    values, weights = np.take_along_axis(values, order, 0), np.take_along_axis(weights, order, 0)
    below = np.cumsum(weights, axis=0)
    below = (below - weights / 2.0) / np.maximum(below[-1], LEAST)
    wanted = np.broadcast_to(np.asarray(share, dtype=np.float64), below.shape[1:])[np.newaxis]
    return np.asarray(read_off(np.asarray(wanted), below, values)[0])


@equation
def missed_passes(host: Number, step: Number) -> Number:
    """Passes that begin before the host has sent an answer and taken in the request that follows it."""
    answers = np.greater(step, 0.0)
    return np.where(answers & np.greater(host, 0.0), host / np.where(answers, step, 1.0) + 1.0 / 2.0, 0.0)


# Full passes until a prompt is read where each follows an answer and all have one length, the mean.
passes_until_read = formula()

# Seconds to the first token that all but a share keep to, of requests that all start together.
together_percentile = formula()


# Numbers of running requests of which the best is taken, and how often as many are then tried around it.
TRIED, AROUND = 9, 2
# Share by which rates differ that are the same but for rounding.
ROUNDING = 33 * np.finfo(float).eps


@dataclass(frozen=True, slots=True)
class Round:
    """The time in which as many requests are answered as run at once."""

    running: Number  # requests that run at once
    phases: tuple[Phase, ...]  # its passes
    seconds: Number  # all of it
    answering: Number  # the passes of an answer, were they for answers alone
    reading: Number  # one pass that reads prompts
    passes: Number  # such passes for one prompt
    step: Number  # one pass for answers
    tokens: Number  # passes in which an answer is given
    steps: Number  # of these, those for answers alone
    groups: Number  # passes at work at once, one on each stage
    scheduled: Number  # passes for answers alone that the host schedules at once

    @property
    def turns(self) -> tuple[Number, Number, Number, Number]:
        """Seconds and number of the passes that read prompts, and the same of passes for answers alone, by schedule."""
        return self.reading, self.runs, self.step * self.scheduled, self.steps / self.scheduled

    @property
    def work(self) -> Number:
        """Seconds of reading for each prompt, in passes that others share."""
        return self.reading * self.passes

    @property
    def alongside(self) -> Number:
        """Seconds that the answers in a pass take which reads prompts too."""
        return where(self.runs > 0, (self.tokens - self.steps) / self.runs, 0.0) * self.step

    @property
    def prompt(self) -> Number:
        """Seconds that a prompt adds to the passes that read it."""
        return np.maximum(self.reading - self.alongside, 0.0) * self.passes

    @property
    def own(self) -> Number:
        """Seconds of the passes that read a prompt, were there no other."""
        # Passes side by side answer more, but each prompt goes through every stage.
        passes = self.passes * self.groups
        return np.maximum(self.reading - self.alongside, 0.0) * passes + self.alongside * np.maximum(passes, 1.0)

    @property
    def runs(self) -> Number:
        """Passes that read prompts."""
        return self.running * self.passes


most_running = formula()
round_rate = formula()


def best_round(run: ServingRun, full: Round) -> tuple[Number, Round]:
    """Return how many at once answer most, of all that a full round has: more leave less room in a pass.

    The rounds of numbers from one to all that were tried come with it.
    """
    with unrecorded():
        slots = full.running + np.zeros_like(full.seconds + run.runtime.request_seconds + run.rate)
        tried = round_of(run, np.geomspace(np.ones_like(slots), slots, TRIED))
        best = _of_most_answers(tried)
        step = slots ** (1.0 / (TRIED - 1.0))
        for _ in range(AROUND):
            if not any_true(best < slots):
                break
            around = np.geomspace(np.maximum(best / step, 1.0), np.minimum(best * step, slots), TRIED)
            best = _of_most_answers(round_of(run, np.concatenate([around, best[np.newaxis]])))
            step = step ** (2.0 / (TRIED - 1.0))
        return best, tried


def _of_most_answers(tried: Round) -> NDArray[np.float64]:
    """Return which numbers of running requests answer most, the largest of equals; they run over the first axis."""
    running = np.asarray(tried.running)
    rates = np.asarray(round_rate(running, np.broadcast_to(tried.seconds, running.shape)))
    is_best = rates >= rates.max(axis=0) * (1.0 - ROUNDING)
    best: NDArray[np.float64] = np.max(np.where(is_best, running, 0.0), axis=0)
    return best


def round_of(run: ServingRun, running: Number) -> Round:
    """Return the round in which so many requests run at once."""
    run = replace(run, batch=running)
    phases = loaded_phases(run)
    times = {phase.name: phase_time(phase).seconds for phase in phases}
    seconds = added(phase.runs * times[phase.name] for phase in phases)
    step = times.get("decode", 0.0) + run.guessing.drafts * times.get("draft", 0.0)
    alone = next((phase.runs for phase in phases if phase.name == "decode"), 0.0)
    passes = phases[0].runs / running
    answering = run.decode_steps * step
    groups = np.minimum(run.layout.pp, np.maximum(running, 1.0))
    scheduled = run.runtime.scheduled_passes
    return Round(
        running, phases, seconds, answering, times["prefill"], passes, step, run.decode_steps, alone, groups, scheduled
    )
