"""The steady state of a replica under a load: how many requests run, how long they wait, where it saturates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.estimate.equation import equation, unrecorded
from capacity_tui.engine.estimate.serving.memory import room_in_cache
from capacity_tui.engine.estimate.serving.queueing import (
    closed_rate,
    closed_reading,
    closed_response,
    closed_wait,
    first_token_seconds,
    loaded_token_seconds,
    pass_wait,
    percentile_seconds,
    reading_wait,
    request_seconds,
    slot_wait,
    started_seconds,
)
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.serving.speed import loaded_phases
from capacity_tui.engine.estimate.timing.schedule import phase_time
from capacity_tui.engine.estimate.work import Collective, Loaded, Phase
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number, added, any_true, where

# Halvings of the range in which the number of running requests is looked for.
HALVINGS = 24
# Numbers of running requests of which the best is taken, and those that are then tried around it.
TRIED, AROUND = 33, 17
# Share by which rates differ that are the same but for rounding.
ROUNDING = 33 * np.finfo(float).eps
# Rounds that are worked out in one call at most.
AT_ONCE = 2**15
# Share of the time below which a rest is what they left.
NOTHING = 2.0 ** -(HALVINGS // 2)


@dataclass(frozen=True, slots=True)
class Round:
    """The time in which as many requests are answered as run at once.

    Attributes:
        running: requests that run at once.
        phases: its passes.
        seconds: all of it.
        answering: the passes of an answer, were they for answers alone.
        rest: the same passes, some of which read prompts too.
        reading: one pass that reads prompts.
        passes: such passes for one prompt.
        step: one pass for answers.
    """

    running: Number
    phases: tuple[Phase, ...]
    seconds: Number
    answering: Number
    rest: Number
    reading: Number
    passes: Number
    step: Number

    @property
    def work(self) -> Number:
        """Seconds of reading for each prompt, in passes that others share."""
        return self.reading * self.passes

    @property
    def read(self) -> Number:
        """Seconds of the passes that read a prompt."""
        return self.reading * np.maximum(self.passes, 1.0)

    @property
    def busy(self) -> Number:
        """Share of the time in which prompts are read."""
        return np.minimum(self.running * self.work / self.seconds, 1.0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a request of one replica waits for, in seconds, the mean.

    Attributes:
        queue: until it starts.
        turn: until the pass at work has ended.
        started: from its start to its first token.
        service: what of all this every request has to wait for.
        queued: what of it is a wait for others, and may be longer or shorter.
        longest: most that this may be; infinite where any number of requests may come.
    """

    queue: Number
    turn: Number
    started: Number
    service: Number
    queued: Number
    longest: Number


@equation(
    "running = min(concurrency, max(held, 1))",
    unit="requests",
    source="what the cache does not hold waits",
)
def most_running(concurrency: Number, held: Number) -> Number:
    """Requests that run at once at most.

    Args:
        concurrency: requests at work at once, or that the engine takes up.
        held: sequences that the cache holds.
    """
    return np.minimum(concurrency, np.maximum(held, 1.0))


@equation("rate = running / seconds", unit="requests/s", source="Little 1961", units={"seconds": "s"})
def round_rate(running: Number, seconds: Number) -> Number:
    """Requests that one replica answers in a second.

    Args:
        running: requests that run at once.
        seconds: seconds in which as many are answered.
    """
    return running / seconds


def steady_state(run: ServingRun) -> tuple[ServingRun, tuple[Phase, ...], Loaded]:
    """Return the run with the requests that are at work at once, its passes, and what requests see of it."""
    traffic, host = run.traffic, run.runtime.request_seconds
    slots = _best(run, most_running(run.slots, room_in_cache(run)))
    full = _round(run, slots)
    largest = round_rate(slots, full.seconds)
    if traffic.arrives:
        now, rate = _round(run, _running(run, slots)), np.minimum(run.rate, largest)
        waiting = _arriving(run, now, full, largest)
        crowd = np.clip(now.running + traffic.deviations * np.sqrt(now.running), 1.0, slots)
        crowded = _round(run, crowd)
    else:
        # What the host is at with requests leaves fewer of them running, as do fewer users than replicas.
        now = _round(run, _running(run, slots)) if any_true(host > 0) else full
        rate = largest = closed_rate(run.users, now.running, host, now.seconds)
        crowded = now
        waiting = _returning(run, now, rate)
    first = first_token_seconds(host, waiting.queue, waiting.turn, waiting.started)
    tokens = np.maximum(run.output - 1.0, 1.0)
    each = loaded_token_seconds(now.seconds - waiting.started, tokens, now.step / run.accepted)
    crowded_started = started_seconds(crowded.read, crowded.seconds, crowded.answering)
    slowly = loaded_token_seconds.for_part(Figure.TIME_PER_OUTPUT_TOKEN_PERCENTILE_SECONDS)(
        crowded.seconds - crowded_started, tokens, crowded.step / run.accepted
    )
    busy = np.clip(rate / largest, traffic.beyond, 1.0) if traffic.arrives else 1.0
    slow = percentile_seconds(
        host + waiting.service,
        run.prompt_spread,
        traffic.deviations,
        waiting.queued,
        busy,
        traffic.beyond,
        waiting.longest,
    )
    # Above the median no share of the requests ends sooner than their mean.
    beyond_mean = traffic.deviations >= 0
    seen = Loaded(
        reading=now.running * now.work,
        running=rate * now.seconds,
        waiting=rate * (host + waiting.queue + waiting.turn),
        arriving=traffic.rate if traffic.arrives else np.inf,
        largest_rate=run.layout.dp * largest,
        first_token=first,
        first_token_percentile=np.maximum(slow, first) if beyond_mean else slow,
        token_seconds=each,
        token_seconds_percentile=np.maximum(slowly, each) if beyond_mean else slowly,
        request=request_seconds(host, waiting.queue + waiting.turn, now.seconds),
    )
    return replace(run, batch=now.running), (*now.phases, *_idle(rate, now)), seen


