"""Requests of one length, each of which follows an answer: they end together, and so the next ones start together."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.derivation import equation
from capacity_tui.engine.numeric import Number


@equation(
    "passes = (host / step + 1 / 2 if step > 0 else 0) if host > 0 else 0",
    unit="passes",
    source="an engine does not wait for the host: answers are given meanwhile, and the pass that has begun goes on",
    units={"host": "s", "step": "s"},
)
def missed_passes(host: Number, step: Number) -> Number:
    """Passes that begin before the host has sent an answer and taken in the request that follows it.

    Args:
        host: seconds for which the host has them.
        step: seconds of a pass for answers alone.
    """
    answers = np.greater(step, 0.0)
    return np.where(answers & np.greater(host, 0.0), host / np.where(answers, step, 1.0) + 1.0 / 2.0, 0.0)


@equation(
    "passes = min(own + min(own - 1, 1) + missed, (groups + own) / 2)",
    unit="passes",
    source="answers of one length whose prompts are read in groups end one group after the other, each in a pass: "
    "those that end while the first is missed wait for each other, at most for all; a prompt of several passes begins "
    "and ends within those of others",
)
def passes_until_read(own: Number, groups: Number, missed: Number) -> Number:
    """Full passes until a prompt is read where each follows an answer and all have one length, the mean.

    Args:
        own: passes that read one prompt, from 1.
        groups: full passes that read the prompts of all requests that run at once, from as many.
        missed: passes that begin before a request is there; infinite where answers stand still while prompts are read.
    """
    return np.minimum(own + np.minimum(own - 1.0, 1.0) + missed, (groups + own) / 2.0)


@equation(
    "time = mean + (1 - 2 · beyond) · (groups - own) / 2 · seconds",
    unit="s",
    source="requests that start together are read one full pass after another, as many in each",
    units={"mean": "s", "seconds": "s"},
)
def together_percentile(mean: Number, beyond: Number, own: Number, groups: Number, seconds: Number) -> Number:
    """Seconds to the first token that all but a share keep to, of requests that all start together.

    Args:
        mean: the mean.
        beyond: share that may take longer.
        own: passes that read one prompt, from 1.
        groups: full passes that read the prompts of all.
        seconds: seconds of such a pass.
    """
    return mean + (1.0 - 2.0 * beyond) * (groups - own) / 2.0 * seconds
