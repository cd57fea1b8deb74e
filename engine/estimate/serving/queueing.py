"""Waiting of requests: before prompts are read, and before the cache has room for them."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number

LEAST = np.finfo(float).eps


@equation(
    "wait = rate · work^2 · (1 + spread^2) / (2 · (1 - rate · work)) if rate · work < 1 else inf",
    unit="s",
    source="Pollaczek 1930, Khinchine 1932: Poisson arrivals, one server, any service time",
    rate="requests that arrive in a second",
    work=("seconds of reading one prompt", "s"),
    spread="standard deviation of its length over the mean, from 0",
)
def reading_wait(rate: Number, work: Number, spread: Number) -> Number:
    """Seconds in which a prompt waits for those before it, the mean."""
    idle = 1.0 - rate * work
    return np.where(idle > 0, rate * work**2 * (1.0 + spread**2) / (2.0 * np.maximum(idle, LEAST)), np.inf)


mean_pass = formula(
    "seconds = (reading · runs + step · steps) / (runs + steps)",
    unit="s",
    source="mean of the passes of a round",
    reading=("seconds of a pass that reads prompts", "s"),
    runs="how many of them",
    step=("seconds of a pass for answers alone", "s"),
    steps="how many of them",
)

# Seconds of the pass that is at work at a random moment, the mean.
pass_at_random = formula(
    "seconds = (reading^2 · runs + step^2 · steps) / (reading · runs + step · steps) "
    "+ rate · prompt^2 · (spread^2 + min(1, prompts)) / max(1 - (rate · prompt)^2, least)",
    unit="s",
    source="a random moment falls into a pass in proportion to its length: Feller 1971; each pass reads the prompts "
    "that came during the one before, whose number scatters as its mean",
    reading=("seconds of a pass that reads prompts", "s"),
    runs="how many of them",
    step=("seconds of a pass for answers alone", "s"),
    steps="how many of them",
    rate="prompts that come in a second",
    prompt=("seconds that a prompt adds to a pass", "s"),
    spread="standard deviation of its length over the mean, from 0",
    prompts="prompts that come during a pass",
    least="share of the time that is taken to be free of prompts at least",
)

# Seconds until the pass at work has ended, the mean.
pass_wait = formula(
    "wait = busy · seconds / 2",
    unit="s",
    source="what is left of a pass at a random moment",
    busy="share of the requests that meet one",
    seconds=("seconds of the pass", "s", ("pass_at_random", "mean_pass")),
)

# Seconds that the prompts of others add to the pass that reads a prompt, the mean.
shared_pass_wait = formula(
    "wait = busy · prompts · prompt",
    unit="s",
    source="the prompts that come during a pass are read together in the next one",
    busy="share of the requests that wait for a pass",
    prompts="prompts of others that come during one",
    prompt=("seconds that each adds", "s"),
)


@equation(
    "wait = (1 + spread^2) / 2 · (rate / largest)^(sqrt(2 · (slots + 1)) - 1) / (largest - rate) "
    "if rate < largest else inf",
    unit="s",
    source="Sakasegawa 1977: Poisson arrivals, several servers",
    rate="requests that arrive in a second",
    largest="requests it answers in a second at most",
    slots="requests at work at once at most",
    spread="standard deviation of an answer's length over the mean, from 0",
)
def slot_wait(rate: Number, largest: Number, slots: Number, spread: Number) -> Number:
    """Seconds in which a request waits until the engine takes it up, the mean."""
    left = np.maximum(largest - rate, LEAST * largest)
    power = np.sqrt(2.0 * (slots + 1.0)) - 1.0
    full = np.minimum(rate / largest, 1.0)
    return np.where(rate < largest, (1.0 + spread**2) / 2.0 * full**power / left, np.inf)


@equation(
    "response = (work · slots - rest + sqrt((work · slots - rest)^2 + 4 · work · rest)) / 2",
    unit="s",
    source="Schweitzer 1979: mean value analysis of a closed network, one server and a delay",
    work=("seconds of reading one prompt", "s"),
    rest=("seconds of the rest of a request", "s"),
    slots="requests at work at once",
)
def closed_response(work: Number, rest: Number, slots: Number) -> Number:
    """Seconds from a request's start until its prompt is read, where each answer is followed by the next request."""
    ahead = work * slots - rest
    return (ahead + np.sqrt(ahead**2 + 2.0 * 2.0 * work * rest)) / 2.0


# Requests answered in a second, where each answer is followed by the next request.
closed_rate = formula(
    "rate = min(running / seconds, requests / (host + seconds))",
    unit="requests/s",
    source="Little 1961: a request is at the host or runs, others than those that run wait",
    requests="requests at once",
    running="those that run at most",
    host=("seconds for which the host has a request before and after it runs", "s"),
    seconds=("seconds for which it runs", "s"),
)

