"""``scaling`` and ``bench-configs``: a command measured in series, over growing sizes or a grid of settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import files, growth, present
from capacity_tui.engine import machine as machines
from capacity_tui.engine import plan as plans
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.runs import history as histories
from capacity_tui.engine.runs import sampling
from capacity_tui.engine.solve import modes
from capacity_tui.engine.units import parse_count, parse_quantity
from capacity_tui.tui.cli.options import keep_entries, options, output_options
from capacity_tui.tui.cli.output import Output, interrupted, tell
from capacity_tui.tui.cli.plan_sources import read_plan


def measured_series(
    measuring: growth.Measuring,
    wanted: Sequence[tuple[growth.Setting, int]],
    anew: bool,
    no_history: bool,
    hopeless: Callable[[growth.Setting, Iterable[growth.Measurement]], bool] | None = None,
    entry_of: Callable[[growth.Measurement, histories.RunRecord], histories.RunRecord] | None = None,
) -> growth.Series:
    """Measure a series, and tell each run on stderr.

    Args:
        wanted: settings, each with which run of it.
        anew: whether what was measured before a stop is measured again.
        no_history: whether nothing is kept in the history.
        hopeless: whether a setting need not be tried after what was measured so far.
        entry_of: what is kept of a run, of its profile by default.

    Raises:
        CapacityError: the command cannot be started, or no run of it ended well.
    """
    kept = growth.KeptMeasurements(measuring)
    if anew:
        kept.forget()

    def report(measurement: growth.Measurement, entry: histories.RunRecord | None) -> None:
        tell(present.measured_line(measurement, entry is None))
        if entry is not None:
            keep_entries([entry if entry_of is None else entry_of(measurement, entry)], no_history)

    with interrupted() as stopped:
        series = growth.measure_series(measuring, wanted, report, kept, hopeless, stopped)
    if not series.complete:
        tell(f"stopped after {len(series.measured)} of {series.wanted} runs; the same command resumes here")
    if not any(not measurement.problem for measurement in series.measured):
        last = series.measured[-1].problem if series.measured else "stopped before the first had ended"
        raise CapacityError("no run ended well", last, "try the command by itself first")
    return series


@click.command("bench-configs", context_settings={"allow_interspersed_args": False})
@options("bench-configs")
@output_options("table", "json", "yaml", "csv")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def bench_configs(
    grid: tuple[str, ...],
    metric: str | None,
    plan_name: str | None,
    repeats: int,
    timeout: str,
    anew: bool,
    no_history: bool,
    output: Output,
    command: tuple[str, ...],
) -> None:
    """Run a short command with every setting of a grid, and rank settings by efficiency: metric over time.

    Write `--` before the command, and {KEY} in it where a value goes. Its output is read, not shown. Ctrl-C stops; the
    same command goes on where it stopped.
    """
    measuring = growth.Measuring(
        command,
        parse_quantity(timeout, "s"),
        metric=None if metric is None else growth.parse_output_metric(metric),
        reads_log=plan_name is not None,
    )
    settings = growth.parse_grid(grid, measuring)
    runs = [(setting, repeat) for repeat in range(repeats) for setting in settings]
    planned = None if plan_name is None else PlannedRuns(plan_name)
    series = measured_series(measuring, runs, anew, no_history, entry_of=planned.entry if planned else None)
    ranked = growth.ranked_settings(series.measured)
    if output.form == "csv":
        output.write(present.ranked_as_csv(ranked))
    else:
        output.report(lambda: present.ranked_as_dict(series, ranked), lambda: present.ranked_parts(series, ranked))


class PlannedRuns:
    """Makes entries of runs that are those of one plan, by its name, with some fields changed."""

    def __init__(self, plan_name: str) -> None:
        self._plan = read_plan(plan_name)
        self._machine, self._catalog = machines.detect(), catalogs.load_catalog()
        self._reported: set[str] = set()

    def entry(self, measurement: growth.Measurement, profile: histories.RunRecord) -> histories.RunRecord:
        """Return a run beside what its plan predicts; its profile where its output tells neither step nor memory."""
        if measurement.problem or (measurement.step_seconds is None and measurement.device_memory_bytes is None):
            return profile
        fields = plans.all_fields()
        settings = [f"{key}={value}" for key, value in measurement.set.items() if key in fields]
        try:
            changed = plan_files.apply_settings(self._plan, settings).plan if settings else self._plan
            plan = modes.with_auto_resolved(changed, self._machine, self._catalog)
            run = sampling.user_run(plan, measurement.step_seconds, measurement.device_memory_bytes)
            return sampling.run_entry(run, self._machine, self._catalog, profile.details)
        except CapacityError as error:
            if (line := error.one_line()) not in self._reported:
                self._reported.add(line)
                tell(f"capacity-tui: kept without its plan: {line}")
            return profile


SIZE = "n"


@click.group()
def scaling() -> None:
    """Measure how a job grows with its size, fit laws of growth, and look ahead to larger sizes."""


@scaling.command()
@click.argument("file", metavar="FILE.csv|-")
@options("scaling fit")
@output_options("table", "json", "yaml")
def fit(file: str, targets: str | None, recommend: str | None, figure: str | None, output: Output) -> None:
    """Fit laws of growth to measured sizes: O(1), O(log n), O(n), O(n log n), O(n^2), O(n^3) and any power.

    FILE has a line for each measurement: its size n, and what was measured in columns such as seconds,
    peak_memory_bytes and disk_bytes. Several lines of one size say how much runs spread. - reads standard input.
    """
    points = growth.read_points(_text_of(file), "<stdin>" if file == "-" else file)
    if figure is not None:
        if figure not in points:
            raise CapacityError(f"no column is called {figure}", hint=f"there are {', '.join(points)}")
        points = {figure: points[figure]}
    sizes = sizes_of(targets)
    fits = growth.fit_all(points, sizes)
    output.write(_written(fits, _jobs(fits, sizes, recommend), output), (file,))


@scaling.command(context_settings={"allow_interspersed_args": False})
@options("scaling run")
@output_options("table", "json", "yaml")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    sizes: str,
    targets: str | None,
    recommend: str | None,
    disk: str,
    repeats: int,
    timeout: str,
    anew: bool,
    no_history: bool,
    output: Output,
    command: tuple[str, ...],
) -> None:
    """Run a command at growing sizes, measure time, peak memory and disk, and fit laws of growth to them.

    Write `--` before the command, and {n} in it where the size goes. Its output is not shown. Ctrl-C stops; the same
    command goes on where it stopped.
    """
    measuring = growth.Measuring(command, parse_quantity(timeout, "s"), disk)
    if measuring.missing((SIZE,)):
        raise CapacityError("nothing in the command takes {n}", hint="write {n} where the size goes")
    runs = growth.wanted_sizes(map(int, sizes_of(sizes)), repeats)
    series = measured_series(measuring, runs, anew, no_history, growth.larger_than_failed)
    ahead = sizes_of(targets)
    fits = growth.fit_all(growth.points_of(series.measured), ahead)
    measured = {"command": list(command), **present.measured_as_dict(series)}
    jobs = _jobs(fits, ahead, recommend)
    output.write(_written(fits, jobs, output, measured, present.measured_parts(series.measured, SIZE)))


def sizes_of(text: str | None) -> tuple[float, ...]:
    """Return sizes that were given with commas; those that are looked ahead to by default where none were."""
    if text is None:
        return growth.TARGETS
    sizes = sorted({float(parse_count(part)) for part in text.split(",") if part.strip()})
    if not sizes or sizes[0] < 1:
        raise click.UsageError(f"no sizes in {text!r}: give numbers from 1 on, such as 1e8,1e9")
    return tuple(sizes)


def _text_of(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    path = Path(file).expanduser()
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise files.reading_error(error, path) from None


def _jobs(
    fits: Sequence[growth.GrowthFit], sizes: Sequence[float], deadline: str | None
) -> tuple[growth.SizedJob, ...]:
    """Return what jobs of some sizes need to end in time, where that is asked for."""
    return (
        ()
        if deadline is None
        else tuple(growth.machines_for_size(fits, n, parse_quantity(deadline, "s")) for n in sizes)
    )


def _written(
    fits: Sequence[growth.GrowthFit],
    jobs: Sequence[growth.SizedJob],
    output: Output,
    measured: Mapping[str, object] | None = None,
    runs: Iterable[present.Part] = (),
) -> str:
    if output.is_data:
        needed = {"recommended": present.to_builtins(jobs)} if jobs else {}
        return output.data_text({**(measured or {}), **present.growth_as_dict(fits), **needed})
    needs = (part for job in jobs for part in present.sized_job_parts(job))
    return output.parts_text((*runs, *present.growth_parts(fits), *needs))
