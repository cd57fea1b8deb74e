"""The steady state of a replica under a load: how many requests run, how long they wait, where it saturates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.derivation import unrecorded
from capacity_tui.engine.estimate.ranges import FEW
from capacity_tui.engine.estimate.serving.finite_load import Steady, finite_load
from capacity_tui.engine.estimate.serving.memory import room_in_cache
from capacity_tui.engine.estimate.serving.operators import decode_pass
from capacity_tui.engine.estimate.serving.pass_times import (
    ROUNDING,
    Round,
    best_round,
    missed_passes,
    most_running,
    passes_until_read,
    round_of,
    round_rate,
    together_percentile,
)
from capacity_tui.engine.estimate.serving.queueing import (
    EPSILON,
    burst_load,
    closed_rate,
    closed_response,
    closed_wait,
    first_token_seconds,
    followed_seconds,
    following_prompts,
    loaded_token_seconds,
    mean_pass,
    pass_at_random,
    pass_wait,
    reading_wait,
    request_seconds,
    room_percentile,
    shared_pass_wait,
    skewed_percentile,
    slot_wait,
    started_seconds,
)
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.serving.speed import reading_phase
from capacity_tui.engine.estimate.timing.schedule import phase_time
from capacity_tui.engine.estimate.work import Collective, Loaded, Phase
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Flags, Number, any_true, where
from capacity_tui.engine.record import dataclass

# Steps of false position to the number of running requests, from the two numbers tried that it lies between.
STEPS = 4
# Share of the running requests by whose number that of others, seen over the time of an answer, scatters.
LASTING = counted("lasting-scatter")
# Share of the time that is taken to be free of prompts at least, where the scatter of their number is estimated.
LEAST_FREE = counted("least-free-share")
# Prompts for which a pass has room at least where they share it.
FEWEST = 2.0
# Square of a pass over the mean square of what is left of it at a random moment.
UNIFORM = counted("uniform-square")
# Share of the time below which a rest is what they left.
NOTHING = 2.0**-12


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a request of one replica waits for, in seconds, the mean."""

    room: Number  # until the engine takes it up
    turn: Number  # until the pass at work has ended
    others: Number  # while prompts of others are read, before its own or with it
    started: Number  # from its first pass, or the first before which others are read, to its first token
    longer: Number  # by which its answer takes longer for those who came meanwhile
    turn_scatter: Number  # standard deviation of ``turn``
    others_scatter: Number  # standard deviation of ``others``
    longer_scatter: Number  # standard deviation of ``longer``
    together: Number = 0.0  # percentile of ``started`` where all requests start together, else 0


