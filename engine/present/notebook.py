"""Results as HTML that notebooks show: no script, nothing from elsewhere, no style for what stands around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from capacity_tui.engine.estimate import Answer, Estimate, figure, figures_of
from capacity_tui.engine.fleet.migration import Migration
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.present.explanation import FormulaStep, explanation_text
from capacity_tui.engine.present.fleet.migration import migration_parts
from capacity_tui.engine.present.html import template
from capacity_tui.engine.present.machine_facts import machine_parts
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.present.results import plan_value_text
from capacity_tui.engine.present.search_report import (
    figure_text,
    label_of,
    needed_parts,
    reason_rows,
    search_lines,
    search_table,
)
from capacity_tui.engine.present.sensitivity_report import TORNADO_HEADS, tornado_headline, tornado_tables
from capacity_tui.engine.present.side_by_side import Named, comparison_tables, side_by_side
from capacity_tui.engine.present.storage.patterns import pattern_storage_parts
from capacity_tui.engine.present.summary import blocks, headline, note_text, notes, verdict_sentence
from capacity_tui.engine.printable import printable_lines
from capacity_tui.engine.solve import Explained, Sensitivity
from capacity_tui.engine.solve.modes import Comparison, ModePlan
from capacity_tui.engine.solve.need import Needed
from capacity_tui.engine.solve.search import Answer as SearchAnswer
from capacity_tui.engine.solve.search import SearchResult
from capacity_tui.engine.storage import PatternStorage

_FIGURE_HEADS = ("", "value", "range")
_INDENT = "\N{EM SPACE}"
_MOST_ROWS = 20


def as_html(result: object) -> str:
    """Return a result as HTML; one of a kind that has no parts as its representation."""
    write = next((write for kind, write in _PARTS.items() if isinstance(result, kind)), None)
    parts = [TextPart(repr(result))] if write is None else write(result)
    return printable_lines(template("notebook.html").render(parts=tuple(parts)))


def _answer(of: Answer) -> Iterator[Part]:
    yield TextPart(headline(of.plan, of.estimate), "strong")
    yield TextPart(verdict_sentence(of.estimate))
    for block in blocks(of.plan, of.estimate):
        rows = [(row.label.replace("  ", _INDENT), row.value, row.spread) for row in block.rows]
        yield table_part((block.title, *_FIGURE_HEADS[1:]), rows, (1, 2))
    for title, entries in notes(of.plan, of.estimate):
        yield TextPart(title, "strong")
        yield from (TextPart(note_text(note)) for note in entries)


def _estimate(of: Estimate) -> Iterator[Part]:
    yield TextPart(verdict_sentence(of), "strong")
    found = (figure(of, key) for key in figures_of(of))
    rows = [(each.metric.label.strip(), each.text, each.range_text) for each in found]
    yield table_part(_FIGURE_HEADS, rows, (1, 2))


def _mode(of: ModePlan) -> Iterator[Part]:
    yield from _answer(Answer(of.resolved, of.estimate))
    yield table_part(("chosen", "why"), [(path, why) for path, why in of.reasons.items()])


def _comparison(of: Comparison) -> Iterator[Part]:
    found = side_by_side(Named(each.mode.id, Answer(each.resolved, each.estimate)) for each in of.columns)
    for each in comparison_tables(found):
        yield table_part((each.title, *found.names), each.rows, range(1, len(found.names) + 1))
    yield from (TextPart(remark) for remark in of.remarks)


def _search(of: SearchAnswer) -> Iterator[Part]:
    found = search_table(of)
    if found.rows:
        yield table_part(found.heads, found.rows, found.right)
    else:
        yield TextPart("nothing fits and keeps every limit", "strong")
    yield from (TextPart(line) for line in search_lines(of))
    for title, reasons in (("impossible", of.rejected), ("over a limit", of.missed)):
        if reasons:
            yield table_part((title, "why", "such as"), reason_rows(reasons), (0,))


def _found(of: SearchResult) -> Iterator[Part]:
    yield table_part(("setting", "value"), [(path, plan_value_text(value)) for path, value in of.set.items()])
    yield table_part(("", "value"), [(label_of(key), figure_text(key, value)) for key, value in of.figures.items()])


def _sensitivity(of: Sensitivity) -> Iterator[Part]:
    yield TextPart(tornado_headline(of, "the plan"), "strong")
    for each in tornado_tables(of, _MOST_ROWS):
        rows = [(row.label, row.bar, *row.cells) for row in each.rows]
        yield table_part((each.title, "", *TORNADO_HEADS), rows, (2, 3))


def _explained(of: Explained) -> Iterator[Part]:
    shown = explanation_text(of)
    ends = f" ({shown.interval})" if shown.interval else ""
    yield TextPart(f"{shown.title}: {shown.result}{ends}", "strong")
    yield from _steps((FormulaStep(shown.formula, shown.result, shown.inputs), *shown.steps))
    yield from (TextPart(text, "quiet") for text in (*shown.sources, *shown.assumptions, *shown.remarks))
    if shown.lever:
        yield TextPart(f"Strongest lever: {shown.lever}")


def _steps(steps: Sequence[FormulaStep]) -> Iterator[Part]:
    for step in steps:
        yield TextPart(f"{step.formula} = {step.result}" if step.formula else step.result)
        if step.inputs:
            yield table_part(("", "value", "what it is"), [(each.name, each.text, each.source) for each in step.inputs])


_PARTS: dict[type, Callable[[Any], Iterable[Part]]] = {
    Answer: _answer,
    Comparison: _comparison,
    Estimate: _estimate,
    Explained: _explained,
    SearchResult: _found,
    Machine: machine_parts,
    Migration: migration_parts,
    ModePlan: _mode,
    Needed: needed_parts,
    PatternStorage: pattern_storage_parts,
    SearchAnswer: _search,
    Sensitivity: _sensitivity,
}
"""What writes each kind of result as parts."""
