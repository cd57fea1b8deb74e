"""What a store of patterns comes to, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np

from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.present.as_builtins import to_builtins
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.storage import DISAGREES, Bounds, PatternLevel, PatternStorage, Pieces
from capacity_tui.engine.units import (
    PERCENT,
    format_bytes,
    format_count,
    format_number,
    format_percent,
    format_significant,
)

RANKS = (1, 100, 10_000)
"""Ranks whose frequency is told."""
LEVEL_HEADS = (
    "level", "holds", "patterns", "deduplication", "unique", "bytes", "by the law", "rule / law", "from", "to"
)  # fmt: skip
GROWTH_HEADS = ("samples", "unique by the rule", "by the law", "bytes", "from", "to")


def pattern_storage_as_dict(found: PatternStorage, grown: PatternStorage | None = None) -> dict[str, object]:
    """Return it as plain data, under the names that scripts rely on.

    Args:
        found: for one size of a corpus.
        grown: the same for many sizes.
    """
    question, known = found.question, found.known
    data: dict[str, object] = {
        "samples": question.samples,
        "tokens": question.tokens,
        "chunk": question.chunk,
        "levels": [_level(level) for level in found.levels],
        "total_bytes": found.total_bytes.value,
        "raw_bytes": found.raw_bytes,
        "repeated_bytes": found.repeated_bytes,
        "ranges": {"total_bytes": _ends(found.total_bytes)},
        "overhead": {"share": known.overhead, **known.overhead_parts},
        "expected_distinct": [level.expected for level in found.levels],
        "disagreement": found.disagreement,
        "frequencies": [
            {"rank": rank, "count": found.levels[0].frequency(float(rank))}
            for rank in RANKS
            if rank <= mean(found.levels[0].kinds)
        ],
        "segmentation": [asdict(pieces) for pieces in found.segmentation],
        "growth": [] if grown is None else growth_rows(grown),
        "remarks": list(pattern_remarks(found)),
    }
    return {key: to_builtins(value) for key, value in data.items()}


def pattern_storage_parts(found: PatternStorage, grown: PatternStorage | None = None) -> Iterator[Part]:
    """Yield the levels, how they grow, and what to know of them.

    Args:
        found: for one size of a corpus.
        grown: the same for many sizes.
    """
    total = found.total_bytes
    yield TextPart(f"{_size(total.value)} ({_size(total.low)} to {_size(total.high)})", "strong")
    yield table_part(LEVEL_HEADS, map(level_cells, found.levels), range(2, len(LEVEL_HEADS)), (0, 3, 4, 5))
    yield TextPart()
    if grown is not None:
        yield table_part(GROWTH_HEADS, growth_cells(grown), range(len(GROWTH_HEADS)), (0, 3))
        yield TextPart()
    for line in pattern_remarks(found):
        yield TextPart(line)


def level_cells(level: PatternLevel) -> Sequence[str]:
    """Return one level as cells under ``LEVEL_HEADS``."""
    return (
        level.name,
        level.holds,
        _count(level.samples),
        f"{format_significant(PERCENT * level.deduplication)} %",
        _count(level.unique.value),
        _size(level.bytes.value),
        _count(level.expected),
        f"{mean(level.unique.value / level.expected):.3g}",
        *(_size(end) for end in (level.bytes.low, level.bytes.high)),
    )


def growth_cells(grown: PatternStorage) -> Iterator[Sequence[str]]:
    """Yield each size of a corpus as cells under ``GROWTH_HEADS``."""
    for row in growth_rows(grown):
        yield (
            *(_count(row[key]) for key in ("samples", "unique", "expected_distinct")),
            *(_size(row[key]) for key in ("total_bytes", "low", "high")),
        )


def growth_rows(grown: PatternStorage) -> list[dict[str, float]]:
    """Return each size of a corpus with what its patterns take, by name."""
    total = grown.total_bytes
    columns = {
        "samples": grown.question.samples,
        "unique": grown.unique,
        "expected_distinct": grown.expected,
        "total_bytes": total.value,
        "low": total.low,
        "high": total.high,
    }
    rows = zip(*(np.ravel(column) for column in columns.values()), strict=True)
    return [dict(zip(columns, map(float, row), strict=True)) for row in rows]


def pattern_remarks(found: PatternStorage) -> Iterator[str]:
    """Yield what to know of it: how often patterns occur, what the store adds, where rule and law disagree."""
    first, known = found.levels[0], found.known
    ranks = [rank for rank in RANKS if rank <= mean(first.kinds)]
    said = ", ".join(f"rank {format_number(rank)} {_count(first.frequency(float(rank)))} times" for rank in ranks)
    yield f"by the law with exponent {first.alpha:g} the {first.holds} occur: {said}"
    parts = ", ".join(f"{name} {format_percent(share, 1)}" for name, share in known.overhead_parts.items())
    yield (
        f"the store adds {format_percent(known.overhead)} ({parts}) to {_size(found.raw_bytes)} of documents; "
        f"with every repetition stored these would be {_size(found.repeated_bytes)}"
    )
    for level in found.levels:
        if abs(mean(level.disagreement)) > DISAGREES:
            yield _disagreement(level)
    if found.segmentation:
        yield _beside_sentences(*found.segmentation)
    if not found.question.deduplication:
        yield "deduplication is a rule of thumb that knows no size of a corpus: `storage fit` measures yours"


def _disagreement(level: PatternLevel) -> str:
    kinds = mean(level.agreeing_kinds)
    agrees = (
        f"it would give that with {_count(kinds)} kinds"
        if np.isfinite(kinds)
        else "with this exponent more is repeated, whatever their number"
    )
    return (
        f"{level.holds}: the rule keeps {_count(level.unique.value)} different ones, "
        f"{mean(level.unique.value / level.expected):.3g} times the {_count(level.expected)} expected under the law "
        f"with exponent {level.alpha:g} over {_count(level.kinds)} kinds; {agrees}"
    )


def _beside_sentences(chunks: Pieces, sentences: Pieces) -> str:
    """Return chunks beside sentences: what of the text is kept, and what that takes."""
    shares = [format_percent(mean(pieces.tokens_kept), 1) for pieces in (chunks, sentences)]
    sizes = [_size(pieces.bytes) for pieces in (chunks, sentences)]
    better = "less" if mean(chunks.tokens_kept) < mean(sentences.tokens_kept) else "no less"
    return (
        f"chunks of {_count(chunks.tokens)} tokens keep {better} of the text than sentences of "
        f"{_count(sentences.tokens)}: {shares[0]} beside {shares[1]}; as documents {sizes[0]} beside {sizes[1]}"
    )


def _level(level: PatternLevel) -> dict[str, object]:
    return {
        "name": level.name,
        "holds": level.holds,
        "samples": level.samples,
        "unique": level.unique.value,
        "deduplication": level.deduplication,
        "bytes": level.bytes.value,
        "raw_bytes": level.raw_bytes,
        "pattern_bytes": level.pattern_bytes,
        "ranges": {"unique": _ends(level.unique), "bytes": _ends(level.bytes)},
        "alpha": level.alpha,
        "kinds": level.kinds,
        "expected_distinct": level.expected,
        "expected_closed_form": level.expected_closed,
        "disagreement": level.disagreement,
    }


def _ends(bounds: Bounds) -> dict[str, Number]:
    return {"low": bounds.low, "high": bounds.high}


def _count(value: Number) -> str:
    return format_significant(mean(value)) if mean(value) < 1e4 else format_count(mean(value), decimals=2)


def _size(value: Number) -> str:
    return format_bytes(mean(value), "GB")
