"""Requests: how they come, how their lengths differ, what of them is known already, and guessing ahead of passes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.numeric import Number


@dataclass(frozen=True, slots=True)
class Traffic:
    """How the requests of all replicas come, and how they differ; what one replica sees is in the run.

    Attributes:
        comes_singly: whether requests come one by one, in place of one batch that starts together.
        arrives: whether they come of themselves, rather than the next one when one is answered.
        rate: requests that arrive in a second, where they do.
        concurrency: most requests at work at once, waiting ones included; infinite where any number may wait.
        prompt_deviation: standard deviation of a prompt's tokens.
        output_deviation: the same of an answer's.
        cached: share of a prompt whose keys and values are in the cache already.
        beyond: share of the requests that take longer than the percentile told.
        deviations: standard deviations that a normal distribution has its percentile above the mean.
    """

    comes_singly: bool = False
    arrives: bool = False
    rate: Number = 0.0
    concurrency: Number = np.inf
    prompt_deviation: Number = 0.0
    output_deviation: Number = 0.0
    cached: Number = 0.0
    beyond: Number = 0.5
    deviations: Number = 0.0


@dataclass(frozen=True, slots=True)
class Guessing:
    """Speculative decoding: a draft guesses tokens that one pass of the model checks.

    Attributes:
        tokens: guessed ahead of a pass; 0 where nothing is guessed.
        acceptance: share of them that the model accepts, each for itself.
        draft_cost: time of one guess over that of a pass of the model.
    """

    tokens: Number = 0.0
    acceptance: Number = 0.0
    draft_cost: Number = 0.0

    @property
    def drafts(self) -> Number:
        """Time of the draft for one pass, in passes of the model."""
        return self.tokens * self.draft_cost


@equation(
    "accepted = guesses + 1 if acceptance >= 1 else (1 - acceptance^(guesses + 1)) / (1 - acceptance)",
    unit="tokens",
    source="Leviathan et al. 2023: guesses up to the first that is refused, and one token of the model's own",
)
def accepted_tokens(guesses: Number, acceptance: Number) -> Number:
    """Tokens a sequence gets from one pass, the mean.

    Args:
        guesses: tokens guessed ahead of it, from 0.
        acceptance: share of them that are accepted, each for itself.
    """
    refused = np.maximum(1.0 - acceptance, np.finfo(float).tiny)
    return np.where(acceptance >= 1.0, guesses + 1.0, (1.0 - acceptance ** (guesses + 1.0)) / refused)


@equation(
    "longest = output · (1 + spread · sqrt(2 · ln(batch)))",
    unit="tokens",
    source="expected largest of independent normal lengths, Cramer 1946",
)
def longest_output(output: Number, spread: Number, batch: Number) -> Number:
    """Tokens of the longest answer of a batch, until which the batch drains.

    Args:
        output: tokens of an answer, the mean.
        spread: standard deviation over the mean, from 0.
        batch: answers.
    """
    return output * (1.0 + spread * np.sqrt(2.0 * np.log(batch)))


@equation(
    "context = prompt + output / 2 · (1 + spread^2)",
    unit="tokens",
    source="mean over all generated tokens: long answers have more of them",
)
def mean_decode_context(prompt: Number, output: Number, spread: Number) -> Number:
    """Tokens in the cache of a sequence, the mean over its decode steps.

    Args:
        prompt: tokens of a prompt.
        output: tokens of an answer, the mean, from 0.
        spread: standard deviation over the mean, from 0.
    """
    return prompt + output / 2.0 * (1.0 + spread**2)
