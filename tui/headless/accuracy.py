"""``accuracy``: predicted against measured, over the published runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from capacity_tui.engine.api import COMPARED_KINDS
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, tell, write

if TYPE_CHECKING:
    from rich.console import RenderableType

    from capacity_tui.engine.api import AccuracyReport, AccuracyScores, LeftOut, MeasurementKind

TAGS = ("source", "hardware", "size", "length", "parallelism", "framework", "precision", "routing")
_WORST = 5


@click.command()
@click.option("--kind", "kinds", multiple=True, type=click.Choice(COMPARED_KINDS), help="Only this; may be repeated.")
@click.option("--by", "tag", type=click.Choice(TAGS), default="source", show_default=True, help="Rows of the tables.")
@click.option("--unseen", is_flag=True, help="Also what constants and ranges made without each publisher predict.")
@click.option("--plots", type=click.Path(path_type=Path, file_okay=False), help="Write SVG plots to this folder.")
@format_option("table", "markdown", "json")
@output_option
def accuracy(
    kinds: tuple[str, ...],
    tag: str,
    unseen: bool,
    plots: Path | None,
    wanted: str | None,
    output: Path | None,
) -> None:
    """Show how far estimates are from published measurements."""
    from capacity_tui.engine.api import (
        accuracy_as_data,
        accuracy_as_markdown,
        accuracy_of,
        fitted_constants,
        load_catalog,
        unseen_scores,
    )

    chosen = cast("tuple[MeasurementKind, ...]", kinds or COMPARED_KINDS)
    reports = accuracy_of(chosen, load_catalog())
    left_out = {kind: unseen_scores(kind) for kind in chosen} if unseen else {}
    drawn = _plotted(reports, plots, output)
    form = wanted or format_of(output) or "table"
    if form == "json":
        from capacity_tui.engine.api import to_json

        write(to_json(accuracy_as_data(reports, left_out)), output)
    elif form == "markdown":
        write(accuracy_as_markdown(reports, left_out, drawn, fitted_constants() if unseen else ()), output)
    else:
        write(as_text(_tables(reports, left_out, tag), output is not None), output)


def _plotted(reports: Sequence[AccuracyReport], folder: Path | None, page: Path | None) -> dict[MeasurementKind, str]:
    """Write a plot a kind, and return their addresses from the page."""
    if folder is None:
        return {}
    from capacity_tui.engine.api import accuracy_plot, make_folder, write_atomically

    make_folder(folder)
    home = page.parent if page else Path()
    addresses: dict[MeasurementKind, str] = {}
    for report in reports:
        if report.pairs:
            path = folder / f"accuracy-{report.kind.replace('_', '-')}.svg"
            write_atomically(path, accuracy_plot(report), overwrite=True)
            tell(f"wrote {path}")
            addresses[report.kind] = (path.relative_to(home) if path.is_relative_to(home) else path).as_posix()
    return addresses


def _tables(
    reports: Sequence[AccuracyReport], unseen: Mapping[MeasurementKind, Mapping[LeftOut, AccuracyScores]], tag: str
) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    from capacity_tui.engine.api import (
        ACCURACY_PAIR_HEADINGS,
        ACCURACY_SCORE_HEADINGS,
        ACCURACY_TITLES,
        accuracy_pair_cells,
        accuracy_score_cells,
        accuracy_score_rows,
    )

    for report in reports:
        yield Text(ACCURACY_TITLES[report.kind], style="bold")
        if report.overall is None:
            yield Text(f"none of {len(report.refused)} published runs can be estimated yet")
            continue
        table = Table("", *ACCURACY_SCORE_HEADINGS)
        for row in accuracy_score_rows(report, unseen.get(report.kind, {})):
            table.add_row(*row)
        table.add_section()
        for name, scores in report.groups.get(tag, {}).items():
            table.add_row(name or "n/a", *accuracy_score_cells(scores))
        yield table
        worst = Table(*ACCURACY_PAIR_HEADINGS, title="furthest off", title_justify="left")
        for pair in report.worst[:_WORST]:
            worst.add_row(*accuracy_pair_cells(pair))
        yield worst
        if report.refused:
            yield Text(f"{len(report.refused)} not estimated, such as: {report.refused[0].reason}")
