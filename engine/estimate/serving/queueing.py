"""Waiting of requests: before prompts are read, and before the cache has room for them."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number

LEAST = np.finfo(float).eps


@equation(
    "wait = rate · work^2 · (1 + spread^2) / (2 · (1 - rate · work)) if rate · work < 1 else inf",
    unit="s",
    source="Pollaczek 1930, Khinchine 1932: Poisson arrivals, one server, any service time",
    units={"work": "s"},
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
    "wait = busy · seconds / 2 · (1 - 1 / prompts)",
    unit="s",
    source="what is left of a pass at a random moment, which all that came meanwhile wait for together",
    units={"seconds": "s"},
)
def pass_wait(busy: Number, seconds: Number, prompts: Number) -> Number:
    """Seconds until a pass that reads the prompts of others has ended, the mean.

    Args:
        busy: share of the time in which such a pass is at work.
        seconds: seconds of the pass.
        prompts: prompts that a full pass reads, from 1; one alone waits in the queue of prompts.
    """
    return busy * seconds / 2.0 * (1.0 - 1.0 / prompts)


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
    units={"work": "s", "rest": "s"},
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
    "time = seconds · response / (response + rest)",
    unit="s",
    source="Little 1961: what a request runs is shared between its prompt and its answer",
    units={"seconds": "s", "response": "s", "rest": "s"},
    origins={"response": "closed_response"},
)
def closed_reading(seconds: Number, response: Number, rest: Number) -> Number:
    """Seconds of the time for which a request runs until its prompt is read, others before it included.

    Args:
        seconds: seconds for which it runs.
        response: seconds until its prompt is read, were there nothing else to wait for.
        rest: seconds of the rest of a request.
    """
    return seconds * response / (response + rest)


@equation(
    "rate = min(running / seconds, requests / (host + seconds))",
    unit="requests/s",
    source="Little 1961: a request is at the host or runs, others than those that run wait",
    units={"host": "s", "seconds": "s"},
)
def closed_rate(requests: Number, running: Number, host: Number, seconds: Number) -> Number:
    """Requests answered in a second, where each answer is followed by the next request.

    Args:
        requests: requests at once.
        running: those that run at most.
        host: seconds for which the host has a request before and after it runs.
        seconds: seconds for which it runs.
    """
    return np.minimum(running / seconds, requests / (host + seconds))


@equation(
    "wait = max(requests / rate - host - seconds, 0)",
    unit="s",
    source="Little 1961: those that do not run wait",
    units={"host": "s", "seconds": "s"},
    origins={"rate": "closed_rate"},
)
def closed_wait(requests: Number, rate: Number, host: Number, seconds: Number) -> Number:
    """Seconds in which a request waits until the cache has room, where each answer is followed by the next request.

    Args:
        requests: requests at once.
        rate: requests answered in a second.
        host: seconds for which the host has a request before and after it runs.
        seconds: seconds for which it runs.
    """
    return np.maximum(requests / rate - host - seconds, 0.0)


@equation(
    "time = service · (1 + deviations · spread) + min(wait / busy · max(0, ln(busy / beyond)), longest)",
    unit="s",
    source="a wait is none, or exponential: heavy traffic, Kingman 1962; lengths are normal",
    part=Figure.TIME_TO_FIRST_TOKEN_PERCENTILE_SECONDS,
    units={"service": "s", "wait": "s", "longest": "s"},
)
def percentile_seconds(
    service: Number, spread: Number, deviations: Number, wait: Number, busy: Number, beyond: Number, longest: Number
) -> Number:
    """Seconds until the first token that all but a share of the requests keep to.

    Args:
        service: seconds without waiting, the mean.
        spread: standard deviation of a prompt's length over the mean, from 0.
        deviations: standard deviations that a normal distribution has its percentile above the mean.
        wait: seconds of waiting, the mean.
        busy: share of the requests that wait at all.
        beyond: share that may take longer.
        longest: seconds that no request waits longer than; infinite where any number may come.
    """
    exceeded = np.maximum(np.log(busy / beyond), 0.0)
    waited = np.minimum(np.where(exceeded > 0, wait / busy * exceeded, 0.0), longest)
    return service * np.maximum(1.0 + deviations * spread, 0.0) + waited


@equation(
    "time = host + wait + turn + reading",
    unit="s",
    source="a request is taken in, waits for room and for the prompts before it, for the pass at work, and is read",
    part=Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    units={"host": "s", "wait": "s", "turn": "s", "reading": "s"},
    origins={"wait": "closed_wait", "reading": "started_seconds"},
)
def first_token_seconds(host: Number, wait: Number, turn: Number, reading: Number) -> Number:
    """Seconds from a request's arrival to its first token, the mean.

    Args:
        host: seconds in which the host takes it in and sends its first text.
        wait: seconds of waiting.
        turn: seconds until the pass at work has ended.
        reading: seconds of reading its prompt.
    """
    return host + wait + turn + reading


@equation(
    "time = min(reading, seconds - answering) if answering > 0 else seconds",
    unit="s",
    source="the rest is the answer's, which takes no less than its own passes; without any a request is read alone",
    units={"reading": "s", "seconds": "s", "answering": "s"},
)
def started_seconds(reading: Number, seconds: Number, answering: Number) -> Number:
    """Seconds from the start of a running request to its first token, the mean.

    Args:
        reading: seconds in which its prompt is read, those it waits for other prompts included.
        seconds: seconds for which it runs.
        answering: seconds that the passes of its answer alone would take.
    """
    return np.where(answering > 0, np.minimum(reading, seconds - answering), seconds)


@equation(
    "time = answer / tokens if answer > 0 else step",
    unit="s",
    source="one pass for each token, and the prompts of others that are read between",
    part=Figure.TIME_PER_OUTPUT_TOKEN_SECONDS,
    units={"answer": "s", "step": "s"},
)
def loaded_token_seconds(answer: Number, tokens: Number, step: Number) -> Number:
    """Seconds between two output tokens of a sequence under a load, the mean.

    Args:
        answer: seconds from its first token to its last.
        tokens: tokens of an answer after the first.
        step: seconds of the next token, of an answer that has one alone.
    """
    return np.where(answer > 0, answer / tokens, step)


@equation(
    "time = host + wait + seconds",
    unit="s",
    source="a request waits, and then runs as long as as many are answered as run at once",
    part=Figure.REQUEST_SECONDS,
    units={"host": "s", "wait": "s", "seconds": "s"},
)
def request_seconds(host: Number, wait: Number, seconds: Number) -> Number:
    """Seconds from a request's arrival to its last token, the mean.

    Args:
        host: seconds in which the host takes it in and sends its first text.
        wait: seconds of waiting.
        seconds: seconds in which it runs.
    """
    return host + wait + seconds
