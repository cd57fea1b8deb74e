"""Evaluating chunks of a search: what a worker does, in whatever order it is given them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.search import (
    BlockResult,
    Prepared,
    Question,
    Refused,
    Scorer,
    TopK,
    goal_of,
    refused_part,
    space_part,
    spaces_of,
)
from capacity_tui.engine.choose.space import LazyBlock, Values
from capacity_tui.engine.nodes.search.chunks import Chunk, Cutting, Outcome

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


class Evaluator:
    """Evaluates chunks of one question.

    Args:
        machine: the detected machine, for plans that run on it.
    """

    def __init__(self, question: Question, catalog: Catalog, machine: Machine | None, cutting: Cutting) -> None:
        self._spaces, self._cutting = spaces_of(question, catalog, machine), cutting
        self._goal = goal_of(question)
        self._judge = Scorer(question, self._goal)
        self._begin = partial(TopK, question, self._goal, catalog, machine)
        self._made: tuple[int, tuple[Prepared | Refused, ...]] = (-1, ())

    def evaluated(self, chunk: Chunk, filled: Mapping[tuple[object, ...], Values]) -> tuple[Outcome, ...]:
        """Return what each number of a chunk comes to.

        Args:
            filled: what plans left open, as filled in the order of the question.
        """
        self._spaces.filled.update(filled)
        best = self._begin()
        if chunk.end:
            prepared = self._spaces_at(chunk.first)
            pieces = islice(_pieces(prepared), chunk.begin, chunk.end)
            return (Outcome(tuple(self._judged(pieces, best))),)
        return tuple(self._number(number, best) for number in range(chunk.first, chunk.last))

    def _number(self, number: int, best: TopK) -> Outcome:
        """Return what a number comes to; one that is large is not evaluated, but says how large it is."""
        candidates = self._spaces_at(number)
        parts = [
            refused_part(candidate) if isinstance(candidate, Refused) else space_part(candidate)
            for candidate in candidates
        ]
        spaces = [candidate.space for candidate in candidates if isinstance(candidate, Prepared)]
        pieces = sum(1 for _ in _pieces(candidates))
        chunks = self._cutting.chunks_of(pieces, sum(space.grid.size for space in spaces))
        if chunks > 1:
            return Outcome(tuple(parts), pieces, chunks)
        return Outcome((*parts, *self._judged(_pieces(candidates), best)))

    def _judged(self, pieces: Iterator[tuple[Prepared, LazyBlock]], best: TopK) -> Iterator[BlockResult]:
        """Yield what pieces come to, without what is behind the best of those before them."""
        for prepared, piece in pieces:
            part = self._judge.block_part(prepared, piece(), best.worst, best.front)
            best.add(part)
            yield part

    def _spaces_at(self, number: int) -> tuple[Prepared | Refused, ...]:
        """Return the spaces of a number, kept for the next chunk of it."""
        if self._made[0] != number:
            self._made = (number, tuple(space for _, space in self._spaces.all(number, number + 1)))
        return self._made[1]


def _pieces(candidates: tuple[Prepared | Refused, ...]) -> Iterator[tuple[Prepared, LazyBlock]]:
    """Yield the pieces of spaces, in their order."""
    for candidate in candidates:
        if isinstance(candidate, Prepared):
            for piece in candidate.space.lazy_blocks():
                yield candidate, piece
