"""Rich tables of one answer for the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import Block as FigureBlock
from capacity_tui.engine.present import assumed_text, headline, note_text
from capacity_tui.engine.present import basis as basis_text
from capacity_tui.engine.present import blocks as figure_blocks
from capacity_tui.engine.present import chosen as chosen_settings
from capacity_tui.engine.present import notes as answer_notes
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.headless.tables.layout import table

_STYLES = {"good": "bold green", "warn": "bold yellow", "bad": "bold red", "dim": "yellow"}


def answer_tables(plan: Plan, estimate: Estimate, *, in_full: bool = False) -> Iterator[RenderableType]:
    """Yield what an answer says, from the verdict to what was assumed; in full where all the numbers come from."""
    yield verdict_line(plan, estimate)
    if assumed := assumed_text(estimate):
        yield Text(f"Assumed: {assumed}", style="dim")
    yield _figures(figure_blocks(plan, estimate))
    if estimate.scalability:
        from capacity_tui.engine.present import SCALING_HEADS, scaling_rows, scaling_text

        heads = [head.lower() for head in SCALING_HEADS]
        yield table(heads, scaling_rows(estimate.scalability), right=range(len(heads) - 1))
        yield from (Text(line) for line in scaling_text(estimate.scalability))
    for title, entries in answer_notes(plan, estimate):
        yield Text(f"{title}:", style="bold")
        for note in entries:
            yield Text(f"  - {note_text(note)}")
    if told := chosen_settings(plan, estimate):
        yield Text("Chosen:", style="bold")
        yield from (Text(f"  - {line}") for line in told)
    if in_full:
        yield Text(f"Basis: {basis_text(estimate)}", style="dim")
    elif estimate.basis.assumed:
        yield Text(f"Also assumed: {', '.join(estimate.basis.assumed)}", style="dim")


def verdict_line(plan: Plan, estimate: Estimate) -> Text:
    """Return what is run, and whether it fits."""
    return Text.assemble((headline(plan, estimate), "bold"), ": ", toned(estimate.verdict, estimate.verdict_text))


def toned(verdict: Verdict, text: str) -> Text:
    """Return a text in the colour of a verdict."""
    return Text(text, style=_STYLES[verdict.tone])


def _figures(found: Iterable[FigureBlock]) -> Table:
    figures = Table(box=None, show_header=False, pad_edge=False)
    figures.add_column(no_wrap=True)
    figures.add_column(no_wrap=True, justify="right")
    figures.add_column(style="dim", overflow="fold")
    for block in found:
        figures.add_row(Text(block.title, style="bold"))
        for row in (row for row in block.rows if row.value):
            spread = f"({row.spread})" if row.spread else ""
            figures.add_row(Text(f"  {row.label}"), Text(row.value), Text(spread))
    return figures
