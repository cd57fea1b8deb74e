"""Rich tables of several plans side by side for the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import ComparisonTable
from capacity_tui.engine.present import blocks as figure_blocks
from capacity_tui.engine.units import format_count
from capacity_tui.tui.headless.tables.answer import toned


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
    found.add_row(Text("verdict"), *(toned(estimate.verdict, estimate.verdict.words) for _, _, estimate in columns))
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
