"""Chunks of a search: their part of a question, and their results as lossless text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from capacity_tui.engine.choose.search import BlockResult, FrontRow, Rejected, Row
from capacity_tui.engine.choose.space import BLOCK, Axis


@dataclass(frozen=True, slots=True)
class Cutting:
    """How large chunks are.

    Attributes:
        numbers: spaces of a chunk, as ``Spaces`` numbers them.
        combinations: combinations that a number may have before it is cut into chunks of its own.
        pieces: pieces that it may have before it is cut.
    """

    numbers: int = 4
    combinations: int = 2 * BLOCK
    pieces: int = 64

    def chunks_of(self, pieces: int, combinations: int) -> int:
        """Return how many chunks a number is worth."""
        return max(1, min(pieces, max(-(-combinations // self.combinations), -(-pieces // self.pieces))))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a question.

    Attributes:
        last: the number behind its last one.
        begin: its first piece, where it is of one number that is cut.
        end: the piece behind its last one; 0 where it is of whole numbers.
    """

    first: int
    last: int
    begin: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a number of a chunk came to.

    Attributes:
        parts: what its pieces came to, in their order; of a number that is cut only what holds of all of them.
        pieces: how many pieces it has that are not evaluated yet, as it is cut.
        chunks: how many chunks these are worth.
    """

    parts: tuple[BlockResult, ...]
    pieces: int = 0
    chunks: int = 0

    def cut(self, number: int) -> tuple[Chunk, ...]:
        """Return the chunks of what is not evaluated yet."""
        ends = [index * self.pieces // self.chunks for index in range(self.chunks + 1)] if self.chunks else []
        return tuple(Chunk(number, number + 1, begin, end) for begin, end in pairwise(ends))


def outcomes_as_text(outcomes: Iterable[Outcome]) -> str:
    """Return what a chunk came to on one line of text."""
    return json.dumps(
        [[[_part(part) for part in outcome.parts], outcome.pieces, outcome.chunks] for outcome in outcomes],
        separators=(",", ":"),
    )


def outcomes_from_text(text: str) -> tuple[Outcome, ...]:
    """Return what a chunk came to.

    Raises:
        ValueError: the text is none of ``outcomes_as_text``; so are KeyError and TypeError.
    """
    return tuple(
        Outcome(tuple(_read_part(part) for part in parts), int(pieces), int(chunks))
        for parts, pieces, chunks in json.loads(text)
    )


def _part(part: BlockResult) -> list[object]:
    return [
        [part.evaluated, part.valid, part.fitting],
        [[entry.rule, entry.count, entry.example] for entry in part.rejected],
        [[entry.rule, entry.count, entry.example] for entry in part.missed],
        [[axis.path, axis.values] for axis in part.varied],
        [_row(row) for row in part.rows],
        [[entry.point, _row(entry.row)] for entry in part.front],
    ]


def _read_part(data: Sequence[Any]) -> BlockResult:
    (evaluated, valid, fitting), rejected, missed, varied, rows, front = data
    return BlockResult(
        evaluated=int(evaluated),
        valid=int(valid),
        fitting=int(fitting),
        rejected=tuple(Rejected(*fields) for fields in rejected),
        missed=tuple(Rejected(*fields) for fields in missed),
        varied=tuple(Axis(path, tuple(map(_value, values))) for path, values in varied),
        rows=tuple(map(_read_row, rows)),
        front=tuple(FrontRow(tuple(point), _read_row(row)) for point, row in front),
    )


def _row(row: Row) -> list[object]:
    return [row.order, row.change]


def _read_row(data: Sequence[Any]) -> Row:
    order, change = data
    assert isinstance(change, Mapping)  # noqa: S101 - as written by _row
    return Row(tuple(order), {path: _value(value) for path, value in change.items()})


def _value(value: object) -> object:
    """Return a value of a plan's field: what is no single value there is never a list."""
    return tuple(map(_value, value)) if isinstance(value, list) else value
