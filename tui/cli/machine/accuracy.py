"""``accuracy``: predicted against measured, over the published runs or the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import files
from capacity_tui.engine import machine as machines
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.present import runs as run_texts
from capacity_tui.engine.runs import accuracy as accuracies
from capacity_tui.engine.runs import sampling
from capacity_tui.engine.runs.accuracy import COMPARED_KINDS
from capacity_tui.tui.cli.output import Output, interrupted, output_options, progress, tell

if TYPE_CHECKING:
    from rich.console import RenderableType

    Unseen = Mapping[accuracies.Kind, Mapping[accuracies.LeftOut, accuracies.Scores]]

TAGS = ("source", "hardware", "size", "length", "parallelism", "framework", "precision", "routing")
_WORST = 5


@click.command()
@click.option("--kind", "kinds", multiple=True, type=click.Choice(COMPARED_KINDS), help="Only this; may be repeated.")
@click.option("--by", "tag", type=click.Choice(TAGS), default="source", show_default=True, help="Rows of the tables.")
@click.option("--unseen", is_flag=True, help="Also what constants and ranges made without each publisher predict.")
@click.option(
    "--mine", is_flag=True, help="Of runs of your own that were given to calibrate, instead of published ones."
)
@click.option("--plots", type=click.Path(path_type=Path, file_okay=False), help="Write SVG plots to this folder.")
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
    from capacity_tui.tui.cli.options import opened_history, tell_notes

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