def steady_state(run: ServingRun) -> tuple[ServingRun, tuple[Phase, ...], Loaded]:
    """Return the run with the requests that are at work at once, its passes, and what requests see of it."""
    traffic, host = run.traffic, run.runtime.request_seconds
    held = room_in_cache(run)
    full = round_of(run, most_running(run.slots, held))
    slots, tried = best_round(run, full)
    if any_true(slots < full.running):
        full = round_of(run, slots)
    largest = round_rate(slots, full.seconds)
    met, scatter = round_of(run, _met(run, slots, tried)), _prompt_scatter(run)
    if traffic.arrives:
        rate = np.minimum(run.rate, largest)
        waiting = _arriving(run, met, slots, largest, scatter)
        seconds = np.minimum(met.seconds + waiting.longer, np.maximum(slots / rate, met.seconds))
        running = np.clip(rate * seconds, 1.0, slots)
        crowd = np.minimum(met.running + np.sqrt(LASTING * running), slots)
        crowded = round_of(run, crowd)
    else:
        # What the host is at with requests leaves fewer of them running, as do fewer users than replicas.
        waiting = _returning(run, met, scatter)
        running, seconds, crowded = met.running, met.seconds + waiting.longer, met
        rate = largest = closed_rate(run.users, running, host + waiting.turn, seconds)
        waiting = replace(waiting, room=closed_wait(run.users, rate, host + waiting.turn, seconds))
    now = met if running is met.running else round_of(run, running)
    first = first_token_seconds(host, waiting.room, waiting.turn, waiting.started)
    tokens = np.maximum(run.output - 1.0, 1.0)
    token = loaded_token_seconds(seconds - waiting.started, tokens, met.step / run.accepted)
    room = room_percentile(waiting.room, np.clip(rate / largest, traffic.beyond, 1.0), traffic.beyond)
    first_scatter = np.sqrt(scatter**2 + waiting.turn_scatter**2 + waiting.others_scatter**2)
    token_scatter = _token_scatter(run, met, crowded, rate, token * tokens, waiting, scatter) / tokens
    waited = host + (room if traffic.arrives else waiting.room)
    slow = skewed_percentile(waited, waiting.turn + waiting.started, first_scatter, traffic.deviations)
    if any_true(waiting.together > 0):
        slow = where(waiting.together > 0, waited + waiting.together, slow)
    slowly = skewed_percentile.for_part(Figure.TIME_PER_OUTPUT_TOKEN_PERCENTILE_SECONDS)(
        0.0, token, token_scatter, traffic.deviations
    )
    # What most requests keep to is no less than the mean that is given alongside.
    is_high = np.less_equal(traffic.beyond, FEW)
    seen = Loaded(
        reading=now.running * now.work,
        running=rate * seconds,
        waiting=rate * (host + waiting.room + waiting.turn),
        arriving=traffic.rate if traffic.arrives else np.inf,
        follows=not traffic.arrives,
        largest_rate=run.layout.dp * largest,
        first_token=first,
        first_token_percentile=where(is_high, np.maximum(slow, first), slow),
        token_seconds=token,
        token_seconds_percentile=where(is_high, np.maximum(slowly, token), slowly),
        request=request_seconds(host, waiting.room + waiting.turn, seconds),
        together=0.0 if traffic.arrives else host + run.users * _other_prompt(run, met) / 2.0,
    )
    if any_true(np.isfinite(run.requests)):
        started = waiting.room + waiting.turn + waiting.started
        locked = False if traffic.arrives else _in_lockstep(run, met.running)
        steady = Steady(
            largest=largest,
            stay=seconds,
            alongside=met.running,
            first=started,
            room=waiting.room,
            token=token,
            longer=seconds - met.seconds,
            first_scatter=first_scatter,
            token_scatter=token_scatter,
            locked=locked,
        )
        return _ending(run, seen, held, steady)
    return replace(run, batch=now.running), (*now.phases, *_idle(rate, now)), seen


def _ending(
    run: ServingRun, goes_on: Loaded, held: Number, steady: Steady
) -> tuple[ServingRun, tuple[Phase, ...], Loaded]:
    """Return the same of a load that ends: what its requests see while they ramp up, meet and drain."""
    host = run.runtime.request_seconds
    seen = (finite_load if run.traffic.arrives else burst_load)(run, held, steady)
    rate = run.requests / (seen.seconds + host)
    if not run.traffic.arrives:
        rate = np.minimum(rate, run.users / (seen.request + host))
    # As many are in flight as come in the time of a request (Little 1961); steps of time tell which of them run.
    share = seen.running / (seen.running + seen.waiting)
    running = rate * seen.request * share
    now = round_of(run, np.maximum(running, 1.0))
    # What most requests keep to is no less than the mean that is given alongside.
    is_high = run.traffic.beyond <= FEW
    first, token = (
        where(is_high, np.maximum(high, mean), high)
        for high, mean in ((seen.first_percentile, seen.first), (seen.token_percentile, seen.token))
    )
    loaded = replace(
        goes_on,
        reading=now.running * now.work,
        running=running,
        waiting=rate * (host + seen.request * (1.0 - share)),
        arriving=run.replicas * rate,
        largest_rate=np.maximum(goes_on.largest_rate, run.replicas * rate),
        first_token=followed_seconds.for_part(Figure.TIME_TO_FIRST_TOKEN_SECONDS)(host, seen.first),
        first_token_percentile=followed_seconds.for_part(Figure.TIME_TO_FIRST_TOKEN_PERCENTILE_SECONDS)(host, first),
        token_seconds=followed_seconds.for_part(Figure.TIME_PER_OUTPUT_TOKEN_SECONDS)(0.0, seen.token),
        token_seconds_percentile=followed_seconds.for_part(Figure.TIME_PER_OUTPUT_TOKEN_PERCENTILE_SECONDS)(0.0, token),
        request=followed_seconds.for_part(Figure.REQUEST_SECONDS)(host, seen.request),
    )
    return replace(run, batch=now.running), (*now.phases, *_idle(rate, now)), loaded


