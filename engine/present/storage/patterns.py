"""What a store of patterns comes to, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from shlex import join

import numpy as np

from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.present.parts import Column, Part, TextPart, columns_part, table_part
from capacity_tui.engine.present.pictures.charts import rank_chart
from capacity_tui.engine.present.pictures.svg import standalone
from capacity_tui.engine.present.pictures.text_charts import Points, rank_lines
from capacity_tui.engine.present.results import picked, to_builtins
from capacity_tui.engine.storage import (
    DISAGREES,
    TIMES,
    Bounds,
    CorpusFit,
    LevelFit,
    PatternLevel,
    PatternStorage,
    Pieces,
    Read,
)
from capacity_tui.engine.units import (
    PERCENT,
    format_bytes,
    format_count,
    format_number,
    format_percent,
    format_seconds,
    format_significant,
)

RANKS = (1, 100, 10_000)  # Ranks whose frequency is shown

GROWTH_HEADS = ("samples", "unique by the rule", "by the law", "bytes", "from", "to")


def pattern_storage_as_dict(pattern_storage: PatternStorage, grown: PatternStorage | None = None) -> dict[str, object]:
    """Return it, and the same for growing sizes, as plain data, under the names that scripts rely on."""
    question, known = pattern_storage.question, pattern_storage.known
    data: dict[str, object] = {
        **picked(question, "samples", "tokens", "chunk"),
        "levels": [_level(level) for level in pattern_storage.levels],
        "total_bytes": pattern_storage.total_bytes.value,
        "raw_bytes": pattern_storage.raw_bytes,
        "repeated_bytes": pattern_storage.repeated_bytes,
        "ranges": {"total_bytes": _ends(pattern_storage.total_bytes)},
        "overhead": {"share": known.overhead, **known.overhead_parts},
        "expected_distinct": [level.expected for level in pattern_storage.levels],
        "disagreement": pattern_storage.disagreement,
        "frequencies": [
            {"rank": rank, "count": pattern_storage.levels[0].frequency(float(rank))}
            for rank in RANKS
            if rank <= mean(pattern_storage.levels[0].kinds)
        ],
        "segmentation": [asdict(pieces) for pieces in pattern_storage.segmentation],
        "growth": [] if grown is None else growth_rows(grown),
        "remarks": list(pattern_remarks(pattern_storage)),
    }
    return {key: to_builtins(value) for key, value in data.items()}


def pattern_storage_parts(pattern_storage: PatternStorage, grown: PatternStorage | None = None) -> Iterator[Part]:
    """Yield the levels, how they grow, and what to know of them."""
    total = pattern_storage.total_bytes
    yield TextPart(f"{_size(total.value)} ({_size(total.low)} to {_size(total.high)})", "strong")
    yield columns_part(_LEVELS, pattern_storage.levels)
    yield TextPart()
    if grown is not None:
        yield table_part(GROWTH_HEADS, growth_cells(grown), range(len(GROWTH_HEADS)), (0, 3))
        yield TextPart()
    for line in pattern_remarks(pattern_storage):
        yield TextPart(line)


_LEVELS: Sequence[Column[PatternLevel]] = (
    Column("level", lambda level: level.name, is_kept=True),
    Column("holds", lambda level: level.holds),
    Column("patterns", lambda level: _count(level.samples), is_right=True),
    Column("deduplication", lambda level: f"{format_significant(PERCENT * level.deduplication)} %", True, True),
    Column("unique", lambda level: _count(level.unique.value), is_right=True, is_kept=True),
    Column("bytes", lambda level: _size(level.bytes.value), is_right=True, is_kept=True),
    Column("by the law", lambda level: _count(level.expected), is_right=True),
    Column("rule / law", lambda level: f"{mean(level.unique.value / level.expected):.3g}", is_right=True),
    Column("from", lambda level: _size(level.bytes.low), is_right=True),
    Column("to", lambda level: _size(level.bytes.high), is_right=True),
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


def pattern_remarks(pattern_storage: PatternStorage) -> Iterator[str]:
    """Yield what to know of it: how often patterns occur, what the store adds, where rule and law disagree."""
    first, known = pattern_storage.levels[0], pattern_storage.known
    ranks = [rank for rank in RANKS if rank <= mean(first.kinds)]
    result = ", ".join(f"rank {format_number(rank)}: {_count(first.frequency(float(rank)))} times" for rank in ranks)
    yield f"by the law with exponent {first.alpha:g} the {first.holds} occur: {result}"
    parts = ", ".join(f"{name} {format_percent(share, 1)}" for name, share in known.overhead_parts.items())
    yield (
        f"the store adds {format_percent(known.overhead)} ({parts}) to {_size(pattern_storage.raw_bytes)} of "
        f"documents; with every repetition stored these would be {_size(pattern_storage.repeated_bytes)}"
    )
    for level in pattern_storage.levels:
        if abs(mean(level.disagreement)) > DISAGREES:
            yield _disagreement(level)
    if pattern_storage.segmentation:
        yield _against_sentences(*pattern_storage.segmentation)
    if not pattern_storage.question.deduplication:
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


def _against_sentences(chunks: Pieces, sentences: Pieces) -> str:
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
        **picked(level, "name", "holds", "samples"),
        "unique": level.unique.value,
        "deduplication": level.deduplication,
        "bytes": level.bytes.value,
        **picked(level, "raw_bytes", "pattern_bytes"),
        "ranges": {"unique": _ends(level.unique), "bytes": _ends(level.bytes)},
        **picked(level, "alpha", "kinds"),
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


_MOST_NAMED = 3


def corpus_as_dict(corpus_fit: CorpusFit, seconds: float) -> dict[str, object]:
    """Return what a corpus is like as plain data, under the names that scripts rely on."""
    law = corpus_fit.tokens.law
    data: dict[str, object] = {
        "alpha": law.alpha,
        "deduplication": [level.deduplication for level in corpus_fit.levels],
        **picked(law, "goodness", "holds", "why_not"),
        "ranges": {"alpha": {"low": law.alpha_low, "high": law.alpha_high}},
        "ranks": [picked(row, "rank", "count", "fitted") for row in corpus_fit.tokens.ranks()],
        "files": corpus_fit.read.files,
        "skipped": [str(file) for file in corpus_fit.read.skipped],
        "documents": corpus_fit.read.documents,
        "text_bytes": corpus_fit.read.bytes,
        "complete": corpus_fit.complete,
        "seconds": seconds,
        "tokens": _corpus_level(corpus_fit.tokens),
        "levels": [_corpus_level(level) for level in corpus_fit.levels],
        "sentences": None if corpus_fit.sentences is None else _corpus_level(corpus_fit.sentences),
        "estimate": estimate_command(corpus_fit),
        "remarks": list(corpus_remarks(corpus_fit)),
    }
    return {key: to_builtins(value) for key, value in data.items()}


def corpus_parts(corpus_fit: CorpusFit, seconds: float) -> Iterator[Part]:
    """Yield what was read, its levels, what more text would repeat, and what to know of it."""
    levels = [corpus_fit.tokens, *corpus_fit.levels, *([corpus_fit.sentences] if corpus_fit.sentences else [])]
    yield TextPart(f"{progress_line(corpus_fit.read)}, {format_seconds(seconds)}", "strong")
    yield columns_part(_FITTED, levels)
    growing = [level for level in levels if level.deduplication_at(1.0) is not None]
    if growing:
        yield TextPart()
        heads = ("repeated in", "this text", *(f"{times:g} times as much" for times in TIMES))
        yield table_part(heads, map(_growth_cells, growing), range(1, len(heads)), (0, 1))
    yield TextPart()
    for line in corpus_remarks(corpus_fit):
        yield TextPart(line)


def corpus_picture(corpus_fit: CorpusFit, width: int, ascii_only: bool) -> tuple[str, ...]:
    """Return the frequencies of tokens and of the first level over their ranks, as lines of text."""
    lines: list[str] = []
    for level in (corpus_fit.tokens, corpus_fit.levels[0]):
        counted, law = rank_points(level)
        if len(counted) > 1:
            lines += ["", f"{level.holds} by rank", *rank_lines(counted, law, width, ascii_only=ascii_only)]
    return tuple(lines)


def corpus_svg(corpus_fit: CorpusFit) -> str:
    """Return the frequencies of tokens over their ranks as an SVG file."""
    return standalone(rank_chart(f"{corpus_fit.tokens.holds} by rank", *rank_points(corpus_fit.tokens))) + "\n"


def rank_points(level: LevelFit) -> tuple[Points, Points]:
    """Return ranks with their counts, and with what the law has there."""
    rows = list(level.ranks())
    return [(row.rank, row.count) for row in rows], [(row.rank, row.fitted) for row in rows]


def progress_line(read: Read) -> str:
    """Return what was read by now in words."""
    files = f"{format_number(read.files)} files, " if read.files > 1 else ""
    texts = f"{format_number(read.documents)} texts, " if read.documents > max(read.files, 1) else ""
    of = f" of {format_bytes(read.total_bytes, 'MB')}" if read.bytes < read.total_bytes else ""
    return f"{files}{texts}{format_bytes(read.bytes, 'MB')}{of}"


def estimate_command(corpus_fit: CorpusFit) -> str:
    """Return the command that estimates the storage of texts like these."""
    question = corpus_fit.storage_question()
    words = [
        "capacity-tui",
        "storage",
        "estimate",
        "--samples",
        f"{question.samples:g}",
        "--tokens",
        f"{question.tokens:.6g}",
    ]
    words += ["--chunk", f"{question.chunk:g}", "--levels", str(question.levels)]
    words += ["--fan-in", f"{question.fan_in:g}"] if question.fan_in else []
    lists = {"--alpha": question.alpha, "--dedup": question.deduplication, "--kinds": question.kinds}
    for option, values in lists.items():
        words += [option, ",".join(f"{value:.4g}" for value in values)] if values else []
    return join(words)


def corpus_remarks(corpus_fit: CorpusFit) -> Iterator[str]:
    """Yield what to know: where no law holds, what was sampled, chunks beside sentences, what to do next."""
    for level in (corpus_fit.tokens, *corpus_fit.levels):
        if not level.law.holds:
            yield f"{level.holds}: no law holds: {level.law.why_not}"
    for level in (corpus_fit.tokens, *corpus_fit.levels):
        if level.tally.relative_error:
            error = format_percent(level.tally.relative_error, 2)
            kept = format_percent(level.tally.rate, 2)
            yield f"{level.holds}: counted on {kept} of the rarer ones, which puts {error} of error on their number"
    if corpus_fit.sentences is not None:
        yield _corpus_against_sentences(corpus_fit.levels[0], corpus_fit.sentences)
    if not corpus_fit.complete:
        yield "stopped before the end: counts and shares are those of the part that was read"
    if corpus_fit.read.skipped:
        names = ", ".join(file.name for file in corpus_fit.read.skipped[:_MOST_NAMED])
        yield f"left out, since they hold no text: {len(corpus_fit.read.skipped)} file(s) ({names} ...)"
    yield f"what more of such texts takes to keep: {estimate_command(corpus_fit)}"


def _corpus_against_sentences(chunks: LevelFit, sentences: LevelFit) -> str:
    shares = [format_percent(level.deduplication, 1) for level in (chunks, sentences)]
    why = (
        "; chunks begin anywhere, so that the same words are cut in many ways, sentences where the words do"
        if sentences.deduplication > chunks.deduplication
        else ""
    )
    return f"{chunks.holds} repeat {shares[0]}, the same text cut at full stops {shares[1]}{why}"


_FITTED: Sequence[Column[LevelFit]] = (
    Column("level", lambda level: level.name, is_kept=True),
    Column("holds", lambda level: level.holds),
    Column("patterns", lambda level: format_count(level.tally.occurrences, decimals=2), is_right=True),
    Column("unique", lambda level: format_count(round(level.tally.distinct), decimals=2), is_right=True),
    Column("deduplication", lambda level: format_percent(level.deduplication, 2), is_right=True, is_kept=True),
    Column("exponent", lambda level: f"{level.law.alpha:.2f}", is_right=True, is_kept=True),
    Column("law", lambda level: "holds" if level.law.holds else "no", is_kept=True),
    Column("goodness", lambda level: f"{level.law.goodness:.3f}", is_right=True),
    Column("from", lambda level: f"{level.law.alpha_low:.2f}", is_right=True),
    Column("to", lambda level: f"{level.law.alpha_high:.2f}", is_right=True),
    Column("kinds", lambda level: format_count(level.law.kinds) if level.law.holds else "", is_right=True),
)


def _growth_cells(level: LevelFit) -> Sequence[str]:
    grown = (level.deduplication_at(times) for times in TIMES)
    return (level.holds, format_percent(level.deduplication, 1), *(format_percent(share, 1) for share in grown))


def _corpus_level(level: LevelFit) -> dict[str, object]:
    law = level.law
    return {
        "name": level.name,
        "holds": level.holds,
        "samples": level.tally.occurrences,
        "unique": level.tally.distinct,
        "unique_relative_error": level.tally.relative_error,
        "deduplication": level.deduplication,
        "alpha": law.alpha,
        "ranges": {"alpha": {"low": law.alpha_low, "high": law.alpha_high}},
        "kinds": law.kinds,
        "goodness": law.goodness,
        "law_holds": law.holds,
        "why_not": law.why_not,
        "growth": [{"times": times, "deduplication": level.deduplication_at(times)} for times in TIMES],
        "ranks": [picked(row, "rank", "count", "fitted") for row in level.ranks()],
    }
