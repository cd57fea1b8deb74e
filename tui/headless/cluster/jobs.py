"""``cluster jobs``: the queue and what accounting remembers, predicted beside actual."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless.cluster.reaching import reaching
from capacity_tui.tui.headless.kept import history_option, keep_entries
from capacity_tui.tui.headless.listings import write_data
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, write

if TYPE_CHECKING:
    from capacity_tui.engine.nodes.launchers import Launcher


@click.command()
@click.argument("numbers", nargs=-1, metavar="[JOB]...")
@reaching
@click.option("--all", "everyone", is_flag=True, help="Those of everyone, not only yours.")
@click.option("--since", metavar="TIME", default="now-7days", show_default=True,
              help="How far back accounting is read, as sacct reads times.")  # fmt: skip
@history_option
@format_option("table", "json", "yaml")
@output_option
def jobs(
    nodes: Launcher,
    numbers: tuple[str, ...],
    everyone: bool,
    since: str,
    no_history: bool,
    wanted: str | None,
    output: Path | None,
) -> None:
    """List jobs: state, predicted start, time beside what was predicted, energy where nodes measure it.

    What was submitted from here and has ended is kept in the history, with what was predicted of it.
    """
    from capacity_tui.engine.errors import PlanError
    from capacity_tui.engine.nodes.jobs import jobs_as_dict, jobs_parts, known_jobs
    from capacity_tui.tui.headless.tables.layout import rich_parts

    if nodes.name != "Slurm":
        raise PlanError(f"{nodes.name} has no queue that is read here", hint="Slurm's is, with --slurm")
    for number in numbers:
        if not number.isdigit():
            raise PlanError(f"{number}: no number of a job", hint="jobs have numbers, such as 4711")
    found = known_jobs(numbers, everyone=everyone, since=since)
    for kept, entry in found.newly_ended:
        keep_entries([entry], no_history)
        if not no_history:
            replace(kept, is_reported=True).write()
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        write_data(jobs_as_dict(found), form, output)
    else:
        write(as_text(rich_parts(jobs_parts(found)), output is not None), output)
