"""``scaling``: how time, memory and disk grow with the size of a job, as measured."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless.growth.measuring import measured_series, measuring_options
from capacity_tui.tui.headless.kept import history_option
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, write

if TYPE_CHECKING:
    from capacity_tui.engine.growth import GrowthFit, SizedJob
    from capacity_tui.engine.present import Part

SIZE = "n"


@click.group()
def scaling() -> None:
    """Measure how a job grows with its size, fit laws of growth, and look ahead to larger sizes."""


@scaling.command()
@click.argument("file", metavar="FILE.csv|-")
@click.option("--to", "targets", metavar="N,N", help="Sizes to look ahead to, such as 1e8,1e9 (the default) or 100M.")
@click.option("--recommend", metavar="TIME",
              help="Say what ends a job of each of these sizes in so long, such as 24h: cores, memory, storage, "
                   "machines and their price.")  # fmt: skip
@click.option("--figure", metavar="NAME", help="The column to fit; by default all, time first.")
@format_option("table", "json", "yaml")
@output_option
def fit(
    file: str,
    targets: str | None,
    recommend: str | None,
    figure: str | None,
    wanted: str | None,
    output: Path | None,
) -> None:
    """Fit laws of growth to measured sizes: O(1), O(log n), O(n), O(n log n), O(n^2), O(n^3) and any power.

    FILE has a line for each measurement: its size n, and what was measured in columns such as seconds,
    peak_memory_bytes and disk_bytes. Several lines of one size say how much runs spread. - reads standard input.
    """
    from capacity_tui.engine.errors import CapacityError
    from capacity_tui.engine.growth import fit_all as fit_all_growth
    from capacity_tui.engine.growth import read_points

    found = read_points(_text_of(file), "<stdin>" if file == "-" else file)
    if figure is not None:
        if figure not in found:
            raise CapacityError(f"no column is called {figure}", hint=f"there are {', '.join(found)}")
        found = {figure: found[figure]}
    sizes = sizes_of(targets)
    fits = fit_all_growth(found, sizes)
    write(_written(fits, _jobs(fits, sizes, recommend), wanted, output), output, (file,))


@scaling.command(context_settings={"allow_interspersed_args": False})
@click.option("--sizes", metavar="N,N", default="100,1000,10000,50000", show_default=True, help="Sizes to measure.")
@click.option("--to", "targets", metavar="N,N", help="Sizes to look ahead to, such as 1e8,1e9 (the default) or 100M.")
@click.option("--recommend", metavar="TIME",
              help="Say what ends a job of each of these sizes in so long, such as 24h: cores, memory, storage, "
                   "machines and their price.")  # fmt: skip
@click.option("--disk", metavar="PATH", default="",
              help="The file or folder whose size counts as disk space, {n} in it as in the command; by default what "
                   "the command writes.")  # fmt: skip
@measuring_options(3, "1h")
@history_option
@format_option("table", "json", "yaml")
@output_option
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
    wanted: str | None,
    output: Path | None,
    command: tuple[str, ...],
) -> None:
    """Run a command at growing sizes, measure time, peak memory and disk, and fit laws of growth to them.

    Write `--` before the command, and {n} in it where the size goes. Its output is not shown. Ctrl-C stops; the same
    command goes on where it stopped.
    """
    from capacity_tui.engine.errors import CapacityError
    from capacity_tui.engine.growth import Measuring, larger_than_failed, points_of, wanted_sizes
    from capacity_tui.engine.growth import fit_all as fit_all_growth
    from capacity_tui.engine.present.growth import measured_as_dict, measured_parts
    from capacity_tui.engine.units import parse_quantity

    measuring = Measuring(command, parse_quantity(timeout, "s"), disk)
    if measuring.missing((SIZE,)):
        raise CapacityError("nothing in the command takes {n}", hint="write {n} where the size goes")
    runs = wanted_sizes(map(int, sizes_of(sizes)), repeats)
    series = measured_series(measuring, runs, anew, no_history, larger_than_failed)
    ahead = sizes_of(targets)
    fits = fit_all_growth(points_of(series.measured), ahead)
    told = {"command": list(command), **measured_as_dict(series)}
    jobs = _jobs(fits, ahead, recommend)
    write(_written(fits, jobs, wanted, output, told, measured_parts(series.measured, SIZE)), output)


def sizes_of(text: str | None) -> tuple[float, ...]:
    """Return sizes that were given with commas; those that are looked ahead to by default where none were.

    Raises:
        CapacityError: one of them is no size.
    """
    from capacity_tui.engine.growth import TARGETS as GROWTH_TARGETS
    from capacity_tui.engine.units import parse_count

    if text is None:
        return GROWTH_TARGETS
    sizes = sorted({float(parse_count(part)) for part in text.split(",") if part.strip()})
    if not sizes or sizes[0] < 1:
        raise click.UsageError(f"no sizes in {text!r}: give numbers from 1 on, such as 1e8,1e9")
    return tuple(sizes)


def _text_of(file: str) -> str:
    from capacity_tui.engine.files import reading_error

    if file == "-":
        return sys.stdin.read()
    path = Path(file).expanduser()
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise reading_error(error, path) from None


def _jobs(fits: Sequence[GrowthFit], sizes: Sequence[float], deadline: str | None) -> tuple[SizedJob, ...]:
    """Return what jobs of some sizes need to end in time, where that is asked for."""
    from capacity_tui.engine.growth import machines_for_size
    from capacity_tui.engine.units import parse_quantity

    return () if deadline is None else tuple(machines_for_size(fits, n, parse_quantity(deadline, "s")) for n in sizes)


def _written(
    fits: Sequence[GrowthFit],
    jobs: Sequence[SizedJob],
    wanted: str | None,
    output: Path | None,
    measured: Mapping[str, object] | None = None,
    runs: Iterable[Part] = (),
) -> str:
    from capacity_tui.engine.present import to_json, to_yaml
    from capacity_tui.engine.present.growth import growth_as_dict, growth_parts, sized_job_parts, sized_jobs_as_data

    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        needed = {"recommended": sized_jobs_as_data(jobs)} if jobs else {}
        data = {**(measured or {}), **growth_as_dict(fits), **needed}
        return to_json(data) if form == "json" else to_yaml(data)
    from capacity_tui.tui.headless.tables.layout import rich_parts

    needs = (part for job in jobs for part in sized_job_parts(job))
    return as_text(rich_parts((*runs, *growth_parts(fits), *needs)), output is not None)
