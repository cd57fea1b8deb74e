"""Rounds of a replica under a load: when as many requests are answered as run at once, and all together if alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.estimate.derivation import equation, unrecorded
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.serving.speed import loaded_phases
from capacity_tui.engine.estimate.timing.schedule import phase_time
from capacity_tui.engine.estimate.work import Phase
from capacity_tui.engine.numeric import Number, added, any_true, where
from capacity_tui.engine.record import dataclass


@equation(
    "passes = (host / step + 1 / 2 if step > 0 else 0) if host > 0 else 0",
    unit="passes",
    source="an engine does not wait for the host: answers are given meanwhile, and the pass that has begun goes on",
    host=("seconds for which the host has them", "s"),
    step=("seconds of a pass for answers alone", "s"),
)
def missed_passes(host: Number, step: Number) -> Number:
    """Passes that begin before the host has sent an answer and taken in the request that follows it."""
    answers = np.greater(step, 0.0)
    return np.where(answers & np.greater(host, 0.0), host / np.where(answers, step, 1.0) + 1.0 / 2.0, 0.0)


@equation(
    "passes = min(own + min(own - 1, 1) + missed, (groups + own) / 2)",
    unit="passes",
    source="answers of one length whose prompts are read in groups end one group after the other, each in a pass: "
    "those that end while the first is missed wait for each other, at most for all; a prompt of several passes begins "
    "and ends within those of others",
    own="passes that read one prompt, from 1",
    groups="full passes that read the prompts of all requests that run at once, from as many",
    missed="passes that begin before a request is there; infinite where answers stand still while prompts are read",
)
def passes_until_read(own: Number, groups: Number, missed: Number) -> Number:
    """Full passes until a prompt is read where each follows an answer and all have one length, the mean."""
    return np.minimum(own + np.minimum(own - 1.0, 1.0) + missed, (groups + own) / 2.0)


@equation(
    "time = mean + (1 - 2 · beyond) · (groups - own) / 2 · seconds",
    unit="s",
    source="requests that start together are read one full pass after another, as many in each",
    mean=("the mean", "s"),
    beyond="share that may take longer",
    own="passes that read one prompt, from 1",
    groups="full passes that read the prompts of all",
    seconds=("seconds of such a pass", "s"),
)
def together_percentile(mean: Number, beyond: Number, own: Number, groups: Number, seconds: Number) -> Number:
    """Seconds to the first token that all but a share keep to, of requests that all start together."""
    return mean + (1.0 - 2.0 * beyond) * (groups - own) / 2.0 * seconds


# Numbers of running requests of which the best is taken, and how often as many are then tried around it.
TRIED, AROUND = 9, 2
# Share by which rates differ that are the same but for rounding.
ROUNDING = 33 * np.finfo(float).eps


@dataclass(frozen=True, slots=True)
class Round:
    """The time in which as many requests are answered as run at once."""

    running: Number  # requests that run at once
    phases: tuple[Phase, ...]  # its passes
    seconds: Number  # all of it
    answering: Number  # the passes of an answer, were they for answers alone
    reading: Number  # one pass that reads prompts
    passes: Number  # such passes for one prompt
    step: Number  # one pass for answers
    tokens: Number  # passes in which an answer is given
    steps: Number  # of these, those for answers alone
    groups: Number  # passes at work at once, one on each stage
    scheduled: Number  # passes for answers alone that the host schedules at once

    @property
    def turns(self) -> tuple[Number, Number, Number, Number]:
        """Seconds and number of the passes that read prompts, and the same of passes for answers alone, by schedule."""
        return self.reading, self.runs, self.step * self.scheduled, self.steps / self.scheduled

    @property
    def work(self) -> Number:
        """Seconds of reading for each prompt, in passes that others share."""
        return self.reading * self.passes

    @property
    def alongside(self) -> Number:
        """Seconds that the answers in a pass take which reads prompts too."""
        return where(self.runs > 0, (self.tokens - self.steps) / self.runs, 0.0) * self.step

    @property
    def prompt(self) -> Number:
        """Seconds that a prompt adds to the passes that read it."""
        return np.maximum(self.reading - self.alongside, 0.0) * self.passes

    @property
    def own(self) -> Number:
        """Seconds of the passes that read a prompt, were there no other."""
        # Passes side by side answer more, but each prompt goes through every stage.
        passes = self.passes * self.groups
        return np.maximum(self.reading - self.alongside, 0.0) * passes + self.alongside * np.maximum(passes, 1.0)

    @property
    def runs(self) -> Number:
        """Passes that read prompts."""
        return self.running * self.passes


@equation(
    "running = min(concurrency, max(cached, 1))",
    unit="requests",
    source="what the cache does not hold waits",
    concurrency="requests at work at once, or that the engine takes up",
    cached="sequences that the cache holds",
)
def most_running(concurrency: Number, cached: Number) -> Number:
    """Requests that run at once at most."""
    return np.minimum(concurrency, np.maximum(cached, 1.0))


@equation(
    "rate = running / seconds",
    unit="requests/s",
    source="Little 1961",
    running="requests that run at once",
    seconds=("seconds in which as many are answered", "s"),
)
def round_rate(running: Number, seconds: Number) -> Number:
    """Requests that one replica answers in a second."""
    return running / seconds


def best_round(run: ServingRun, full: Round) -> tuple[Number, Round]:
    """Return how many at once answer most, of all that a full round has: more leave less room in a pass.

    The rounds of numbers from one to all that were tried come with it.
    """
    with unrecorded():
        slots = full.running + np.zeros_like(full.seconds + run.runtime.request_seconds + run.rate)
        tried = round_of(run, np.geomspace(np.ones_like(slots), slots, TRIED))
        best = _of_most_answers(tried)
        step = slots ** (1.0 / (TRIED - 1.0))
        for _ in range(AROUND):
            if not any_true(best < slots):
                break
            around = np.geomspace(np.maximum(best / step, 1.0), np.minimum(best * step, slots), TRIED)
            best = _of_most_answers(round_of(run, np.concatenate([around, best[np.newaxis]])))
            step = step ** (2.0 / (TRIED - 1.0))
        return best, tried


def _of_most_answers(tried: Round) -> NDArray[np.float64]:
    """Return which numbers of running requests answer most, the largest of equals; they run over the first axis."""
    running = np.asarray(tried.running)
    rates = np.asarray(round_rate(running, np.broadcast_to(tried.seconds, running.shape)))
    is_best = rates >= rates.max(axis=0) * (1.0 - ROUNDING)
    best: NDArray[np.float64] = np.max(np.where(is_best, running, 0.0), axis=0)
    return best


def round_of(run: ServingRun, running: Number) -> Round:
    """Return the round in which so many requests run at once."""
    run = replace(run, batch=running)
    phases = loaded_phases(run)
    times = {phase.name: phase_time(phase).seconds for phase in phases}
    seconds = added(phase.runs * times[phase.name] for phase in phases)
    step = times.get("decode", 0.0) + run.guessing.drafts * times.get("draft", 0.0)
    alone = next((phase.runs for phase in phases if phase.name == "decode"), 0.0)
    passes = phases[0].runs / running
    answering = run.decode_steps * step
    groups = np.minimum(run.layout.pp, np.maximum(running, 1.0))
    scheduled = run.runtime.scheduled_passes
    return Round(
        running, phases, seconds, answering, times["prefill"], passes, step, run.decode_steps, alone, groups, scheduled
    )
