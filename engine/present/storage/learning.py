"""What would hold learning up, as plain data and as lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.storage.learning import LearningForecast
from capacity_tui.engine.units import format_bytes, format_count, format_percent, format_seconds

_HEADS = ("resource", "time", "what it does", "known from")
_RATES_OF = {"database": ("found_patterns", "stored_patterns"), "memory": ("random_reads",), "disk": ("disk_write",)}


def learning_as_dict(found: LearningForecast) -> dict[str, object]:
    """Return what would hold learning up as plain data."""
    question = found.storage.question
    return {
        "samples": question.samples,
        "tokens": question.tokens,
        "chunk": question.chunk,
        "levels": question.levels,
        "bottleneck": found.kind,
        "confidence": found.confidence,
        "evidence": found.evidence,
        "seconds": found.seconds,
        "times": {each.kind: each.seconds for each in found.times},
        "bytes": float(found.storage.total_bytes.value),
        "free_bytes": found.free_bytes,
        "tier": found.tier,
        "thresholds": dict(found.thresholds),
        "rates": {name: asdict(rate) for name, rate in found.rates.items()},
    }


def learning_parts(found: LearningForecast) -> Iterator[Part]:
    """Yield what would hold learning up, and the time of each resource."""
    question = found.storage.question
    samples, chunk = (format_count(float(each)) for each in (question.samples, question.chunk))
    job = f"{samples} samples, chunks of {chunk}, {question.levels} levels"
    yield TextPart(f"Predicted bottleneck of learning {job}: {found.kind}, {found.evidence}", "strong")
    rows = [
        (
            each.kind,
            format_seconds(each.seconds),
            each.evidence,
            "; ".join(dict.fromkeys(str(found.rates[name].provenance) for name in _RATES_OF.get(each.kind, ()))),
        )
        for each in found.times
    ]
    yield table_part(_HEADS, rows, right=(1,))
    shares = found.thresholds
    said = f"a database may fill {format_percent(shares['memory_share'])} of main memory"
    free = "" if found.free_bytes is None else f", {format_bytes(found.free_bytes)}"
    said += f" and {format_percent(shares['disk_share'])} of the free disk{free}"
    yield TextPart(f"Tier {found.tier}: {said}", "quiet")
