"""Rich tables of answers and catalogues for the command line."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from capacity_tui.engine.choose.roofline import Roofline
from capacity_tui.engine.estimate.explain import Explanation
from capacity_tui.engine.estimate.result import Estimate, Interval
from capacity_tui.engine.export.report import SCALING_HEADS, scaling_rows, scaling_text
from capacity_tui.engine.export.roofline import Glyphs, limit_text, roofline_lines
from capacity_tui.engine.export.summary import Block, basis, blocks, headline, note_text, notes, verdict
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.units import (
    format_bytes,
    format_flops,
    format_money,
    format_number,
    format_percent,
    format_power,
    format_rate,
    format_seconds,
)
from capacity_tui.engine.workload.plan import Plan

_FORMATS: Mapping[str, Callable[[float | None], str]] = {
    "B": format_bytes,
    "s": format_seconds,
    "FLOP": format_flops,
    "tok/s": format_rate,
    "USD": format_money,
    "W": format_power,
}
_VERDICT_STYLES = {True: "bold green", False: "bold red", None: "yellow"}


def answer_tables(plan: Plan, estimate: Estimate) -> Iterator[RenderableType]:
    """Yield what an answer says, from the verdict to where the numbers come from."""
    yield Text.assemble((headline(plan, estimate), "bold"), ": ", _verdict(estimate))
    yield _figures(blocks(plan, estimate))
    if estimate.scalability:
        heads = [head.lower() for head in SCALING_HEADS]
        yield table(heads, scaling_rows(estimate.scalability), right=range(len(heads) - 1))
        yield from (Text(line) for line in scaling_text(estimate.scalability))
    for title, entries in notes(plan, estimate):
        yield Text(f"{title}:", style="bold")
        for note in entries:
            yield Text(f"  - {note_text(note)}")
    yield Text(f"Basis: {basis(estimate)}", style="dim")


def comparison_table(columns: Sequence[tuple[str, Plan, Estimate]]) -> Table:
    """Return plans side by side, one line a figure.

    Args:
        columns: name, plan and estimate of each.
    """
    found = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    found.add_column("")
    for name, _, _ in columns:
        found.add_column(Text(name), justify="right")
    found.add_row(Text("verdict"), *(_verdict(estimate) for _, _, estimate in columns))
    figures = [
        {(block.title, row.label): row.value for block in blocks(plan, estimate) for row in block.rows if row.value}
        for _, plan, estimate in columns
    ]
    title = ""
    for key in dict.fromkeys(key for figure in figures for key in figure):
        if key[0] != title:
            title = key[0]
            found.add_row(Text(title, style="bold"))
        found.add_row(Text(f"  {key[1]}"), *(Text(figure.get(key, "")) for figure in figures))
    return found


def bottleneck_lines(roofline: Roofline, estimate: Estimate, glyphs: Glyphs) -> Iterator[RenderableType]:
    """Yield a roofline and what limits the run, in words."""
    yield from (Text(line) for line in roofline_lines(roofline, glyphs=glyphs))
    yield Text(limit_text(roofline, estimate), style="bold")


def explanation_tables(explanation: Explanation) -> Iterator[RenderableType]:
    """Yield why a figure is what it is: its parts, formulas with their numbers, sources, strongest lever."""
    unit = explanation.unit
    yield Text.assemble((explanation.title, "bold"), ": ", figure_text(explanation.value, unit))
    if explanation.terms:
        terms = [(term.name, figure_text(term.value, unit), term.detail) for term in explanation.terms]
        yield table(("part", "value", "how"), terms, right=(1,))
    for derivation in explanation.derivations:
        yield Text(f"{derivation.name} = {derivation.formula}", style="bold")
        yield pairs((f"  {entry.name}", number_text(entry.value)) for entry in derivation.inputs)
        yield Text(f"  = {figure_text(derivation.result, derivation.unit)} ({derivation.source})")
    if explanation.lever:
        lever = explanation.lever
        change = format_percent(lever.change, 1)
        yield Text(f"Strongest lever: {lever.label} {lever.before} -> {lever.after} ({lever.field}): {change}")
    if explanation.assumed:
        yield Text(f"Assumed: {', '.join(explanation.assumed)}", style="dim")
    yield Text(f"Calibration: {explanation.calibration}", style="dim")


def figure_text(value: Number | Interval | None, unit: str) -> str:
    """Return a figure with its unit, and its range where it has one."""
    if isinstance(value, Interval):
        low, high = figure_text(value.low, unit), figure_text(value.high, unit)
        return f"{figure_text(value.value, unit)} ({low} to {high})"
    show = _FORMATS.get(unit)
    number = None if value is None else float(value)
    return show(number) if show else f"{number_text(number)} {unit}".strip()


def number_text(value: object) -> str:
    """Return what was put into a formula, numbers to four digits."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format_number(value) if float(value).is_integer() and abs(value) < 1e7 else f"{value:.4g}"
    return reprlib.repr(value)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> Table:
    """Return a plain table; the columns whose numbers are in ``right`` are flush right."""
    found = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    flush = set(right)
    for number, head in enumerate(heads):
        found.add_column(
            Text(head),
            justify="right" if number in flush else "left",
            no_wrap=number == 0 or number in flush,
            overflow="fold",
        )
    for row in rows:
        found.add_row(*(Text(cell) for cell in row))
    return found


def pairs(entries: Iterable[tuple[str, str]]) -> Table:
    """Return names and values, one pair a line."""
    found = Table(box=None, show_header=False, pad_edge=False)
    found.add_column(no_wrap=True)
    found.add_column(overflow="fold")
    for name, value in entries:
        found.add_row(Text(name, style="bold"), Text(value))
    return found


def _figures(found: Iterable[Block]) -> Table:
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
    return Text(verdict(estimate), style=_VERDICT_STYLES[estimate.fits])
