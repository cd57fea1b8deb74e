"""Times of passes by what they read and answer, lengths of answers, and statistics of requests: of many plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.estimate.serving.operators import decode_pass
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.serving.speed import decode_phase, reading_phase
from capacity_tui.engine.estimate.timing.schedule import phase_time
from capacity_tui.engine.numeric import Number, any_true, where
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
