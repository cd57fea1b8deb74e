"""Rich tables of why a figure is what it is for the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.explain import roofline
from capacity_tui.engine.present import ExplanationText, FormulaInput, FormulaStep
from capacity_tui.engine.present.pictures import limit_text as roofline_limit_text


def limit_line(answer: Answer) -> Iterator[RenderableType]:
    """Yield what limits a run, in words, where there is a roofline."""
    if (drawn := roofline(answer)) is not None:
        yield Text(roofline_limit_text(drawn, answer.estimate), style="bold")


def explanation_tables(shown: ExplanationText) -> Iterator[RenderableType]:
    """Yield why a figure is what it is: its parts, formulas with their numbers, sources, strongest lever."""
    interval = f" ({shown.interval})" if shown.interval else ""
    yield Text.assemble((shown.title, "bold"), f": {shown.result}{interval}")
    yield from (Text(remark) for remark in shown.remarks)
    for step in (FormulaStep(shown.formula, shown.result, shown.inputs), *shown.steps):
        if step.formula:
            yield Text.assemble((step.formula, "bold"), f" = {step.result}")
            yield _inputs(step.inputs)
    if shown.lever:
        yield Text(f"Strongest lever: {shown.lever}")
    yield from (Text(f"Assumed: {assumption}", style="dim") for assumption in shown.assumptions)
    yield from (Text(f"Source: {source}", style="dim") for source in shown.sources)


def _inputs(entries: Iterable[FormulaInput]) -> Table:
    found = Table(box=None, show_header=False, pad_edge=False)
    found.add_column(no_wrap=True)
    found.add_column(no_wrap=True, justify="right")
    found.add_column(style="dim", overflow="fold")
    for entry in entries:
        found.add_row(Text(f"  {entry.name}"), Text(entry.text), Text(entry.source))
    return found
