"""Waiting of requests: before prompts are read, and before the cache has room for them."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.numeric import Number

LEAST = np.finfo(float).eps


@equation
def reading_wait(rate: Number, work: Number, spread: Number) -> Number:
    """Seconds in which a prompt waits for those before it, the mean."""
    idle = 1.0 - rate * work
    return np.where(idle > 0, rate * work**2 * (1.0 + spread**2) / (2.0 * np.maximum(idle, LEAST)), np.inf)


mean_pass = formula()
pass_at_random = formula()  # Seconds of the pass that is at work at a random moment, the mean
pass_wait = formula()  # Seconds until the pass at work has ended, the mean
shared_pass_wait = formula()  # Seconds that the prompts of others add to the pass that reads a prompt, the mean


@equation
def slot_wait(rate: Number, largest: Number, slots: Number, spread: Number) -> Number:
    """Seconds in which a request waits until the engine takes it up, the mean."""
    left = np.maximum(largest - rate, LEAST * largest)
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