def _arriving(run: ServingRun, now: Round, full: Round, largest: Number) -> Waiting:
    """Return the waits of requests that come of themselves: for a slot, or for the prompts before them."""
    prompts = np.maximum(1.0 / full.passes, 1.0)
    slot = slot_wait(run.rate, largest, full.running, run.output_spread)
    queue = np.maximum(slot, reading_wait(run.rate, full.work, run.prompt_spread))
    queue = queue + pass_wait(now.busy, now.reading, prompts)
    turn = np.minimum(now.running - 1.0, 1.0) * where(run.decode_steps > 0, now.step, 0.0) / 2.0
    started = started_seconds(now.read, now.seconds, now.answering)
    return Waiting(queue, turn, started, turn + started, queue, np.inf)


def _returning(run: ServingRun, now: Round, rate: Number) -> Waiting:
    """Return the waits of requests each of which follows an answer: for a slot, and for the other slots' prompts."""
    room = closed_wait(run.users, rate, run.runtime.request_seconds, now.seconds)
    reading = closed_reading(now.seconds, closed_response(now.work, now.rest, now.running), now.rest)
    started = started_seconds(np.maximum(reading, now.read), now.seconds, now.answering)
    own = np.minimum(now.read, started)
    return Waiting(room, 0.0, started, room + own, started - own, np.maximum(now.running * now.work - own, 0.0))


def _best(run: ServingRun, slots: Number) -> Number:
    """Return how many of all slots answer most requests: more leave less room in a pass, or take other kernels."""
    with unrecorded():
        slots = slots + np.zeros_like(_round(run, slots).seconds)
        best = _of_most_answers(run, np.geomspace(np.ones_like(slots), slots, TRIED))
        if not any_true(best < slots):
            return slots
        step = slots ** (1.0 / (TRIED - 1.0))
        around = np.geomspace(np.maximum(best / step, 1.0), np.minimum(best * step, slots), AROUND)
        return _of_most_answers(run, np.concatenate([around, best[np.newaxis]]))


def _of_most_answers(run: ServingRun, tried: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return which numbers of running requests answer most, the largest of equals; they run over the first axis."""
    pieces = np.array_split(tried, min(len(tried), 1 + tried.size // AT_ONCE))
    rates = np.concatenate([round_rate(part, _round(run, part).seconds) for part in pieces])
    is_best = rates >= rates.max(axis=0) * (1.0 - ROUNDING)
    best: NDArray[np.float64] = np.max(np.where(is_best, tried, 0.0), axis=0)
    return best


def _running(run: ServingRun, slots: Number) -> Number:
    """Return how many requests run at once: as many as arrive are answered then, or all users are at work."""
    host = run.runtime.request_seconds
    low, high = np.ones_like(slots + run.rate), slots + 0.0 * run.rate
    with unrecorded():
        for _ in range(HALVINGS):
            middle = np.sqrt(low * high)
            rate = round_rate(middle, _round(run, middle).seconds)
            enough = rate >= run.rate if run.traffic.arrives else middle + host * rate >= run.users
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _round(run: ServingRun, running: Number) -> Round:
    run = replace(run, batch=running)
    phases = loaded_phases(run)
    times = {phase.name: phase_time(phase).seconds for phase in phases}
    seconds = added(phase.runs * times[phase.name] for phase in phases)
    step = times.get("decode", 0.0) + run.guessing.drafts * times.get("draft", 0.0)
    answering = run.decode_steps * step
    alone = next((phase.runs for phase in phases if phase.name == "decode"), 0.0)
    rest = answering + (run.decode_steps - alone) * (times["prefill"] - times.get("decode", 0.0))
    return Round(running, phases, seconds, answering, rest, times["prefill"], phases[0].runs / running, step)


def _idle(rate: Number, now: Round) -> tuple[Phase, ...]:
    """Return the time in which no request is at work, where fewer come than one alone keeps busy."""
    rest = np.maximum(now.running / rate - now.seconds, 0.0)
    idle = where(rest > now.seconds * NOTHING, rest, 0.0)
    if not any_true(idle > 0):
        return ()
    return (Phase("idle", (), (Collective("waiting for a request", "idle", idle),)),)