def _turn(run: ServingRun, met: Round) -> Number:
    """Return how long a request waits for the pass at work, where each follows an answer and a time at the host.

    Answers end where answers are given: prompts that are read in passes of their own are not met. Answers of one length
    end together: what requests miss then is counted with the prompts of others.
    """
    if not any_true(run.runtime.request_seconds > 0):
        return 0.0
    mixed, answers = mean_pass(*met.turns), met.step * met.scheduled
    seconds = where(run.runtime.mixes_prefill > 0, mixed, where(met.tokens > 0, answers, met.reading))
    wait = pass_wait((met.running - 1.0) / met.running, seconds / met.groups)
    return where(np.asarray(run.output_spread <= 0), 0.0, wait)


def _room_in_pass(run: ServingRun) -> Number:
    """Return how many prompts a pass has room for."""
    return where(run.runtime.chunk_tokens > 0, run.runtime.chunk_tokens, np.inf) / run.fresh


def _other_prompt(run: ServingRun, met: Round) -> Number:
    """Return the seconds that a prompt adds to a pass that reads others: the first ones may hide behind weights."""
    groups = met.groups
    together = np.clip(np.maximum(met.running, FEWEST), 1.0, np.maximum(_room_in_pass(run) * groups, 1.0))
    phase = reading_phase(run, together * run.fresh / groups, None, together / groups, groups)
    return np.maximum(met.prompt, phase_time(phase).seconds / together)


def _read_together(run: ServingRun, met: Round, prompts: Number, share: Number) -> Number:
    """Return the seconds of passes that read so many prompts beside a share of the answers, where these are mixed."""
    groups = met.groups
    riding = where(met.runs > 0, (met.tokens - met.steps) / met.runs, 0.0) * met.running / groups * share
    answers = decode_pass(run, riding, run.guessing.tokens) if any_true(riding > 0) else None
    reading = reading_phase(run, prompts * run.fresh / groups, answers, riding + prompts / groups, groups)
    return phase_time(reading).seconds


def _prompt_scatter(run: ServingRun) -> Number:
    """Return the standard deviation of a prompt's seconds: hardly any where weights take longer to read."""
    if not any_true(run.prompt_spread > 0):
        return 0.0
    longest = replace(run, prompt=run.prompt * (1.0 + run.prompt_spread))
    usual, longer = (reading_phase(one, one.fresh, None, 1.0, 1.0) for one in (run, longest))
    return np.maximum(phase_time(longer).seconds - phase_time(usual).seconds, 0.0)


def _in_lockstep(run: ServingRun, running: Number) -> Flags:
    """Return whether users' requests start and end together: of one length, and none answered before all are read."""
    first_read = (run.runtime.mixes_prefill <= 0) | (running <= _room_in_pass(run))
    return np.asarray((run.output_spread <= 0) & first_read)


def _is_long(run: ServingRun, met: Round) -> Flags:
    """Return whether a pass has no room for two prompts."""
    room = _room_in_pass(run) - run.runtime.mixes_prefill * met.running / run.fresh
    return np.asarray((met.passes > 1.0) | (room < FEWEST))


