"""Requests drawn at random: when they come, and how long their prompts and answers are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.solve.space import Floats

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long prompts and answers are: gamma distributed, which is exponential where deviation and mean are the same.

    Attributes:
        prompt, prompt_deviation: tokens of a prompt that are read: mean and standard deviation.
        output, output_deviation: the same of an answer.
    """

    prompt: float
    prompt_deviation: float
    output: float
    output_deviation: float


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Requests of several replicas, one replica after another, each in the order of arrival.

    Attributes:
        starts: place of each replica's first request, and one more at the end.
        arrivals: seconds at which they arrive, each replica's from 0.
        prompts: tokens that are read.
        outputs: tokens of the answers.
        counted_from, counted_to: seconds between which requests count, of each replica.
    """

    starts: Whole
    arrivals: Floats
    prompts: Whole
    outputs: Whole
    counted_from: Floats
    counted_to: Floats

    @property
    def replicas(self) -> Whole:
        """The replica of each request."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))

    @property
    def counts(self) -> NDArray[np.bool_]:
        """Which requests count: none of the time in which a replica fills, and none of that in which it empties."""
        whose = self.replicas
        return (self.arrivals >= self.counted_from[whose]) & (self.arrivals < self.counted_to[whose])


def steady_requests(
    rates: Floats, warm_up: float, counted: Floats, after: float, lengths: Lengths, seed: int
) -> Requests:
    """Return requests that come at random at an even rate, of each of several replicas.

    Args:
        rates: requests a second of each.
        warm_up: seconds until they count.
        counted: seconds for which they do.
        after: seconds for which more come, so that the last that count have company.
        lengths: how long they are.
        seed: of the random numbers.
    """
    draw = np.random.default_rng(seed)
    whole = warm_up + counted + after
    numbers = draw.poisson(rates * whole)
    arrivals = _in_order(draw.random(int(numbers.sum())), numbers) * np.repeat(whole, numbers)
    starts = np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64)
    ends = np.full(rates.shape, warm_up)
    return Requests(starts, arrivals, *_drawn(draw, lengths, arrivals.size), ends, ends + counted)


def varying_requests(
    rate_at: Floats, step: float, pieces: int, watched: float, warm_up: float, after: float, lengths: Lengths, seed: int
) -> Requests:
    """Return requests of one replica in even pieces of a day, which are worked side by side.

    Args:
        rate_at: requests a second in each of many even steps of the day, which repeats itself.
        step: seconds of such a step.
        pieces: how many pieces.
        watched: seconds in the middle of each in which requests count.
        warm_up: seconds for which a piece warms up on what comes before them.
        after: seconds for which a piece goes on.
        lengths: how long requests are.
        seed: of the random numbers.
    """
    draw = np.random.default_rng(seed)
    whole = rate_at.size * step
    begins = (np.arange(pieces) + 0.5) * whole / pieces - watched / 2.0 - warm_up
    # Requests to expect from the day before up to each moment of the day after.
    expected = np.concatenate([[0.0], np.cumsum(np.tile(rate_at, 3)) * step])
    times = np.arange(expected.size) * step - whole
    first, last = (np.interp(at, times, expected) for at in (begins, begins + warm_up + watched + after))
    numbers = draw.poisson(last - first)
    shares = _in_order(draw.random(int(numbers.sum())), numbers)
    at = np.repeat(first, numbers) + shares * np.repeat(last - first, numbers)
    # Steps without any request have no place of their own among those expected.
    rising = np.concatenate([[True], np.diff(expected) > 0])
    arrivals = np.interp(at, expected[rising], times[rising]) - np.repeat(begins, numbers)
    starts = np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64)
    warm = np.full(pieces, warm_up)
    return Requests(starts, arrivals, *_drawn(draw, lengths, arrivals.size), warm, warm + watched)


def _in_order(shares: Floats, numbers: Whole) -> Floats:
    """Return random numbers sorted within each of several groups."""
    groups = np.repeat(np.arange(numbers.size), numbers)
    return np.asarray(np.sort(groups + shares) - groups)


def _drawn(draw: np.random.Generator, lengths: Lengths, count: int) -> tuple[Whole, Whole]:
    return (
        _tokens(draw, lengths.prompt, lengths.prompt_deviation, count),
        _tokens(draw, lengths.output, lengths.output_deviation, count),
    )


def _tokens(draw: np.random.Generator, mean: float, deviation: float, count: int) -> Whole:
    """Return lengths of at least one token whose mean and standard deviation are given."""
    if deviation <= 0:
        return np.full(count, max(round(mean), 1), np.int64)
    shape = (mean / deviation) ** 2
    return np.maximum(np.rint(draw.gamma(shape, mean / shape, count)), 1.0).astype(np.int64)
