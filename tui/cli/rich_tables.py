"""Reports of the engine as Rich tables and styled lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from capacity_tui.engine.estimate import Answer, Estimate
from capacity_tui.engine.explain import roofline
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import (
    TORNADO_HEADS,
    ComparisonTable,
    ExplanationText,
    FormulaInput,
    FormulaStep,
    Part,
    TextPart,
    assumed_text,
    headline,
    measurement_advice,
    note_text,
    reason_rows,
    search_lines,
    search_table,
    tornado_headline,
    tornado_tables,
)
from capacity_tui.engine.present import Block as FigureBlock
from capacity_tui.engine.present import basis as basis_text
from capacity_tui.engine.present import blocks as figure_blocks
from capacity_tui.engine.present import chosen as chosen_settings
from capacity_tui.engine.present import notes as answer_notes
from capacity_tui.engine.present.pictures import limit_text as roofline_limit_text
from capacity_tui.engine.solve import Sensitivity
from capacity_tui.engine.solve.search import Answer as SearchAnswer
from capacity_tui.engine.units import format_count
from capacity_tui.engine.verdict import Verdict

_STYLES = {"plain": "", "strong": "bold", "quiet": "dim"}

# What the table leaves between two columns.
_GAP = 2

_LONGEST_WORD = 16
"""Characters of a word that are kept together if that is possible."""

_INDENT = 4


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> Listing:
    """Return a plain table; the columns whose numbers are in ``right`` are flush right and stay whole.

    Other columns but the first fold their words; where that is not enough, columns on the right go below their row.
    """
    return Listing(heads, list(rows), frozenset(right), frozenset({0, 1}), folds=True)


@dataclass(frozen=True)
class Listing:
    """Rows of cells: columns that have no room stand by their names on a line below each row.

    Lists that are looked through keep one line a row: theirs are left out, and it says so.

    Attributes:
        heads: names of the columns.
        rows: their cells.
        right: numbers of the columns that are flush right.
        kept: numbers of the columns that always stay in their place; of the others those on the right give way first.
        folds: whether words fold within their columns before any gives way.
        is_list: whether a row keeps to one line.
        spare: numbers of the columns that say nothing of their own, such as bars: they are left out before all others.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int]
    kept: frozenset[int]
    folds: bool = False
    spare: frozenset[int] = frozenset()
    is_list: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the columns that have room, and the others below each row or by their names."""
        shown = self._shown(options.max_width)
        below = [column for column in range(len(self.heads)) if column not in shown and column not in self.spare]
        if not below or self.is_list:
            yield self._grid(shown, self.rows)
        else:
            yield from self._stacked(shown, below, options.max_width)
        if below and self.is_list:
            yield Text(f"no room for: {', '.join(self.heads[column] for column in below)}", style="dim")

    def _stacked(self, shown: Sequence[int], below: Sequence[int], width: int) -> RenderResult:
        """Yield the rows, each with the cells of other columns below it."""
        widths = self._widths(shown, width)
        yield self._grid(shown, (), widths)
        for row in self.rows:
            yield self._grid(shown, (row,), widths, has_heads=False)
            others = (f"{self.heads[column]} {row[column]}".strip() for column in below if row[column].strip())
            if text := ", ".join(others):
                yield Padding(Text(text, style="dim"), (0, 0, 0, _INDENT))

    def _shown(self, width: int) -> list[int]:
        columns = list(range(len(self.heads)))
        sizes = self._sizes(columns)
        leaving = [*sorted(self.spare, reverse=True)]
        leaving += [column for column in reversed(columns) if column not in self.kept and column not in self.spare]
        for column in leaving:
            if sum(sizes[shown] + _GAP for shown in columns) <= width:
                break
            columns.remove(column)
        return columns

    def _sizes(self, columns: Sequence[int]) -> list[int]:
        """Return the cells that each column needs at least."""
        return [max(map(self._least if self._may_fold(column) else len, self._texts(column))) for column in columns]

    def _widths(self, shown: Sequence[int], width: int) -> dict[int, int]:
        """Return how wide columns are: what is left of the width goes to those whose words fold, from the left."""
        widths = dict(zip(shown, self._sizes(shown), strict=True))
        left = width - sum(size + _GAP for size in widths.values())
        for column in shown:
            more = max(min(max(map(len, self._texts(column))) - widths[column], left), 0)
            widths[column] += more
            left -= more
        return widths

    def _texts(self, column: int) -> Iterable[str]:
        return (self.heads[column], *(row[column] for row in self.rows))

    def _may_fold(self, column: int) -> bool:
        return self.folds and column not in self.right and (column > 0 or len(self.heads) == 1)

    @staticmethod
    def _least(text: str) -> int:
        """Return the width of the longest word, which folds too where it is very long."""
        return min(max(map(len, text.split()), default=0), _LONGEST_WORD)

    def _grid(
        self,
        shown: Sequence[int],
        rows: Iterable[Sequence[str]],
        widths: Mapping[int, int] | None = None,
        *,
        has_heads: bool = True,
    ) -> Table:
        grid = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), show_header=has_heads)
        for column in shown:
            grid.add_column(
                Text(self.heads[column]),
                justify="right" if column in self.right else "left",
                no_wrap=column in self.right or (column == 0 and len(self.heads) > 1),
                overflow="ellipsis" if column in self.right else "fold",
                width=None if widths is None else widths[column],
            )
        for row in rows:
            grid.add_row(*(Text(row[column]) for column in shown))
        return grid


def pairs(entries: Iterable[tuple[str, str]]) -> Table:
    """Return names and values, one pair a line."""
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in entries:
        grid.add_row(Text(name, style="bold"), Text(value))
    return grid


def rich_parts(parts: Iterable[Part]) -> Iterator[RenderableType]:
    """Yield the parts of a report as tables and styled lines."""
    for part in parts:
        if isinstance(part, TextPart):
            yield Text(part.text, style=_STYLES[part.tone])
        elif part.kept:
            yield Listing(part.heads, part.rows, frozenset(part.right), frozenset(part.kept))
        else:
            yield table(part.heads, part.rows, part.right)


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
    listing = search_table(answer)
    if listing.rows:
        yield Listing(listing.heads, listing.rows, frozenset(listing.right), frozenset(range(listing.kept)))
    else:
        yield Text("nothing fits and keeps every limit", style="bold red")
    for line in search_lines(answer):
        yield Text(line)
    for title, reasons in (("cannot run", answer.rejected), ("not inside", answer.missed)):
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
    yield Text(tornado_headline(result, plan_name), style="bold")
    for table in tornado_tables(result, top, ascii_only):
        rows = tuple((row.label, row.bar, *row.cells) for row in table.rows)
        right = frozenset(range(2, 2 + len(TORNADO_HEADS)))
        yield Listing((table.title, "", *TORNADO_HEADS), rows, right, kept=frozenset({0}), spare=frozenset({1}))
        if table.others:
            yield Text(f"and {table.others} more that move it less", style="dim")
    yield Text(measurement_advice(result, plan_name))