def _arriving(run: ServingRun, met: Round, slots: Number, largest: Number, scatter: Number) -> Waiting:
    """Return the waits of requests that come of themselves: for room, for a pass, for the prompts before them."""
    rate, spread = np.minimum(run.rate, largest), scatter / np.maximum(met.prompt, EPSILON)
    room = slot_wait(run.rate, largest, slots, run.output_spread)
    mean = mean_pass(*met.turns)
    # Where nothing is answered after the prompts, a pass reads all that came during the one before.
    answers = met.tokens > 0
    seconds = where(
        answers, pass_at_random(*met.turns, rate, met.prompt, spread, rate * mean, LEAST_FREE), met.reading + 0.0 * mean
    )
    busy = 1.0 - np.exp(-rate * met.seconds)
    # The next pass begins as soon as the first stage is free.
    groups = met.groups
    seconds, step = seconds / groups, met.step * met.scheduled / groups
    # Prompts that fill a pass wait until those before them are read, others for the pass at work.
    is_long, occupied = _is_long(run, met), np.clip(rate * met.work, EPSILON, 1.0)
    other = where(answers, _other_prompt(run, met), 0.0)
    turn = pass_wait(where(is_long, busy * (1.0 - occupied), busy), where(is_long, step, seconds))
    others = where(is_long, reading_wait(rate, met.work, scatter / met.work), 0.0)
    # What comes at random moments may meet passes longer than the mean one.
    # A pass that reads others too takes no shorter than that of one prompt, whatever part of it each adds.
    together = np.minimum(1.0 + busy * rate * seconds, np.maximum(_room_in_pass(run), 1.0))
    shared = _read_together(run, met, groups * together, 1.0) * groups
    read = where(answers & ~is_long, shared, met.own + others)
    started = started_seconds(read, met.seconds, met.answering, where(answers, np.inf, 0.0))
    others = np.maximum(started - met.own, 0.0)
    # A wait in a queue is none, or exponential; prompts in a pass are counted.
    queue_scatter = others * np.sqrt(2.0 / occupied - 1.0)
    count_scatter = np.sqrt(busy * rate * seconds * (other**2 + scatter**2))
    turn_scatter = np.sqrt(np.maximum(busy * seconds**2 / UNIFORM - turn**2, 0.0))
    others_scatter = where(is_long, queue_scatter, count_scatter)
    longer, longer_scatter = (
        where(answers, following_prompts(wait, rate, met.prompt, LEAST_FREE), 0.0) for wait in (others, others_scatter)
    )
    return Waiting(room, turn, others, started, longer, turn_scatter, others_scatter, longer_scatter)


def _returning(run: ServingRun, met: Round, scatter: Number) -> Waiting:
    """Return the waits of requests each of which follows an answer, without that for room: for a pass, for prompts."""
    turn = _turn(run, met)
    share, other = (met.running - 1.0) / met.running, _other_prompt(run, met)
    ending = np.minimum(met.running * met.scheduled / (met.tokens + 1.0), met.running)
    shared = shared_pass_wait(share, ending, other)
    ahead = closed_response(met.passes, met.tokens, met.running) - met.passes
    is_long = _is_long(run, met) & (run.runtime.mixes_prefill > 0)
    others = where(is_long, np.maximum(ahead, 0.0) * met.reading, shared)
    stands_still = (met.tokens > 0) & (run.runtime.mixes_prefill <= 0)
    slowest = where(stands_still, np.inf, met.tokens * met.reading)
    started = started_seconds(met.own + others, met.seconds, met.answering, slowest)
    others_scatter = where(is_long, others, np.sqrt(share * ending * (other**2 + scatter**2)))
    longer: Number = 0.0
    others = np.maximum(started - met.own, 0.0)
    alike = np.asarray(run.output_spread <= 0)
    if not any_true(alike):
        return Waiting(0.0, turn, others, started, longer, turn / np.sqrt(UNIFORM), others_scatter, 0.0)
    # Answers of one length end together, or one group after the other where a pass has no room for all prompts.
    room, locked = _room_in_pass(run) * met.groups, _in_lockstep(run, met.running)
    own, groups = np.maximum(1.0 / room, 1.0), np.maximum(met.running / room, 1.0)
    full = _read_together(run, met, np.minimum(room, met.running), 1.0 - own / groups)
    missed = missed_passes(run.runtime.request_seconds, met.step / met.groups)
    passes = passes_until_read(own, groups, where(run.runtime.mixes_prefill > 0, missed, np.inf))
    in_groups = started_seconds(full * passes, met.seconds, 0.0, slowest)
    started = where(alike, in_groups, started)
    others = where(alike, np.maximum(in_groups - met.own, 0.0), others)
    # Prompts of those that end together are read together, and hide behind no answers but in the passes of others.
    riding = where(run.runtime.mixes_prefill > 0, groups - 1.0, 0.0)
    whole = groups * full + np.maximum(met.tokens - riding, 0.0) * met.step
    longer = where(alike, np.maximum(whole - met.seconds, 0.0), 0.0)
    apart = full * where(locked, groups - own, np.minimum(groups - own, 1.0)) / 2.0
    others_scatter = where(alike, apart / np.sqrt(UNIFORM), others_scatter)
    together = together_percentile(in_groups, run.traffic.beyond, own, groups, full)
    return Waiting(
        0.0, turn, others, started, longer, turn / np.sqrt(UNIFORM), others_scatter, 0.0, where(locked, together, 0.0)
    )