# Seconds in which a request waits until the cache has room, where each answer is followed by the next request.
closed_wait = formula(
    "wait = max(requests / rate - host - seconds, 0)",
    unit="s",
    source="Little 1961: those that do not run wait",
    requests="requests at once",
    rate=("requests answered in a second", "", "closed_rate"),
    host=("seconds for which the host has a request before and after it runs", "s"),
    seconds=("seconds for which it runs", "s"),
)

# Seconds from a request's arrival to its first token, the mean.
first_token_seconds = formula(
    "time = host + wait + turn + reading",
    unit="s",
    source="a request is taken in, waits for room and for the prompts before it, for the pass at work, and is read",
    part=Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    host=("seconds in which the host takes it in and sends its first text", "s"),
    wait=("seconds of waiting", "s", "closed_wait"),
    turn=("seconds until the pass at work has ended", "s"),
    reading=("seconds of reading its prompt", "s", "started_seconds"),
)

followed_seconds = formula(
    "time = host + followed",
    unit="s",
    source="a load that ends: its requests are followed from the first that comes until the last is answered",
    host=("seconds in which the host takes a request in and sends its first text", "s"),
    followed=("seconds in the engine, the mean or at the percentile, of all requests from ramp-up to drain", "s"),
)

# Seconds from the start of a running request to its first token, the mean.
started_seconds = formula(
    "time = min(max(reading, seconds - slowest), seconds - fastest)",
    unit="s",
    source="the rest is the answer's, whose passes are no shorter than those for answers alone, and no longer than "
    "those that read prompts too; without any a request is read alone",
    reading=("seconds in which its prompt is read, those it waits for other prompts included", "s"),
    seconds=("seconds for which it runs", "s"),
    fastest=("seconds that the passes of its answer alone would take", "s"),
    slowest=("seconds that they take where each reads prompts too; infinite where answers stand still meanwhile", "s"),
)


@equation(
    "time = answer / tokens if answer > 0 else step",
    unit="s",
    source="one pass for each token, and the prompts of others that are read between",
    part=Figure.TIME_PER_OUTPUT_TOKEN_SECONDS,
    answer=("seconds from its first token to its last", "s"),
    tokens="tokens of an answer after the first",
    step=("seconds of the next token, of an answer that has one alone", "s"),
)
def loaded_token_seconds(answer: Number, tokens: Number, step: Number) -> Number:
    """Seconds between two output tokens of a sequence under a load, the mean."""
    return np.where(answer > 0, answer / tokens, step)


# Seconds from a request's arrival to its last token, the mean.
request_seconds = formula(
    "time = host + wait + seconds",
    unit="s",
    source="a request waits, and then runs as long as as many are answered as run at once",
    part=Figure.REQUEST_SECONDS,
    host=("seconds in which the host takes it in and sends its first text", "s"),
    wait=("seconds of waiting", "s"),
    seconds=("seconds in which it runs", "s"),
)

# Seconds by which an answer takes longer since its request waited for others.
following_prompts = formula(
    "seconds = waited · rate · prompt / max(1 - rate · prompt, least)",
    unit="s",
    source="delay busy period, Conway et al. 1967: prompts that came while a request waited are read while it answers",
    waited=("seconds of waiting", "s"),
    rate="prompts that come in a second",
    prompt=("seconds that each adds to passes", "s"),
    least="share of the time that is taken to be free of prompts at least",
)


@equation(
    "time = fixed + mean · exp(deviations · sqrt(ln(1 + (scatter / mean)^2)) - ln(1 + (scatter / mean)^2) / 2) "
    "if mean > 0 else fixed",
    unit="s",
    source="waits and lengths are skewed to the right: lognormal with the mean and deviation of their sum",
    fixed=("seconds that are the same for all", "s"),
    mean=("seconds beyond these, the mean", "s"),
    scatter=("standard deviation of these, s", "s"),
    deviations="standard deviations that a normal distribution has its percentile above the mean",
)
def skewed_percentile(fixed: Number, mean: Number, scatter: Number, deviations: Number) -> Number:
    """Seconds that all but a share of the requests keep to, where nobody waits for room."""
    width = np.log(1.0 + (scatter / np.where(mean > 0, mean, 1.0)) ** 2)
    return fixed + mean * np.exp(deviations * np.sqrt(width) - width / 2.0)


@equation(
    "time = wait / busy · max(0, ln(busy / beyond))",
    unit="s",
    source="a wait for room is none, or exponential: heavy traffic, Kingman 1962",
    wait=("seconds of waiting, the mean", "s", "slot_wait"),
    busy="share of the requests that wait at all",
    beyond="share that may take longer",
)
def room_percentile(wait: Number, busy: Number, beyond: Number) -> Number:
    """Seconds of waiting for room that all but a share of the requests keep to."""
    exceeded = np.maximum(np.log(busy / beyond), 0.0)
    return np.where(exceeded > 0, wait / busy * exceeded, 0.0)
