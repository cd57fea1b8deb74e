"""A measured database, as plain data and as lines."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.storage.databases import DatabaseBench, Latency
from capacity_tui.engine.units import format_bytes, format_count, format_percent, format_seconds

_SHARES = (0.5, 0.95, 0.99)
_HEADS = ("patterns", "a second", "mean", "median", "95 %", "99 %")


def database_bench_as_dict(bench: DatabaseBench) -> dict[str, object]:
    """Return what was measured as plain data, under the names that scripts rely on."""
    question, size = bench.question, bench.size
    return {
        "backend": question.backend,
        "version": bench.version,
        "place": bench.place,
        "how": bench.how,
        "documents": question.documents,
        "chunk": question.chunk,
        "write_per_second": bench.write_per_second,
        "single_write_per_second": bench.insert.per_second,
        "read_per_second": bench.query.per_second,
        "insert_ms": _latency(bench.insert),
        "query_ms": _latency(bench.query),
        "bytes": size.total_bytes,
        "index_bytes": size.index_bytes,
        "content_bytes": bench.content_bytes,
        "overhead": bench.overhead,
        "estimated_bytes": bench.estimated_bytes,
        "estimate_error": bench.error,
        "calibrated_on": bench.calibrated_on,
    }


def database_bench_parts(bench: DatabaseBench) -> Iterator[Part]:
    """Yield how fast a database stored and found patterns, and its size beside the estimate."""
    question, size = bench.question, bench.size
    count = format_count(question.documents)
    yield TextPart(f"{bench.version} in {bench.place}: {count} patterns of {question.chunk} words", "strong")
    rows = (
        ("stored, 100 in one go", format_count(bench.write_per_second), "", "", "", ""),
        ("stored one by one", format_count(bench.insert.per_second), *_times(bench.insert)),
        ("found by name", format_count(bench.query.per_second), *_times(bench.query)),
    )
    yield table_part(_HEADS, rows, right=range(1, len(_HEADS)))
    yield TextPart(f"Stored: {bench.how}", "quiet")
    if bench.error is None or bench.overhead is None:
        yield TextPart("The database tells no size.", "quiet")
        return
    index = "" if size.index_bytes is None else f", {format_bytes(size.index_bytes)} of it indexes"
    yield TextPart(f"On disk: {format_bytes(size.total_bytes)}{index}; what patterns say, and {_added(bench.overhead)}")
    estimated, side = format_bytes(bench.estimated_bytes), "more" if bench.error > 0 else "less"
    told = f"{estimated}, {format_percent(abs(bench.error), 1)} {side}"
    yield TextPart(f"Estimated from {format_count(bench.calibrated_on)} of them: {told}")


def _added(overhead: float) -> str:
    share = format_percent(abs(overhead))
    return f"{share} on top" if overhead >= 0 else f"{share} less by compression"


def _latency(latency: Latency) -> dict[str, float]:
    return {"mean": latency.mean_ms, **{f"p{100 * share:.0f}": latency.ms(share) for share in _SHARES}}


def _times(latency: Latency) -> tuple[str, ...]:
    return tuple(format_seconds(each / 1000) for each in _latency(latency).values())
