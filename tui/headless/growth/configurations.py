"""``bench-configs``: a short command with many settings, ranked by what it gets done in a second."""

from __future__ import annotations

from pathlib import Path

import click

from capacity_tui.tui.headless.growth.measuring import measured_series, measuring_options
from capacity_tui.tui.headless.growth.planned_runs import PlannedRuns
from capacity_tui.tui.headless.kept import history_option
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, write


@click.command("bench-configs", context_settings={"allow_interspersed_args": False})
@click.option("--grid", "grid", metavar="KEY=V1,V2", multiple=True,
              help="Values for {KEY} in the command, or KEY=LO..HI, KEY=LO..HI:STEP. By default depth=3..10, "
                   "chunk=5..25:5 and samples=100,300,1000, as far as the command takes them.")  # fmt: skip
@click.option("--metric", metavar="REGEX|json:KEY",
              help="What a run got done, in its output: an expression whose group is the number, or a key of JSON. "
                   "Without, runs are ranked by time alone.")  # fmt: skip
@click.option("--plan", "plan_name", metavar="PLAN",
              help="The plan that is run, of which keys of the grid change fields: where the output tells step time or "
                   "memory, runs are kept beside their prediction, and calibrate learns from them.")  # fmt: skip
@measuring_options(1, "10min")
@history_option
@format_option("table", "json", "yaml", "csv")
@output_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def bench_configs(
    grid: tuple[str, ...],
    metric: str | None,
    plan_name: str | None,
    repeats: int,
    timeout: str,
    anew: bool,
    no_history: bool,
    wanted: str | None,
    output: Path | None,
    command: tuple[str, ...],
) -> None:
    """Run a short command with every setting of a grid, and rank settings by efficiency: metric over time.

    Write `--` before the command, and {KEY} in it where a value goes. Its output is read, not shown. Ctrl-C stops; the
    same command goes on where it stopped.
    """
    from capacity_tui.engine.growth import Measuring, parse_output_metric, ranked_settings
    from capacity_tui.engine.growth import parse_grid as parse_setting_grid
    from capacity_tui.engine.present import to_json, to_yaml
    from capacity_tui.engine.present.growth import ranked_as_csv, ranked_as_dict, ranked_parts
    from capacity_tui.engine.units import parse_quantity

    measuring = Measuring(
        command,
        parse_quantity(timeout, "s"),
        metric=None if metric is None else parse_output_metric(metric),
        reads_log=plan_name is not None,
    )
    settings = parse_setting_grid(grid, measuring)
    runs = [(setting, repeat) for repeat in range(repeats) for setting in settings]
    planned = None if plan_name is None else PlannedRuns(plan_name)
    series = measured_series(measuring, runs, anew, no_history, entry_of=planned.entry if planned else None)
    ranked = ranked_settings(series.measured)
    form = wanted or format_of(output) or ("csv" if output and output.suffix == ".csv" else None)
    if form in ("json", "yaml"):
        data = ranked_as_dict(series, ranked)
        write(to_json(data) if form == "json" else to_yaml(data), output)
    elif form == "csv":
        write(ranked_as_csv(ranked), output)
    else:
        from capacity_tui.tui.headless.tables.layout import rich_parts

        write(as_text(rich_parts(ranked_parts(series, ranked)), output is not None), output)
