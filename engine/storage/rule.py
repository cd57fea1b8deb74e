"""The rule of hierarchical learning: what is repeated at each level, and the bytes of what is not, as formulas."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate import equation
from capacity_tui.engine.numeric import Number

_SOURCE = "the rule of hierarchical learning: chunks are repeated most, whole texts hardly ever"


@equation("deduplication = first · (1 - decay)^level", unit="", source=_SOURCE)
def deduplication_at_level(first: Number, decay: Number, level: Number) -> Number:
    """Share of the patterns of a level that repeat an earlier one.

    Args:
        first: that share at the first level, of tokens.
        decay: share by which it falls with every level.
        level: number of the level, from 0.
    """
    return first * (1.0 - decay) ** level


@equation("unique = samples · (1 - deduplication)", unit="", source=_SOURCE)
def unique_patterns(samples: Number, deduplication: Number) -> Number:
    """Patterns of a level that a store keeps.

    Args:
        samples: patterns that are learnt there.
        deduplication: share of them that repeat an earlier one, as a share.
    """
    return samples * (1.0 - deduplication)


@equation("pieces = ceil(elements / chunk)", unit="", source="the last piece of a sample may be shorter")
def pieces_of(elements: Number, chunk: Number) -> Number:
    """Patterns that a sample is cut into.

    Args:
        elements: tokens of the sample, or patterns of the level below.
        chunk: how many of them make a pattern.
    """
    return np.ceil(elements / chunk)


@equation(
    "pattern = record + elements · (element + symbol)",
    unit="B",
    source="documents as BSON writes them",
    units={"record": "B", "element": "B", "symbol": "B"},
)
def pattern_bytes(record: Number, elements: Number, element: Number, symbol: Number) -> Number:
    """Bytes of a pattern as a document.

    Args:
        record: bytes of the document before its elements.
        elements: tokens, or patterns of the level below, in it.
        element: bytes around each of them.
        symbol: bytes of the text of each.
    """
    return record + elements * (element + symbol)


@equation(
    "stored = unique · pattern · (1 + overhead)",
    unit="B",
    source="the rule adds a fifth to the documents: indexes 10 to 15 %, padding 5 %, the store's own 5 %",
    units={"pattern": "B"},
)
def stored_bytes(unique: Number, pattern: Number, overhead: Number) -> Number:
    """Bytes that the patterns of a level take in a store.

    Args:
        unique: different patterns.
        pattern: bytes of one.
        overhead: what indexes, padding and the store itself take, as a share.
    """
    return unique * pattern * (1.0 + overhead)


@equation(
    "deduplication = min(first · (1 - decay)^(ln(tokens / chunk) / ln(chunk)), 1)",
    unit="",
    source="the rule between its levels, where each is chunk times as long as the one below",
)
def deduplication_of_length(first: Number, decay: Number, tokens: Number, chunk: Number) -> Number:
    """Share of pieces of some length that repeat an earlier one.

    Args:
        first: that share for chunks.
        decay: share by which it falls with every level.
        tokens: length of a piece, from 1.
        chunk: tokens of a chunk, from 2.
    """
    return np.minimum(first * (1.0 - decay) ** (np.log(tokens / chunk) / np.log(chunk)), 1.0)
