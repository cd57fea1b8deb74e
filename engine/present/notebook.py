"""Results as HTML that notebooks show: no script, nothing from elsewhere, no style for what stands around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from capacity_tui.engine.estimate import Answer, Estimate, figure, figures_of
from capacity_tui.engine.fleet.migration import Migration
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.present.explanation import explanation_parts, explanation_text
from capacity_tui.engine.present.fleet.migration import migration_parts
from capacity_tui.engine.present.machine_facts import machine_parts
from capacity_tui.engine.present.parts import Part, TextPart, parts_in_notebook, table_part
from capacity_tui.engine.present.results import plan_value_text
from capacity_tui.engine.present.search_report import figure_text, label_of, needed_parts, search_parts
from capacity_tui.engine.present.sensitivity_report import sensitivity_parts
from capacity_tui.engine.present.side_by_side import Named, comparison_parts, side_by_side
from capacity_tui.engine.present.storage.patterns import pattern_storage_parts
from capacity_tui.engine.present.summary import answer_parts, headline
from capacity_tui.engine.solve import Explained, Sensitivity
from capacity_tui.engine.solve.modes import Comparison, ModePlan
from capacity_tui.engine.solve.need import Needed
from capacity_tui.engine.solve.search import Answer as SearchAnswer
from capacity_tui.engine.solve.search import SearchResult
from capacity_tui.engine.storage import PatternStorage

_MOST_ROWS = 20


def as_html(result: object) -> str:
    """Return a result as HTML; one of a kind that has no parts as its representation."""
    write = next((write for kind, write in _PARTS.items() if isinstance(result, kind)), None)
    return parts_in_notebook([TextPart(repr(result))] if write is None else write(result))


def _answer(of: Answer) -> Iterator[Part]:
    yield TextPart(headline(of.plan, of.estimate), "strong")
    yield from answer_parts(of.plan, of.estimate)


def _estimate(of: Estimate) -> Iterator[Part]:
    yield TextPart(of.verdict_text, of.verdict.tone)
    figures = (figure(of, key) for key in figures_of(of))
    rows = [(value.metric.label.strip(), value.text, value.range_text) for value in figures]
    yield table_part(("", "value", "range"), rows, (1, 2))


def _mode(of: ModePlan) -> Iterator[Part]:
    yield from _answer(Answer(of.resolved, of.estimate))
    yield table_part(("chosen", "why"), [(path, why) for path, why in of.reasons.items()])


def _comparison(of: Comparison) -> Iterator[Part]:
    columns = side_by_side(Named(plan.mode.id, Answer(plan.resolved, plan.estimate)) for plan in of.columns)
    yield from comparison_parts(columns)
    yield from (TextPart(remark) for remark in of.remarks)


def _search_result(of: SearchResult) -> Iterator[Part]:
    yield table_part(("setting", "value"), [(path, plan_value_text(value)) for path, value in of.set.items()])
    yield table_part(("", "value"), [(label_of(key), figure_text(key, value)) for key, value in of.figures.items()])


_PARTS: dict[type, Callable[[Any], Iterable[Part]]] = {
    Answer: _answer,
    Comparison: _comparison,
    Estimate: _estimate,
    Explained: lambda of: explanation_parts(explanation_text(of)),
    SearchResult: _search_result,
    Machine: machine_parts,
    Migration: migration_parts,
    ModePlan: _mode,
    Needed: needed_parts,
    PatternStorage: pattern_storage_parts,
    SearchAnswer: search_parts,
    Sensitivity: lambda of: sensitivity_parts(of, "the plan", _MOST_ROWS),
}
"""What writes each kind of result as parts."""
