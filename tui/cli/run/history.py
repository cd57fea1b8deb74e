"""``history``: estimates and runs that were kept, predicted and measured; ``accuracy``: how far predictions are off."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import files, present
from capacity_tui.engine import machine as machines
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.present import runs as run_texts
from capacity_tui.engine.runs import accuracy as accuracies
from capacity_tui.engine.runs import history as histories
from capacity_tui.engine.runs import sampling
from capacity_tui.engine.runs.accuracy import COMPARED_KINDS
from capacity_tui.engine.units import parse_quantity
from capacity_tui.tui.cli.options import opened_history, options, output_options, tell_notes
from capacity_tui.tui.cli.output import Output, interrupted, progress, say, tell

if TYPE_CHECKING:
    from rich.console import RenderableType

    Unseen = Mapping[accuracies.Kind, Mapping[accuracies.LeftOut, accuracies.Scores]]

_AGO = re.compile(r"[\d.]+\s*[a-z]+")


@click.group()
def history() -> None:
    """Show, compare, export and remove the estimates and runs that were kept.

    Every estimate of the command plan is kept, and every run that was watched, profiled or handed to calibrate. An ID
    may be cut short, as long as it stays the only one. `history = false` in the settings, CAPACITY_TUI_HISTORY=off or
    --no-history keep nothing.
    """


@history.command("list")
@options("history list")
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
@options("history show")
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
@options("history compare")
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
@options("history export")
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
@options("history forget")
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


_WORST = 5


@click.command()
@options("accuracy", kinds=click.Choice(COMPARED_KINDS))
@output_options("table", "markdown", "json")
def accuracy(kinds: tuple[str, ...], tag: str, unseen: bool, mine: bool, plots: Path | None, output: Output) -> None:
    """Show how far estimates are from measurements."""
    if mine and (unseen or plots):
        raise click.UsageError("--unseen and --plots are of published runs")
    chosen = cast("tuple[accuracies.Kind, ...]", kinds or COMPARED_KINDS)
    reports, verdicts = _of_user_runs() if mine else _of_published(chosen)
    left_out: Unseen = {kind: accuracies.unseen_scores(kind) for kind in chosen} if unseen else {}
    drawn = _plotted(reports, plots, output.path)
    form = output.form or "table"
    if form == "json":
        output.data(run_texts.reports_as_data(reports, left_out, verdicts))
    elif form == "markdown":
        constants = accuracies.fitted_constants() if unseen else ()
        output.write(run_texts.reports_as_markdown(reports, left_out, drawn, constants, verdicts))
    else:
        output.show(_tables(reports, left_out, verdicts, tag, mine))


def _of_published(
    kinds: Sequence[accuracies.Kind],
) -> tuple[Sequence[accuracies.AccuracyReport], accuracies.VerdictReport]:
    predict, done = accuracies.predictor(catalogs.load_catalog()), 0
    total = sum(len(accuracies.scored_measurements(kind)) for kind in kinds)
    with interrupted() as stopped, progress("estimating the published runs") as shown:

        def counted(measurement: accuracies.Measurement) -> accuracies.Prediction:
            nonlocal done
            done += 1
            shown.show(lambda: f"{min(done, total)} of {total} published runs estimated; ctrl-c stops")
            return predict(measurement)

        reports = accuracies.accuracy_of(kinds, counted, stopped)
        verdicts = accuracies.verdicts_of(reports, predict, stopped)
    if stopped():
        tell(f"stopped: these are {done} of {total} published runs")
    return reports, verdicts


def _of_user_runs() -> tuple[Sequence[accuracies.AccuracyReport], None]:
    """Return how far estimates for this machine are from the user's runs, with its constants as they are now."""
    history = opened_history()
    measured = [
        (row, run)
        for number, run in enumerate(sampling.kept_runs(history), 1)
        for row in accuracies.user_measurements(run.plan, run.step_seconds, run.peak_bytes, run.date, number)
    ]
    rows, run_of = [row for row, _ in measured], {row.id: run for row, run in measured}
    tell_notes(history)
    if not rows:
        raise PlanError(
            "no runs of your own are kept", hint="capacity-tui calibrate --plan FILE --step-seconds S keeps one"
        )
    catalog, machine = catalogs.load_catalog(), machines.detect()

    def predict(measurement: accuracies.Measurement) -> accuracies.Prediction:
        return accuracies.predictor(catalog, sampling.with_cores_of(machine, run_of[measurement.id]))(measurement)

    kinds = tuple(dict.fromkeys(row.kind for row in rows))
    return tuple(accuracies.evaluate(predict, kind, [row for row in rows if row.kind == kind]) for kind in kinds), None


def _plotted(
    reports: Sequence[accuracies.AccuracyReport], folder: Path | None, page: Path | None
) -> dict[accuracies.Kind, str]:
    if folder is None:
        return {}

    files.make_folder(folder)
    home = page.parent if page else Path()
    addresses: dict[accuracies.Kind, str] = {}
    for report in reports:
        if report.pairs:
            path = folder / f"accuracy-{report.kind.replace('_', '-')}.svg"
            files.write_atomically(path, run_texts.scatter_svg(report), overwrite=True)
            tell(f"wrote {path}")
            addresses[report.kind] = (path.relative_to(home) if path.is_relative_to(home) else path).as_posix()
    return addresses


def _tables(
    reports: Sequence[accuracies.AccuracyReport],
    unseen: Unseen,
    verdicts: accuracies.VerdictReport | None,
    tag: str,
    mine: bool,
) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    heads = ("", *run_texts.SCORE_CELLS)
    # Runs of one's own have one publisher.
    shown = [column for column, head in enumerate(heads) if not (mine and "publisher" in head)]
    for report in reports:
        yield Text(run_texts.TITLES[report.kind], style="bold")
        if report.overall is None:
            yield Text(f"none of {len(report.refused)} runs can be estimated yet")
            continue
        table = Table(*(heads[column] for column in shown))
        for row in run_texts.score_rows(report, unseen.get(report.kind, {})):
            table.add_row(*(row[column] for column in shown))
        table.add_section()
        for name, scores in report.groups.get(tag, {}).items():
            cells = (name or "n/a", *run_texts.score_cells(scores))
            table.add_row(*(cells[column] for column in shown))
        yield table
        worst = Table(*run_texts.PAIR_HEADINGS, title="furthest off", title_justify="left")
        for pair in report.worst[:_WORST]:
            worst.add_row(*run_texts.pair_cells(pair))
        yield worst
        if report.refused:
            yield Text(f"{len(report.refused)} not estimated, such as: {report.refused[0].reason}")
    if verdicts is not None:
        yield Text("Whether a run fits", style="bold")
        table = Table(*run_texts.VERDICT_HEADINGS)
        for row in run_texts.verdict_rows(verdicts):
            table.add_row(*row)
        yield table
