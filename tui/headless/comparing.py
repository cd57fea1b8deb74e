"""``plan --compare``: several plans side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.schema import REPORT_FORMATS
from capacity_tui.tui.headless.output import as_text, format_of

if TYPE_CHECKING:
    from capacity_tui.engine.estimate import Answer
    from capacity_tui.engine.plan import Plan


def comparison(entries: Sequence[tuple[str, Answer]], wanted: str | None, output: Path | None) -> str:
    """Return answers side by side, in the form that is wanted.

    Args:
        entries: what each is called, and the answer.
        wanted: a form of reports; by default what the output's name says, else a table.
        output: where it goes, where that is a file.

    Raises:
        UsageError: there are not two.
    """
    from capacity_tui.engine.present import Named, comparison_tables, side_by_side, write_comparison
    from capacity_tui.tui.headless.tables.comparison import side_by_side_tables

    if len(entries) < 2:
        raise click.UsageError("--compare needs two plans: name two FILEs, give --gpu twice, or pin plans beside one")
    found = side_by_side(Named(name, answer) for name, answer in _told_apart(entries))
    form = wanted or format_of(output) or "table"
    if REPORT_FORMATS[form].writer:
        return write_comparison(form, found)
    return as_text(side_by_side_tables(found.names, comparison_tables(found)), output is not None)


def called(file: str | None, gpu: str | None, one_of_many: bool, has_gpus: bool) -> str:
    """Return what a plan is called beside others.

    Args:
        file: where it comes from; None for the flags.
        gpu: its hardware where a flag says so.
        one_of_many: whether there are other files.
        has_gpus: whether there is other hardware.
    """
    name = "-" if file == "-" else Path(file).stem if file and Path(file).suffix in (".yaml", ".yml", ".json") else file
    parts = (name if one_of_many or not has_gpus else None, gpu if has_gpus or name is None else None)
    return ", ".join(part for part in parts if part) or "the flags"


def beside(
    own: str, plan: Plan, estimated: Callable[[Plan], Answer], one_of_many: bool
) -> Iterator[tuple[str, Answer]]:
    """Yield the plans that a plan's file has beside it, with what they are called.

    Args:
        own: what the plan itself is called.
        plan: the plan.
        estimated: estimates one.
        one_of_many: whether there are other files.
    """
    for name, scenario in plan.scenarios.items():
        yield f"{own}, {name}" if one_of_many else name, estimated(scenario)


def _told_apart(entries: Sequence[tuple[str, Answer]]) -> list[tuple[str, Answer]]:
    """Return the entries, those of one name with numbers behind it."""
    count = Counter(name for name, _ in entries)
    seen: Counter[str] = Counter()
    found = []
    for name, answer in entries:
        seen[name] += 1
        found.append((f"{name} ({seen[name]})" if count[name] > 1 else name, answer))
    return found
