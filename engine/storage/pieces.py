"""Cuts a stream of tokens into pieces, and gives each piece 64 bits that stand for it: equal pieces have equal ones."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LONGEST_SENTENCE = 4096


def mixed(values: Hashes) -> Hashes:
    """Return values with every bit depending on every other; different values stay different.

    Source: the finalizer of SplitMix64, Steele, Lea, Flood 2014.
    """
    values = values + _ODD
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))


def hashed_pieces(values: Hashes, starts: NDArray[np.intp]) -> Hashes:
    """Return what stands for each piece of a row of values: a polynomial over their places, so that order counts.

    Args:
        values: of all pieces, one after the other.
        starts: where each begins, the first at 0.
    """
    if not len(starts):
        return values[:0]
    lengths = np.diff(starts, append=len(values))
    places = np.arange(len(values)) - np.repeat(starts, lengths)
    powers = np.cumprod(np.full(int(lengths.max()), _ODD, dtype=np.uint64))
    sums = np.add.reduceat(mixed(values) * powers[places], starts)
    return mixed(sums ^ mixed(lengths.astype(np.uint64)))


class Cutter(Protocol):
    """Cuts what comes block by block."""

    def cut(self, values: Hashes, ends: bool) -> Hashes:
        """Return what stands for the pieces that are complete; all that is left where the document ends."""


class Chunks:
    """Pieces of the same length; the last of a document may be shorter.

    Args:
        length: values in a piece.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._rest: Hashes = np.empty(0, dtype=np.uint64)

    def cut(self, values: Hashes, ends: bool) -> Hashes:
        """Return what stands for the pieces that are complete; all that is left where the document ends."""
        values = np.concatenate((self._rest, values)) if len(self._rest) else values
        whole = len(values) if ends else len(values) // self._length * self._length
        self._rest = values[whole:]
        return hashed_pieces(values[:whole], np.arange(0, whole, self._length))


class Sentences:
    """Pieces that end with a full stop or the like, or with the document.

    Args:
        ends: tokens that end a sentence.
    """

    def __init__(self, ends: Hashes) -> None:
        self._ends = ends
        self._rest: Hashes = np.empty(0, dtype=np.uint64)

    def cut(self, values: Hashes, ends: bool) -> Hashes:
        """Return what stands for the pieces that are complete; all that is left where the document ends."""
        values = np.concatenate((self._rest, values)) if len(self._rest) else values
        after = np.flatnonzero(np.isin(values, self._ends)) + 1
        if ends or (len(values) - (after[-1] if len(after) else 0)) > _LONGEST_SENTENCE:
            after = (
                np.append(after, len(values))
                if len(values) and not (len(after) and after[-1] == len(values))
                else after
            )
        whole = int(after[-1]) if len(after) else 0
        self._rest = values[whole:]
        return hashed_pieces(values[:whole], np.concatenate(([0], after[:-1])).astype(np.intp) if whole else after)
