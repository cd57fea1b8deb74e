"""Speeds of serving, from the times of prefill and decode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.estimate.ranges import Ranges
from capacity_tui.engine.estimate.result import InferenceSpeed
from capacity_tui.engine.estimate.work import Loaded, Served
from capacity_tui.engine.keys import SERVING
from capacity_tui.engine.numeric import Number, where
from capacity_tui.engine.plan import InferenceSection
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import PERCENT

prefill_rate = formula()
decode_rate = formula()
output_token_seconds = formula()  # Seconds between two output tokens of a sequence
request_rate = formula()
answered_rate = formula()  # Requests answered a second under a load, over all replicas
output_rate = formula()
batch_first_token_seconds = formula()  # Seconds from a batch's arrival to the first token of its sequences, the mean
all_requests_seconds = formula()  # Seconds in which all requests of a load that ends are answered


def inference_speed(served: Served, phases: Mapping[str, Number], seconds: Number, ranges: Ranges) -> InferenceSpeed:
    """Return the speeds of serving.

    Args:
        phases: seconds of prefill, and of one decode step where any output is generated.
        seconds: seconds of a whole batch.
        ranges: of measured over predicted.
    """

    def ranged(name: str, value: Number) -> Interval:
        return ranges.of(f"{SERVING}.{name}").around(value)

    first, step, loaded = phases["prefill"], phases.get("decode"), served.loaded
    output = between = None
    if step is not None:
        drafts = served.drafts * phases.get("draft", step) / step
        token_seconds = output_token_seconds(step, drafts, served.accepted)
        if loaded is not None:
            # Where a load says nothing of a second token, a step alone tells what one would take.
            token_seconds = where(loaded.token_seconds > 0, loaded.token_seconds, token_seconds)
            slowest = where(loaded.token_seconds > 0, loaded.token_seconds_percentile, token_seconds)
            loaded = replace(loaded, token_seconds=token_seconds, token_seconds_percentile=slowest)
        output = ranged("decode_tokens_per_second", decode_rate(served.running, token_seconds))
        between = ranged("time_per_output_token_seconds", token_seconds)
    start = (
        batch_first_token_seconds(served.host_seconds, first, served.waves, seconds)
        if loaded is None
        else loaded.first_token
    )
    read = prefill_rate(served.batch, served.prompt, first if loaded is None else loaded.reading)
    answered = (
        ranged("requests_per_second", request_rate(served.replicas, served.batch * served.waves, seconds))
        if loaded is None
        else _answered(loaded, ranged("requests_per_second", loaded.largest_rate))
    )
    speed = InferenceSpeed(
        prefill_tokens_per_second=ranged("prefill_tokens_per_second", read),
        decode_tokens_per_second=output,
        time_to_first_token_seconds=ranged("time_to_first_token_seconds", start),
        time_per_output_token_seconds=between,
        requests_per_second=answered,
        output_tokens_per_second=(
            None
            if step is None
            else Interval(*(output_rate(rate, served.output) for rate in (answered.value, answered.low, answered.high)))
        ),
    )
    return speed if loaded is None else _under_load(speed, served, loaded, ranged)


def _answered(loaded: Loaded, largest: Interval) -> Interval:
    """Return the requests answered a second under a load: never more than arrive, at the ends of the range too.

    Where each follows an answer, more arrive as more are answered.
    """
    rate = answered_rate(loaded.arriving, largest.value)
    if loaded.follows:
        return Interval(rate, *(rate * end / largest.value for end in (largest.low, largest.high)))
    return Interval(rate, *(np.minimum(loaded.arriving, end) for end in (largest.low, largest.high)))


def _under_load(
    speed: InferenceSpeed, served: Served, loaded: Loaded, ranged: Callable[[str, Number], Interval]
) -> InferenceSpeed:
    """Return speeds with what requests see under a load."""
    return replace(
        speed,
        request_seconds=ranged("request_seconds", loaded.request),
        time_to_first_token_percentile_seconds=ranged(
            "time_to_first_token_percentile_seconds", loaded.first_token_percentile
        ),
        time_per_output_token_percentile_seconds=(
            ranged("time_per_output_token_percentile_seconds", loaded.token_seconds_percentile)
            if speed.time_per_output_token_seconds
            else None
        ),
        largest_requests_per_second=ranged("requests_per_second", loaded.largest_rate),
        running_requests=served.replicas * loaded.running,
        waiting_requests=served.replicas * loaded.waiting,
        percentile=PERCENT * (1.0 - served.beyond),
        all_requests_seconds=_until_the_last(served.requests, speed.requests_per_second),
    )


def _until_the_last(requests: Number, rate: Interval) -> Interval | None:
    """Return the time of all requests where their number is known."""
    if not np.all(np.isfinite(requests)):
        return None
    return Interval(*(all_requests_seconds(requests, speed) for speed in (rate.value, rate.high, rate.low)))


FIRST, PER_TOKEN, WHOLE = "time_to_first_token", "time_per_output_token", "request"


def limits_of(inference: InferenceSection) -> dict[str, float]:
    """Return the limits that a plan gives, in seconds by the figure's first words."""
    given = {FIRST: inference.ttft_seconds, PER_TOKEN: inference.tpot_seconds, WHOLE: inference.request_seconds}
    return {name: limit for name, limit in given.items() if limit is not None}


def limited(speed: InferenceSpeed, name: str) -> tuple[str, Number] | None:
    """Return the figure that a limit is for, its key and value: at the percentile under a load; None without one.

    Of whole requests only the mean is known, and that under a load alone.
    """
    for key in (f"{name}_percentile_seconds", f"{name}_seconds"):
        reached = getattr(speed, key, None)
        if reached is not None:
            return f"{SERVING}.{key}", reached.value
    return None


def missed(inference: InferenceSection, speed: InferenceSpeed) -> Number:
    """Return by how much limits are exceeded in all, as a share of each; 0 where all are kept."""
    total: Number = 0.0
    for name, limit in limits_of(inference).items():
        reached = limited(speed, name)
        if reached is not None:
            total = total + np.maximum(reached[1] / limit - 1.0, 0.0)
    return total
