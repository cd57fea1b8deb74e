"""Answers of the engine as Rich tables and styled lines: estimates, comparisons, explanations, searches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from capacity_tui.engine.present import assumed_text, headline, note_text
from capacity_tui.engine.present import basis as basis_text
from capacity_tui.engine.present import blocks as figure_blocks
from capacity_tui.engine.present import chosen as chosen_settings
from capacity_tui.engine.present import notes as answer_notes
from capacity_tui.engine.units import format_count
from capacity_tui.tui.cli.rich_tables import Listing, table

if TYPE_CHECKING:
    from capacity_tui.engine.estimate import Answer, Estimate
    from capacity_tui.engine.plan import Plan
    from capacity_tui.engine.present import Block as FigureBlock
    from capacity_tui.engine.present import ComparisonTable, ExplanationText, FormulaInput
    from capacity_tui.engine.solve import Sensitivity
    from capacity_tui.engine.solve.search import Answer as SearchAnswer
    from capacity_tui.engine.verdict import Verdict

_VERDICT_STYLES = {"good": "bold green", "warn": "bold yellow", "bad": "bold red", "dim": "yellow"}


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
    if chosen := chosen_settings(plan, estimate):
        yield Text("Chosen:", style="bold")
        yield from (Text(f"  - {line}") for line in chosen)
    if in_full:
        yield Text(f"Basis: {basis_text(estimate)}", style="dim")
    elif estimate.basis.assumed:
        yield Text(f"Also assumed: {', '.join(estimate.basis.assumed)}", style="dim")


def verdict_line(plan: Plan, estimate: Estimate) -> Text:
    """Return what is run, and whether it fits."""
    return Text.assemble((headline(plan, estimate), "bold"), ": ", toned(estimate.verdict, estimate.verdict_text))


def toned(verdict: Verdict, text: str) -> Text:
    """Return a text in the colour of a verdict."""
    return Text(text, style=_VERDICT_STYLES[verdict.tone])


def _figures(blocks: Iterable[FigureBlock]) -> Table:
    figures = Table(box=None, show_header=False, pad_edge=False)
    figures.add_column(no_wrap=True)
    figures.add_column(no_wrap=True, justify="right")
    figures.add_column(style="dim", overflow="fold")
    for block in blocks:
        figures.add_row(Text(block.title, style="bold"))
        for row in (row for row in block.rows if row.value):
            spread = f"({row.spread})" if row.spread else ""
            figures.add_row(Text(f"  {row.label}"), Text(row.value), Text(spread))
    return figures


def comparison_table(columns: Sequence[tuple[str, Plan, Estimate]]) -> Table:
    """Return plans side by side, one line a figure.

    Args:
        columns: name, plan and estimate of each.
    """
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    grid.add_column("", overflow="fold")
    for name, _, _ in columns:
        # A folded figure reads as two.
        grid.add_column(Text(name), justify="right", no_wrap=True)
    grid.add_row(Text("verdict"), *(toned(estimate.verdict, estimate.verdict.words) for _, _, estimate in columns))
    filled = [_settings(plan) for _, plan, _ in columns]
    for label in dict.fromkeys(label for settings in filled for label in settings):
        grid.add_row(Text(label), *(Text(settings.get(label, "")) for settings in filled))
    figures = [
        {
            (block.title, row.label): row.value
            for block in figure_blocks(plan, estimate)
            for row in block.rows
            if row.value
        }
        for _, plan, estimate in columns
    ]
    title = ""
    for key in dict.fromkeys(key for figure in figures for key in figure):
        if key[0] != title:
            title = key[0]
            grid.add_row(Text(title, style="bold"))
        grid.add_row(Text(f"  {key[1]}"), *(Text(figure.get(key, "")) for figure in figures))
    return grid


def side_by_side_tables(names: Sequence[str], tables: Iterable[ComparisonTable]) -> Iterator[RenderableType]:
    """Yield the tables of a comparison, one column a plan.

    Args:
        names: what the plans are called.
        tables: what is told of them.
    """
    for figures in tables:
        grid = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        grid.add_column(Text(figures.title, style="bold"), overflow="fold")
        for name in names:
            grid.add_column(Text(name), justify="right", overflow="fold")
        for row in figures.rows:
            grid.add_row(*map(Text, row))
        yield grid


def _settings(plan: Plan) -> dict[str, str]:
    """Return what a mode chooses, by its label."""
    training, parallel, serving = plan.training, plan.parallelism, plan.inference
    model = {"model": plan.model.name or plan.model.config or ""}
    if plan.task == "infer":
        return {**model, "weights": serving.weights_format, "batch": str(serving.batch)}
    if plan.task == "fit":
        return model
    return {
        **model,
        "sequence": f"{training.seq_len} tok",
        "micro / global batch": f"{training.micro_batch} / {training.global_batch}",
        "precision": training.precision,
        "checkpointing": training.checkpointing,
        "dp x tp x pp, ZeRO": f"{parallel.dp} x {parallel.tp} x {parallel.pp}, {parallel.zero}",
        **({"tokens": format_count(float(training.tokens), "tok")} if isinstance(training.tokens, float) else {}),
    }


def limit_line(answer: Answer) -> Iterator[RenderableType]:
    """Yield what limits a run, in words, where there is a roofline."""
    from capacity_tui.engine.explain import roofline
    from capacity_tui.engine.present.pictures import limit_text as roofline_limit_text

    if (drawn := roofline(answer)) is not None:
        yield Text(roofline_limit_text(drawn, answer.estimate), style="bold")


def explanation_tables(shown: ExplanationText) -> Iterator[RenderableType]:
    """Yield why a figure is what it is: its parts, formulas with their numbers, sources, strongest lever."""
    from capacity_tui.engine.present import FormulaStep

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
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(style="dim", overflow="fold")
    for entry in entries:
        grid.add_row(Text(f"  {entry.name}"), Text(entry.text), Text(entry.source))
    return grid


_MOST_REASONS = 8


def search_tables(answer: SearchAnswer) -> Iterator[RenderableType]:
    """Yield the best configurations, and what the search looked at."""
    from capacity_tui.engine.present import reason_rows, search_lines, search_table

    listing = search_table(answer)
    if listing.rows:
        yield Listing(listing.heads, listing.rows, frozenset(listing.right), frozenset(range(listing.kept)))
    else:
        yield Text("nothing fits and keeps every limit", style="bold red")
    for line in search_lines(answer):
        yield Text(line)
    for title, reasons in (("impossible", answer.rejected), ("over a limit", answer.missed)):
        if reasons:
            yield Text(f"{title}:", style="bold")
            yield table(("", "why", "such as"), reason_rows(reasons)[:_MOST_REASONS], right=(0,))


def sensitivity_tables(result: Sensitivity, plan_name: str, top: int, ascii_only: bool) -> Iterator[RenderableType]:
    """Yield the figure, what moves it with bars on one scale, and what to measure next.

    Args:
        result: what moves it.
        plan_name: how commands name the plan.
        top: rows of each table.
        ascii_only: whether bars are drawn with ASCII characters alone.
    """
    from capacity_tui.engine.present import TORNADO_HEADS, measurement_advice, tornado_headline, tornado_tables

    yield Text(tornado_headline(result, plan_name), style="bold")
    for figures in tornado_tables(result, top, ascii_only):
        rows = tuple((row.label, row.bar, *row.cells) for row in figures.rows)
        right = frozenset(range(2, 2 + len(TORNADO_HEADS)))
        yield Listing((figures.title, "", *TORNADO_HEADS), rows, right, kept=frozenset({0}), spare=frozenset({1}))
        if figures.others:
            yield Text(f"and {figures.others} more that move it less", style="dim")
    yield Text(measurement_advice(result, plan_name))
