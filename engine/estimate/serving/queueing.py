"""Waiting of requests: before prompts are read, and before the cache has room for them."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.numeric import Number

LEAST = np.finfo(float).eps


@equation(
    "wait = rate · work^2 · (1 + spread^2) / (2 · (1 - rate · work)) if rate · work < 1 else inf",
    unit="s",
    source="Pollaczek 1930, Khinchine 1932: Poisson arrivals, one server, any service time",
)
def reading_wait(rate: Number, work: Number, spread: Number) -> Number:
    """Seconds in which a prompt waits for those before it, the mean.

    Args:
        rate: requests that arrive in a second.
        work: seconds of reading one prompt.
        spread: standard deviation of its length over the mean, from 0.
    """
    idle = 1.0 - rate * work
    return np.where(idle > 0, rate * work**2 * (1.0 + spread**2) / (2.0 * np.maximum(idle, LEAST)), np.inf)


@equation(
    "wait = (1 + spread^2) / 2 · (rate / largest)^(sqrt(2 · (slots + 1)) - 1) / (largest - rate) "
    "if rate < largest else inf",
    unit="s",
    source="Sakasegawa 1977: Poisson arrivals, several servers",
)
def slot_wait(rate: Number, largest: Number, slots: Number, spread: Number) -> Number:
    """Seconds in which a request waits until the engine takes it up, the mean.

    Args:
        rate: requests that arrive in a second.
        largest: requests it answers in a second at most.
        slots: requests at work at once at most.
        spread: standard deviation of an answer's length over the mean, from 0.
    """
    left = np.maximum(largest - rate, LEAST * largest)
    power = np.sqrt(2.0 * (slots + 1.0)) - 1.0
    full = np.minimum(rate / largest, 1.0)
    return np.where(rate < largest, (1.0 + spread**2) / 2.0 * full**power / left, np.inf)


@equation(
    "response = (work · slots - rest + sqrt((work · slots - rest)^2 + 4 · work · rest)) / 2",
    unit="s",
    source="Schweitzer 1979: mean value analysis of a closed network, one server and a delay",
)
def closed_response(work: Number, rest: Number, slots: Number) -> Number:
    """Seconds from a request's start until its prompt is read, where each answer is followed by the next request.

    Args:
        work: seconds of reading one prompt.
        rest: seconds of the rest of a request.
        slots: requests at work at once.
    """
    ahead = work * slots - rest
    return (ahead + np.sqrt(ahead**2 + 2.0 * 2.0 * work * rest)) / 2.0


@equation(
    "wait = max(requests - slots, 0) / rate",
    unit="s",
    source="Little 1961: those that do not run wait",
)
def closed_wait(requests: Number, slots: Number, rate: Number) -> Number:
    """Seconds in which a request waits until the cache has room, where each answer is followed by the next request.

    Args:
        requests: requests at once.
        slots: those that run.
        rate: requests answered in a second.
    """
    return np.maximum(requests - slots, 0.0) / rate


@equation(
    "time = service · (1 + deviations · spread) + wait / busy · max(0, ln(busy / beyond))",
    unit="s",
    source="a wait is none, or exponential: heavy traffic, Kingman 1962; lengths are normal",
    part="computation.infer.time_to_first_token_percentile_seconds",
)
def percentile_seconds(
    service: Number, spread: Number, deviations: Number, wait: Number, busy: Number, beyond: Number
) -> Number:
    """Seconds until the first token that all but a share of the requests keep to.

    Args:
        service: seconds without waiting, the mean.
        spread: standard deviation of a prompt's length over the mean, from 0.
        deviations: standard deviations that a normal distribution has its percentile above the mean.
        wait: seconds of waiting, the mean.
        busy: share of the requests that wait at all.
        beyond: share that may take longer.
    """
    exceeded = np.maximum(np.log(busy / beyond), 0.0)
    return service * np.maximum(1.0 + deviations * spread, 0.0) + np.where(exceeded > 0, wait / busy * exceeded, 0.0)


@equation(
    "time = wait + turn + reading",
    unit="s",
    source="a request waits for room and for the prompts before it, for the pass at work, and is read",
    part="computation.infer.time_to_first_token_seconds",
)
def first_token_seconds(wait: Number, turn: Number, reading: Number) -> Number:
    """Seconds from a request's arrival to its first token, the mean.

    Args:
        wait: seconds of waiting.
        turn: seconds until the pass at work has ended.
        reading: seconds of reading its prompt.
    """
    return wait + turn + reading


@equation(
    "time = (answering + (seconds - answering) · (1 - 1 / running)) / tokens",
    unit="s",
    source="one pass for each token, and the prompts of others that are read between",
    part="computation.infer.time_per_output_token_seconds",
)
def loaded_token_seconds(seconds: Number, answering: Number, running: Number, tokens: Number) -> Number:
    """Seconds between two output tokens of a sequence under a load, the mean.

    Args:
        seconds: seconds in which as many requests are answered as run at once.
        answering: seconds of it that passes for their answers take alone.
        running: requests that run at once.
        tokens: tokens of an answer after the first.
    """
    return (answering + (seconds - answering) * (1.0 - 1.0 / running)) / tokens


@equation(
    "time = first + tokens · each",
    unit="s",
    source="the first token, and then one after another",
    part="computation.infer.request_seconds",
)
def request_seconds(first: Number, tokens: Number, each: Number) -> Number:
    """Seconds from a request's arrival to its last token, the mean.

    Args:
        first: seconds to its first token.
        tokens: tokens of an answer after the first.
        each: seconds of each of them.
    """
    return first + tokens * each
