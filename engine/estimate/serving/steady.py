"""The steady state of a replica under a load: how many requests run, how long they wait, where it saturates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from capacity_tui.engine.catalog.counts import counted
from capacity_tui.engine.estimate.equation import equation, unrecorded
from capacity_tui.engine.estimate.serving.queueing import (
    closed_response,
    closed_wait,
    first_token_seconds,
    loaded_token_seconds,
    percentile_seconds,
    reading_wait,
    request_seconds,
    slot_wait,
)
from capacity_tui.engine.estimate.serving.room import room_in_cache
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.serving.speed import loaded_phases
from capacity_tui.engine.estimate.timing.schedule import phase_time
from capacity_tui.engine.estimate.work import Collective, Loaded, Phase
from capacity_tui.engine.numeric import Number, added, any_true, where

# Where the memory of a device is not known, and any number of requests may come.
MOST_SEQUENCES = counted("most-sequences")
# Halvings of the range in which the number of running requests is looked for.
HALVINGS = 24
PERCENTILE = "computation.infer.time_per_output_token_percentile_seconds"
# Share of the time below which a rest is what they left.
NOTHING = 2.0 ** -(HALVINGS // 2)


@dataclass(frozen=True, slots=True)
class Round:
    """The time in which as many requests are answered as run at once.

    Attributes:
        phases: its passes.
        seconds: all of it.
        answering: what passes for answers alone would take.
        reading: one pass that reads prompts.
        passes: such passes for one prompt.
        step: one pass for answers.
    """

    phases: tuple[Phase, ...]
    seconds: Number
    answering: Number
    reading: Number
    passes: Number
    step: Number


@equation(
    "running = min(concurrency, max(held, 1))",
    unit="requests",
    source="what the cache does not hold waits",
)
def most_running(concurrency: Number, held: Number) -> Number:
    """Requests that run at once at most.

    Args:
        concurrency: requests at work at once, waiting ones included.
        held: sequences that the cache holds.
    """
    return np.minimum(concurrency, np.maximum(held, 1.0))


@equation("rate = running / seconds", unit="requests/s", source="Little 1961")
def round_rate(running: Number, seconds: Number) -> Number:
    """Requests that one replica answers in a second.

    Args:
        running: requests that run at once.
        seconds: seconds in which as many are answered.
    """
    return running / seconds


def steady_state(run: ServingRun) -> tuple[ServingRun, tuple[Phase, ...], Loaded]:
    """Return the run with the requests that are at work at once, its passes, and what requests see of it."""
    traffic = run.traffic
    slots = most_running(np.minimum(run.concurrency, MOST_SEQUENCES), room_in_cache(run))
    full = _round(replace(run, batch=slots))
    largest = round_rate(slots, full.seconds)
    arrives = traffic.arrives
    running = _running(run, slots) if arrives else slots
    loaded, now = replace(run, batch=running), full
    if arrives:
        now = _round(loaded)
    rate = np.minimum(run.rate, largest) if arrives else largest
    work = now.reading * now.passes
    reading = now.reading * np.maximum(now.passes, 1.0)
    if arrives:
        room: Number = 0.0
        queued = slot_wait(run.rate, largest, slots, run.output_spread)
        queued = queued + reading_wait(run.rate, work, run.prompt_spread)
    else:
        room = closed_wait(np.minimum(run.concurrency, MOST_SEQUENCES), slots, rate)
        queued = closed_response(work, now.seconds - work, slots) - work
    turn = np.minimum(running - 1.0, 1.0) * now.step / 2.0
    first = first_token_seconds(room + queued, turn, reading)
    tokens = np.maximum(run.output - 1.0, 1.0)
    each = loaded_token_seconds(now.seconds, now.answering, running, tokens)
    busy = np.clip(rate / largest, traffic.beyond, 1.0)
    slow = percentile_seconds(
        room + turn + reading, run.prompt_spread, traffic.deviations, queued, busy, traffic.beyond
    )
    crowd = np.clip(running + traffic.deviations * np.sqrt(running), 1.0, slots) if arrives else running
    crowded = _round(replace(run, batch=crowd)) if arrives else now
    seen = Loaded(
        reading=running * work,
        running=running * np.minimum(now.seconds * rate / running, 1.0),
        waiting=rate * (room + queued),
        largest_rate=run.dp * largest,
        first_token=first,
        first_token_percentile=slow,
        each_token=each,
        each_token_percentile=loaded_token_seconds.for_part(PERCENTILE)(
            crowded.seconds, crowded.answering, crowd, tokens
        ),
        request=request_seconds(first, tokens, each),
    )
    return loaded, (*now.phases, *_idle(running, rate, now)), seen


def _running(run: ServingRun, slots: Number) -> Number:
    """Return how many requests run at once, so that as many are answered as arrive; all there may be where none do."""
    low, high = np.ones_like(slots + run.rate), slots + 0.0 * run.rate
    with unrecorded():
        for _ in range(HALVINGS):
            middle = np.sqrt(low * high)
            enough = round_rate(middle, _round(replace(run, batch=middle)).seconds) >= run.rate
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _round(run: ServingRun) -> Round:
    phases = loaded_phases(run)
    times = {phase.name: phase_time(phase).seconds for phase in phases}
    seconds = added(phase.runs * times[phase.name] for phase in phases)
    step = times.get("decode", 0.0) + run.guessing.drafts * times.get("draft", 0.0)
    passes = phases[0].runs / run.batch
    # An answer of one token has no pass of its own; the next token would take one.
    answering = np.maximum(run.decode_steps, 1.0 / run.accepted) * step
    return Round(phases, seconds, answering, times["prefill"], passes, step)


def _idle(running: Number, rate: Number, now: Round) -> tuple[Phase, ...]:
    """Return the time in which no request is at work, where fewer come than one alone keeps busy."""
    rest = np.maximum(running / rate - now.seconds, 0.0)
    idle = where(rest > now.seconds * NOTHING, rest, 0.0)
    if not any_true(idle > 0):
        return ()
    return (Phase("idle", (), (Collective("waiting for a request", "idle", idle),)),)
