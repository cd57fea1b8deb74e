"""A scheduler of an inference engine, pass by pass: the reference for closed forms of waiting under a load."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.estimate.serving import ServingRun, decode_pass, decode_phase, reading_phase
from capacity_tui.engine.estimate.serving.run import Runtime
from capacity_tui.engine.estimate.timing.schedule import phase_time

Times = NDArray[np.float64]
GRID = 24


@dataclass(frozen=True, slots=True)
class Passes:
    """Seconds of passes by the tokens of prompts they read and the sequences that get a token, on a grid of both."""

    tokens: Times
    sequences: Times
    reading: Times
    deciding: Times
    mixes: bool  # whether one pass does both
    budget: float  # most tokens of a pass
    scheduled: int  # passes for answers that are scheduled at once

    def seconds(self, tokens: float, sequences: float) -> float:
        """Return the seconds of one pass."""
        if tokens <= 0:
            return float(np.interp(sequences, self.sequences, self.deciding))
        rows = [float(np.interp(tokens, self.tokens, column)) for column in self.reading.T]
        return float(np.interp(sequences, self.sequences, rows))


def passes_of(run: ServingRun, slots: int) -> Passes:
    """Return the times of a run's passes with up to so many sequences."""
    runtime: Runtime = run.runtime
    budget = float(runtime.chunk_tokens or 1e6)
    mixes = bool(runtime.mixes_prefill)
    sequences = np.unique(np.round(np.geomspace(1, max(slots, 2), GRID))).astype(float)
    tokens = np.geomspace(1.0, budget, GRID)
    beside = np.concatenate([[0.0], sequences])
    steps = phase_time(decode_phase("decode", replace(run, batch=sequences), 1.0, run.guessing.tokens)).seconds
    count, chunk = np.meshgrid(beside, tokens)
    answers = decode_pass(run, count, run.guessing.tokens) if mixes else None
    read = phase_time(reading_phase(run, chunk, answers, count + np.maximum(chunk / run.fresh, 1.0), 1.0)).seconds
    whole: Times = np.asarray(np.broadcast_to(read, chunk.shape), dtype=np.float64)
    steps = np.asarray(steps, dtype=np.float64)
    return Passes(
        tokens, beside, whole, np.concatenate([[steps[0]], steps]), mixes, budget, int(runtime.scheduled_passes)
    )


@dataclass(slots=True)
class Request:
    """One request and what it saw."""

    arrived: float
    unread: float  # tokens of its prompt that are not read yet
    left: float  # tokens of its answer to come, the first included
    tokens: float
    first: float = 0.0
    done: float = 0.0


@dataclass(slots=True)
class Seen:
    """Times of finished requests, s, without those that came while the first ones filled the engine."""

    first: Times = field(default_factory=lambda: np.zeros(0))
    token: Times = field(default_factory=lambda: np.zeros(0))
    whole: Times = field(default_factory=lambda: np.zeros(0))


@dataclass(slots=True)
class Scheduler:
    """Runs requests through passes: first come, first served; prompts before answers, or in chunks beside them."""

    passes: Passes
    slots: int
    host: float
    now: float = 0.0
    waiting: deque[Request] = field(default_factory=deque)
    reading: list[Request] = field(default_factory=list)
    running: list[Request] = field(default_factory=list)

    def one_pass(self, most: int) -> tuple[list[Request], int]:
        """Run one pass, or as many passes of answers alone as change nothing, ``most`` at most; return who is done."""
        while self.waiting and len(self.reading) + len(self.running) < self.slots:
            self.reading.append(self.waiting.popleft())
        rides = self.passes.mixes or not self.reading
        beside = len(self.running) if rides else 0
        room = max(self.passes.budget - (beside if self.reading else 0), 1.0)
        read = 0.0
        ready = []
        for request in self.reading:
            part = min(request.unread, room - read)
            request.unread -= part
            read += part
            if request.unread <= 0:
                ready.append(request)
            if read >= room:
                break
        count = 1
        if not self.reading:
            count = max(1, min(most, int(min(request.left for request in self.running))))
            # Those that were scheduled at once run to their end, whoever comes or is done meanwhile.
            count = -(-count // self.passes.scheduled) * self.passes.scheduled
        self.now += count * self.passes.seconds(read, beside)
        for request in self.running if rides else ():
            request.left -= count
        for request in ready:
            request.first = self.now + self.host
            request.left -= 1
            self.reading.remove(request)
            self.running.append(request)
        done = [request for request in self.running if request.left <= 0]
        self.running = [request for request in self.running if request.left > 0]
        for request in done:
            request.done = self.now + self.host
        return done, count


def drawn(draw: np.random.Generator, mean: float, deviation: float, count: int) -> Times:
    """Return lengths of a lognormal distribution, whole tokens from 1."""
    if deviation <= 0:
        return np.full(count, mean)
    width = np.log1p((deviation / mean) ** 2)
    return np.maximum(np.round(draw.lognormal(np.log(mean) - width / 2, np.sqrt(width), count)), 1.0)


def simulated(run: ServingRun, slots: int, count: int, seed: int = 0, share_left_out: float = 0.2) -> Seen:
    """Return what requests see of a load of one replica, by running it."""
    draw = np.random.default_rng(seed)
    prompts = np.maximum(drawn(draw, float(run.fresh), float(run.traffic.prompt_deviation), count), 1.0)
    answers = drawn(draw, float(run.output), float(run.traffic.output_deviation), count)
    host = float(run.runtime.request_seconds)
    engine = Scheduler(passes_of(run, slots), slots, 0.0)
    arrives = run.traffic.arrives
    users = 0 if arrives else int(run.users)
    # A request is at the host before the engine has it.
    coming = deque(np.cumsum(draw.exponential(1.0 / float(run.rate), count)) if arrives else np.zeros(users))
    made, finished = 0, list[Request]()
    known = list[Request]()

    def take_in() -> None:
        nonlocal made
        while coming and made < count and coming[0] + host <= engine.now:
            sent = coming.popleft()
            request = Request(sent, prompts[made], answers[made], answers[made])
            made += 1
            known.append(request)
            engine.waiting.append(request)

    while len(finished) < count:
        take_in()
        if not (engine.waiting or engine.reading or engine.running):
            if not coming or made >= count:
                break
            engine.now = max(engine.now, coming[0] + host)
            continue
        step = engine.passes.seconds(0.0, max(len(engine.running), 1))
        until = coming[0] + host - engine.now if coming and made < count else np.inf
        most = 10**9 if np.isinf(until) else max(int(np.ceil(until / step)), 1)
        done, _ = engine.one_pass(most)
        finished += done
        if not arrives:
            coming.extend([engine.now] * len(done))
    kept = known[int(share_left_out * count) : int((1 - share_left_out / 2) * count)]
    kept = [request for request in kept if request.done > 0]
    first = np.array([request.first - request.arrived for request in kept])
    whole = np.array([request.done - request.arrived for request in kept])
    tokens = np.array([max(request.tokens - 1, 1) for request in kept])
    return Seen(first, (whole - first) / tokens, whole)