def _token_scatter(
    run: ServingRun, met: Round, crowded: Round, rate: Number, answer: Number, waiting: Waiting, scatter: Number
) -> Number:
    """Return the standard deviation of an answer's seconds: of prompts read meanwhile, and of requests beside it."""
    share = np.minimum(rate * met.prompt, 1.0 - ROUNDING) if run.traffic.arrives else 0.0
    others = 1.0 if run.traffic.arrives else (met.running - 1.0) / met.running
    # Prompts that come while others delay an answer delay it further.
    prompts = (met.prompt**2 + scatter**2) * others * rate * answer / (1.0 - share) ** 2
    crowding = np.maximum(crowded.answering - met.answering, 0.0)
    # Short answers scatter more: the mean of one over a length.
    counted = np.maximum(prompts, 0.0) * (1.0 + run.output_spread**2)
    whole: Number = np.sqrt(counted + crowding**2 + waiting.longer_scatter**2)
    return whole


def _met(run: ServingRun, slots: Number, tried: Round) -> Number:
    """Return how many requests run while one of them does, itself included.

    Of requests that arrive at random moments each meets as many as there are on average, as far as there is room
    (Wolff 1982); of users, all that are not at the host run, and those together whose answers have one length.

    Args:
        tried: rounds of numbers from one to all slots, over the first axis.
    """
    if not run.traffic.arrives and not any_true(run.runtime.request_seconds > 0):
        return slots
    with unrecorded():
        beyond = _beyond(run, slots, tried)
        running = np.broadcast_to(np.minimum(tried.running, slots), beyond.shape)
        # Between the last number that is too small and the first that is not; all slots where none is enough.
        index = np.where((beyond >= 0).any(axis=0), (beyond >= 0).argmax(axis=0), len(beyond) - 1)[np.newaxis]
        before = np.maximum(index - 1, 0)
        low, high = (np.log(np.take_along_axis(running, at, 0)[0]) for at in (before, index))
        under, over = (np.take_along_axis(beyond, at, 0)[0] for at in (before, index))
        full = over < 0
        for _ in range(STEPS):
            middle = np.clip(low - under * (high - low) / np.where(over > under, over - under, 1.0), low, high)
            here = _beyond(run, slots, round_of(run, np.exp(middle)))
            above = here >= 0
            # Illinois: an end that stays counts half, so that both ends close in.
            low, under, high, over = (
                np.where(above, low, middle),
                np.where(above, under / 2.0, here),
                np.where(above, middle, high),
                np.where(above, here, over / 2.0),
            )
        met = np.where(full, slots, np.exp(np.where(over < -under, high, low)))
    if run.traffic.arrives:
        return met
    # As many as one pass reads begin together, and answers of one length end so.
    together = where(run.runtime.mixes_prefill > 0, np.minimum(_room_in_pass(run), slots), slots)
    return where(run.output_spread <= 0, np.maximum(met, together), met)


def _beyond(run: ServingRun, slots: Number, here: Round) -> NDArray[np.float64]:
    """Return by how much some numbers of running requests are more than would meet, were they that many."""
    if run.traffic.arrives:
        others = (here.running - 1.0) * slots / np.maximum(slots - 1.0, 1.0)
        return np.asarray(others - run.rate * here.seconds)
    at_host = (run.runtime.request_seconds + _turn(run, here)) * round_rate(here.running, here.seconds)
    return np.asarray(here.running + at_host - run.users)


def _idle(rate: Number, now: Round) -> tuple[Phase, ...]:
    """Return the time in which no request is at work, where fewer come than one alone keeps busy."""
    rest = np.maximum(now.running / rate - now.seconds, 0.0)
    idle = where(rest > now.seconds * NOTHING, rest, 0.0)
    if not any_true(idle > 0):
        return ()
    return (Phase("idle", (), (Collective("waiting for a request", "idle", idle),)),)
