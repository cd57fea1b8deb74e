"""What runs in a worker elsewhere: it is given bytes and texts alone, and answers with texts."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from capacity_tui.engine.choose.search import Question
from capacity_tui.engine.nodes.search.chunks import Chunk, Cutting, outcomes_as_text
from capacity_tui.engine.nodes.search.circumstances import Circumstances, catalog_of, circumstances
from capacity_tui.engine.nodes.search.evaluating import Evaluator

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(frozen=True, slots=True)
class Work:
    """What all chunks of a search have in common.

    Attributes:
        machine: the detected machine, for plans that run on it.
        own_files: the user's own files, by their path below the folder of what the user writes.
        rests_on: what must be alike.
    """

    question: Question
    machine: Machine | None
    own_files: Mapping[str, bytes]
    rests_on: Circumstances
    cutting: Cutting


def evaluate(work: bytes, chunk: tuple[int, int, int, int], filled: bytes) -> tuple[str, str]:
    """Return what a chunk came to, as text; or what is not alike here, in words, as the second of the pair."""
    evaluator, unlike = _prepared(work)
    if unlike:
        return "", unlike
    # Both were pickled by the program that asks, and came through the same cluster as this code.
    return outcomes_as_text(evaluator.evaluated(Chunk(*chunk), pickle.loads(filled))), ""  # noqa: S301


@lru_cache(maxsize=1)
def _prepared(work: bytes) -> tuple[Evaluator, str]:
    unpickled: Work = pickle.loads(work)  # noqa: S301 - as above
    evaluator = Evaluator(unpickled.question, catalog_of(unpickled.own_files), unpickled.machine, unpickled.cutting)
    return evaluator, unpickled.rests_on.unlike(circumstances(unpickled.question))
