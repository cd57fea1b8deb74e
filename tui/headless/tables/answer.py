"""Rich tables of answers and catalogues for the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from capacity_tui.engine.api import (
    SCALING_HEADS,
    Answer,
    ComparisonTable,
    Estimate,
    ExplanationText,
    FigureBlock,
    FormulaInput,
    FormulaStep,
    Plan,
    Verdict,
    answer_notes,
    basis_text,
    chosen_settings,
    figure_blocks,
    format_count,
    headline,
    note_text,
    roofline,
    roofline_limit_text,
    scaling_rows,
    scaling_text,
    verdict_text,
)
from capacity_tui.tui.headless.tables.layout import table

_VERDICT_STYLES = {
    Verdict.FITS: "bold green",
    Verdict.TIGHT: "bold yellow",
    Verdict.OVER: "bold red",
    Verdict.UNKNOWN: "yellow",
}


def answer_tables(plan: Plan, estimate: Estimate) -> Iterator[RenderableType]:
    """Yield what an answer says, from the verdict to where the numbers come from."""
    yield verdict_line(plan, estimate)
    yield _figures(figure_blocks(plan, estimate))
    if estimate.scalability:
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
    yield Text(f"Basis: {basis_text(estimate)}", style="dim")


def verdict_line(plan: Plan, estimate: Estimate) -> Text:
    """Return what is run, and whether it fits."""
    return Text.assemble((headline(plan, estimate), "bold"), ": ", _verdict(estimate))


def comparison_table(columns: Sequence[tuple[str, Plan, Estimate]]) -> Table:
    """Return plans side by side, one line a figure.

    Args:
        columns: name, plan and estimate of each.
    """
    found = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    found.add_column("", overflow="fold")
    for name, _, _ in columns:
        # A folded figure reads as two.
        found.add_column(Text(name), justify="right", no_wrap=True)
    found.add_row(Text("verdict"), *(_verdict(estimate) for _, _, estimate in columns))
    filled = [_settings(plan) for _, plan, _ in columns]
    for label in dict.fromkeys(label for settings in filled for label in settings):
        found.add_row(Text(label), *(Text(settings.get(label, "")) for settings in filled))
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
            found.add_row(Text(title, style="bold"))
        found.add_row(Text(f"  {key[1]}"), *(Text(figure.get(key, "")) for figure in figures))
    return found


def side_by_side_tables(names: Sequence[str], tables: Iterable[ComparisonTable]) -> Iterator[RenderableType]:
    """Yield the tables of a comparison, one column a plan.

    Args:
        names: what the plans are called.
        tables: what is told of them.
    """
    for each in tables:
        found = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        found.add_column(Text(each.title, style="bold"), overflow="fold")
        for name in names:
            found.add_column(Text(name), justify="right", overflow="fold")
        for row in each.rows:
            found.add_row(*map(Text, row))
        yield found


def _settings(plan: Plan) -> dict[str, str]:
    """Return what a mode chooses, by its label."""
    training, parallel, serving = plan.training, plan.parallelism, plan.inference
    model = {"model": plan.model.name or plan.model.config or ""}
    if plan.task == "infer":
        return {**model, "weights": serving.weights, "batch": str(serving.batch)}
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


def _figures(found: Iterable[FigureBlock]) -> Table:
    figures = Table(box=None, show_header=False, pad_edge=False)
    figures.add_column(no_wrap=True)
    figures.add_column(no_wrap=True, justify="right")
    figures.add_column(style="dim", overflow="fold")
    for block in found:
        figures.add_row(Text(block.title, style="bold"))
        for row in block.rows:
            spread = f"({row.spread})" if row.spread else ""
            figures.add_row(Text(f"  {row.label}"), Text(row.value), Text(spread))
    return figures


def _verdict(estimate: Estimate) -> Text:
    return Text(verdict_text(estimate), style=_VERDICT_STYLES[estimate.verdict])
