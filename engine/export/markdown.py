"""An answer as a Markdown report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.export.summary import basis, blocks, headline, note_text, notes, verdict
from capacity_tui.engine.units import format_percent, format_seconds
from capacity_tui.engine.workload.plan import Plan

# What would end a cell, begin markup or open a tag in the texts of a table.
_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def to_markdown(plan: Plan, estimate: Estimate) -> str:
    """Return the answer as Markdown: verdict, figures with their ranges, advice, where it all comes from."""
    return "\n".join(_lines(plan, estimate)) + "\n"


def _lines(plan: Plan, estimate: Estimate) -> Iterator[str]:
    yield f"# {_escaped(headline(plan, estimate))}"
    yield ""
    yield f"**{verdict(estimate)[0].upper()}{verdict(estimate)[1:]}.**"
    for block in blocks(plan, estimate):
        rows = [(row.label, row.value, row.spread) for row in block.rows]
        yield from _table(block.title, (block.title, "Value", "Range"), rows)
    if estimate.scalability:
        points = [
            (
                str(point.devices),
                str(point.batch),
                format_seconds(point.step_seconds),
                f"{point.speedup:.2f}",
                format_percent(point.efficiency),
            )
            for point in estimate.scalability
        ]
        yield from _table("Scalability", ("Devices", "Batch", "Step", "Speedup", "Efficiency"), points)
    for title, entries in notes(plan, estimate):
        yield from ("", f"## {title}", "")
        yield from (f"- {_escaped(note_text(note))}" for note in entries)
    yield from ("", "## Basis", "", _escaped(basis(estimate)))


def _table(title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    yield f"| {' | '.join(heads)} |"
    yield f"| --- |{' ---: |' * (len(heads) - 1)}"
    for row in rows:
        cells = (f"&nbsp;&nbsp;{_escaped(cell.strip())}" if cell[:1] == " " else _escaped(cell) for cell in row)
        yield f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return text.translate(_SPECIAL).replace("\n", " ")
