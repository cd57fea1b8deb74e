"""The time of one pass of an engine, by the sequences it answers, their context, and the prompts it reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.estimate.serving import ServingRun, decode_pass, decode_phase, reading_phase
from capacity_tui.engine.estimate.timing import phase_time
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.solve.space import Floats

# Places of the table: between two of them times are as good as straight lines.
SEQUENCES, CONTEXTS, CHUNKS = 24, 7, 13
# Cells in which the simulation looks contexts and chunks of prompts up.
CONTEXT_CELLS, CHUNK_CELLS = 24, 48
# Stands for no sequence where rates are divided by what is at work.
NEARLY_NONE = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class StepTimes:
    """Seconds of a pass as one array; a place of it is sequences, cell of context, cell of prompts.

    Attributes:
        seconds: by sequences that get their next token, cell of their mean context, and cell of tokens of prompts; the
            first cell of prompts is a pass that reads none.
        context_cell: tokens of a cell of context.
        chunk_cell: tokens of a cell of prompts.
        slots: most sequences at work at once.
        budget: most tokens of a pass, of prompts and answers together.
        mixes: whether a pass that reads prompts gives others their next token too.
        accepted: tokens a sequence gets from one pass.
    """

    seconds: Floats
    context_cell: float
    chunk_cell: float
    slots: int
    budget: float
    mixes: bool
    accepted: float = 1.0

    @property
    def flat(self) -> Floats:
        """The times as one row."""
        return self.seconds.ravel()

    def places(self, sequences: NDArray[np.int64], contexts: Floats, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where in the row the times of some passes stand.

        Args:
            sequences: that get their next token.
            contexts: mean tokens in the cache of each.
            tokens: of prompts that the pass reads.
        """
        _, depth, width = self.seconds.shape
        context = np.minimum((contexts / self.context_cell).astype(np.int64), depth - 1)
        chunk = np.minimum(np.ceil(tokens / self.chunk_cell).astype(np.int64), width - 1)
        return np.asarray((sequences * depth + context) * width + chunk, dtype=np.int64)


def step_times(run: ServingRun, slots: int, longest: float, largest_chunk: float) -> StepTimes:
    """Return the times of the passes of a replica, all by the equations of a single estimate.

    Args:
        run: the replica's run under a load.
        slots: most sequences at work at once.
        longest: tokens of the longest context.
        largest_chunk: tokens of prompts that a pass reads at most.
    """
    budget = float(np.max(run.runtime.chunk_tokens)) * float(run.layout.pp)
    mixes = bool(np.any(run.runtime.mixes_prefill > 0)) and not run.shape.encoder_layers
    most = min(budget, largest_chunk) if budget else largest_chunk
    sequences = np.unique(np.concatenate([[0.0], np.round(np.geomspace(1.0, max(slots, 2), SEQUENCES))]))
    contexts = np.linspace(1.0, longest, CONTEXTS)
    chunks = np.unique(np.round(np.geomspace(1.0, max(most, 2.0), CHUNKS)))
    answering = _answering(run, sequences[:, None], contexts[None, :])
    reading = _reading(run, sequences[:, None, None], contexts[None, :, None], chunks[None, None, :], mixes)
    context_cell, chunk_cell = longest / CONTEXT_CELLS, most / CHUNK_CELLS
    wanted = (np.arange(slots + 1.0), _middles(CONTEXT_CELLS, context_cell), _middles(CHUNK_CELLS, chunk_cell))
    alone = _along(_along(answering, sequences, wanted[0], 0), contexts, wanted[1], 1)
    mixed = reading
    for axis, (have, want) in enumerate(zip((sequences, contexts, chunks), wanted, strict=True)):
        mixed = _along(mixed, have, want, axis)
    seconds = np.concatenate([alone[:, :, None], mixed], axis=2)
    return StepTimes(seconds, context_cell, chunk_cell, slots, budget or np.inf, mixes, float(np.max(run.accepted)))


def _answering(run: ServingRun, sequences: Floats, contexts: Floats) -> Floats:
    """Return the seconds of passes that give sequences their next tokens, the draft's guesses included."""
    loaded = replace(run, batch=np.maximum(sequences, 1.0), prompt=contexts, output=0.0)
    seconds = phase_time(decode_phase("decode", loaded, 1.0, run.guessing.tokens)).seconds
    if np.any(run.guessing.tokens > 0):
        seconds = seconds + run.guessing.drafts * phase_time(decode_phase("draft", loaded, 1.0, 0.0)).seconds
    return _over(seconds, sequences, contexts)


def _reading(run: ServingRun, sequences: Floats, contexts: Floats, chunks: Floats, mixes: bool) -> Floats:
    """Return the seconds of passes that read prompts, beside answers where the engine mixes them."""
    busy = np.maximum(sequences, NEARLY_NONE)
    groups = np.minimum(run.layout.pp, np.maximum(sequences, 1.0))
    answers = None
    if mixes:
        held = replace(run, prompt=contexts, output=0.0)
        answers = decode_pass(held, busy / groups, run.guessing.tokens)
    seconds = phase_time(reading_phase(run, chunks / groups, answers, busy / groups, groups)).seconds
    return _over(seconds, sequences, contexts, chunks)


def _middles(cells: int, size: float) -> Floats:
    return np.asarray((np.arange(cells) + 0.5) * size, dtype=np.float64)


def _over(seconds: Number, *axes: Floats) -> Floats:
    return np.array(np.broadcast_to(seconds, np.broadcast_shapes(*(axis.shape for axis in axes))), dtype=np.float64)


def _along(values: Floats, have: Floats, want: Floats, axis: int) -> Floats:
    """Return values read off along one axis; beyond its ends as at them."""
    place = np.clip(np.interp(want, have, np.arange(have.size)), 0, have.size - 1)
    low = np.minimum(place.astype(np.int64), have.size - 2) if have.size > 1 else np.zeros(want.size, np.int64)
    high = np.minimum(low + 1, have.size - 1)
    share = (place - low).reshape([-1 if each == axis else 1 for each in range(values.ndim)])
    below, above = np.take(values, low, axis), np.take(values, high, axis)
    return np.asarray(below + share * (above - below))
