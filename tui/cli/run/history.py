"""``history``: estimates and runs that were kept, with what was predicted and what was measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from capacity_tui.engine import present
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.present import runs as run_texts
from capacity_tui.engine.runs import accuracy as accuracies
from capacity_tui.engine.runs import history as histories
from capacity_tui.engine.units import parse_quantity
from capacity_tui.tui.cli.options import opened_history, store_option, tell_notes
from capacity_tui.tui.cli.output import Output, output_options, say, tell, with_options

_LISTED = 20
_AGO = re.compile(r"[\d.]+\s*[a-z]+")


_filters = with_options(
    click.option(
        "--kind",
        "kinds",
        multiple=True,
        type=click.Choice(("estimate", "run", "profile")),
        help="Only this kind; may be repeated.",
    ),
    click.option("--model", metavar="TEXT", default="", help="Whose model has this in its name."),
    click.option("--hardware", metavar="TEXT", default="", help="Whose hardware has this in its name."),
    click.option("--since", metavar="TIME", default="", help="Started on this day or later, or in the last 7d."),
    click.option("--measured", is_flag=True, help="Only runs with measurements."),
)  # which entries are meant


@click.group()
def history() -> None:
    """Show, compare, export and remove the estimates and runs that were kept.

    Every estimate of the command plan is kept, and every run that was watched, profiled or handed to calibrate. An ID
    may be cut short, as long as it stays the only one. `history = false` in the settings, CAPACITY_TUI_HISTORY=off or
    --no-history keep nothing.
    """


@history.command("list")
@_filters
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    default=_LISTED,
    show_default=True,
    help="At most this many, the newest; 0 for all.",
)
@store_option
@output_options("table", "json", "jsonl", "csv")
def list_runs(limit: int, store: str | None, output: Output, **filters: Any) -> None:
    """List entries, the newest first."""
    runs = _matching(store, _wanted(limit, **filters))
    form = output.form or "table"
    if form != "table":
        output.write(_written(runs, form))
        return
    if not runs:
        tell("nothing is found" if any(filters.values()) else "nothing is kept yet")
        return
    output.parts([run_texts.listed_runs(runs)])


@history.command()
@click.argument("name", metavar="ID")
@click.option("--plan", "as_plan", is_flag=True, help="Only its plan, as a file that can be estimated again.")
@store_option
@output_options("table", "json", "jsonl", "csv")
def show(name: str, as_plan: bool, store: str | None, output: Output) -> None:
    """Show an entry: where it ran, what was predicted, what was measured."""
    run = _one(opened_history(store), name)
    if as_plan:
        output.write(_plan_text(run))
        return
    form = output.form or "table"
    if form != "table":
        output.write(_written((run,), form))
        return
    from capacity_tui.tui.cli.rich_tables import pairs, rich_parts

    figures = present.table_part(run_texts.FIGURE_HEADS, run_texts.figure_rows(run), right=(1, 3, 4))
    output.show((pairs(run_texts.heading(run)), *rich_parts([figures])))


@history.command()
@click.argument("first", metavar="ID")
@click.argument("second", metavar="ID")
@store_option
@output_options("table", "json", "csv")
def compare(first: str, second: str, store: str | None, output: Output) -> None:
    """Compare two entries: settings that differ, and figures side by side."""
    kept = opened_history(store)
    a, b = _one(kept, first), _one(kept, second)
    form = output.form or "table"
    if form == "json":
        output.data(run_texts.compared_as_data(a, b))
        return
    if form == "csv":
        output.write(_written((a, b), form))
        return
    heads = ("", *(f"{run.id} {run.started[:10]}" for run in (a, b)), run_texts.COMPARED_HEADS[-1])
    rows = [*run_texts.setting_rows(a, b), *run_texts.compared_run_rows(a, b)]
    output.table(heads, rows, right=(1, 2, 3))


@history.command()
@_filters
@click.option(
    "--share",
    is_flag=True,
    help="What was measured, as CSV without names, paths or serial numbers, for calibrate --from of others.",
)
@store_option
@output_options("json", "jsonl", "csv")
def export(measured: bool, share: bool, store: str | None, output: Output, **filters: Any) -> None:
    """Write entries for other programs, the newest first."""
    if share and (output.wanted or "csv") != "csv":
        raise click.UsageError("--share writes CSV: leave out --format")
    runs = _matching(store, _wanted(0, measured=measured or share, **filters))
    if share:
        text, left_out = accuracies.shared_text(runs)
        for reason in left_out:
            tell(f"capacity-tui: left out: {reason}")
        output.write(text)
        return
    output.write(_written(runs, output.form or "json"))


@history.command()
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@store_option
def forget(names: tuple[str, ...], store: str | None) -> None:
    """Remove entries for good."""
    kept = opened_history(store)
    runs = [_one(kept, name) for name in names]
    removed = kept.forget(*(run.id for run in runs))
    tell_notes(kept)
    say(f"removed {removed} of {len(runs)}" if removed != len(runs) else f"removed {' '.join(run.id for run in runs)}")


def _wanted(
    limit: int, kinds: Sequence[str], model: str, hardware: str, since: str, measured: bool
) -> histories.WantedRuns:
    chosen = tuple(kind for kind in histories.KINDS if kind in kinds)
    return histories.WantedRuns(chosen, model, hardware, _time(since), measured=measured, most=limit)


def _time(text: str) -> str:
    """Return the time that a text means, as entries are dated."""
    if not text:
        return ""
    if _AGO.fullmatch(text.lower()):
        return (datetime.now(UTC) - timedelta(seconds=parse_quantity(text, "s"))).isoformat(timespec="seconds")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--since {text!r} is no time: write 2026-11-22, 7d or 12h") from None
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _matching(store: str | None, wanted: histories.WantedRuns) -> tuple[histories.RunRecord, ...]:
    kept = opened_history(store)
    runs = kept.find(wanted)
    tell_notes(kept)
    return runs


def _one(kept: histories.History, name: str) -> histories.RunRecord:
    run = kept.one(name)
    tell_notes(kept)
    return run


def _written(runs: Sequence[histories.RunRecord], form: str) -> str:
    if form == "csv":
        return run_texts.as_csv(runs)
    return run_texts.as_json_lines(runs) if form == "jsonl" else present.to_json(run_texts.runs_as_data(runs))


def _plan_text(run: histories.RunRecord) -> str:
    if run.plan is None:
        raise PlanError("it ran without a plan", run.id)
    return plan_files.dump_plan(plan_files.plan_from_data(run.plan), f"From the history: {run.id}, {run.started}.")
