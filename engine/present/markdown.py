"""An answer as a Markdown report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.explain import Roofline, memory_timeline, step_timeline
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.present.pictures.roofline_chart import limit_text, roofline_lines
from capacity_tui.engine.present.pictures.timeline_chart import memory_lines, step_lines
from capacity_tui.engine.present.plan_report import SCALING_HEADS, scaling_rows, scaling_text
from capacity_tui.engine.present.reports import Report
from capacity_tui.engine.present.summary import basis, blocks, chosen, headline, note_text, notes, verdict_sentence
from capacity_tui.engine.printable import printable, printable_lines

_WIDTH = 72
"""Columns of drawings of text."""
# What would end a cell, begin markup or open a tag in the texts of a table.
_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def report(of: Report) -> str:
    """Return a report as Markdown."""
    return to_markdown(of.answer.plan, of.answer.estimate, of.draw_roofline(of.answer))


def to_markdown(plan: Plan, estimate: Estimate, roofline: Roofline | None = None) -> str:
    """Return the answer as Markdown: verdict, figures with their ranges, advice, where it all comes from.

    Args:
        plan: the plan as resolved.
        estimate: what was computed for it.
        roofline: its roofline, where there is one.
    """
    return printable_lines("\n".join(_lines(plan, estimate, roofline))) + "\n"


def _lines(plan: Plan, estimate: Estimate, roofline: Roofline | None) -> Iterator[str]:
    yield f"# {escaped(headline(plan, estimate))}"
    yield ""
    yield f"**{verdict_sentence(estimate)}.**"
    for block in blocks(plan, estimate):
        rows = [(row.label, row.value, row.spread) for row in block.rows]
        yield from table_lines(block.title, (block.title, "Value", "Range"), rows)
    if roofline is not None:
        yield from ("", "## What limits it", "", escaped(limit_text(roofline, estimate)))
        if plan.report.include_plots:
            yield from ("", *_fenced("text", "\n".join(roofline_lines(roofline))))
    if plan.report.include_plots and plan.report.detailed_breakdown:
        drawn = (*memory_lines(memory_timeline(estimate), _WIDTH), "", *step_lines(step_timeline(estimate), _WIDTH))
        yield from ("", "## What happens when", "", *_fenced("text", "\n".join(drawn)))
    if estimate.scalability:
        yield from table_lines("Scalability", SCALING_HEADS, scaling_rows(estimate.scalability))
        yield from ("", *(f"- {escaped(line)}" for line in scaling_text(estimate.scalability)))
    for title, entries in notes(plan, estimate):
        yield from ("", f"## {title}", "")
        yield from (f"- {escaped(note_text(note))}" for note in entries)
    if told := chosen(plan, estimate):
        yield from ("", "## Chosen", "", *(f"- {escaped(line)}" for line in told))
    yield from ("", "## Basis", "", escaped(basis(estimate)))
    if plan.report.detailed_breakdown:
        yield from ("", "## Plan", "", *_fenced("yaml", dump_plan(plan)))


def _fenced(language: str, text: str) -> Iterator[str]:
    """Yield a block of text whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{language}", text.rstrip("\n"), fence)


def table_lines(title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield a table under its title; what begins with a space stands below the row above."""
    yield from ("", f"## {title}", "")
    yield f"| {' | '.join(heads)} |"
    yield f"| --- |{' ---: |' * (len(heads) - 1)}"
    for row in rows:
        cells = (f"&nbsp;&nbsp;{escaped(cell.strip())}" if cell[:1] == " " else escaped(cell) for cell in row)
        yield f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return printable(text.translate(_SPECIAL))
