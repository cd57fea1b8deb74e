"""``fleet recommend``, ``regions``, ``schedule`` and ``serve``: machines for jobs and for loads of requests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import fleet, nodes
from capacity_tui.engine import plan as plans
from capacity_tui.engine.errors import LauncherError, PlanError
from capacity_tui.engine.fleet import serving
from capacity_tui.engine.present import fleet as fleet_texts
from capacity_tui.engine.units import parse_quantity
from capacity_tui.tui.cli import plan_sources
from capacity_tui.tui.cli.options import reaching_later
from capacity_tui.tui.cli.output import CommandT, Output, interrupted, output_options, progress, tell, tell_faults
from capacity_tui.tui.cli.plan.search import device_counts, names_of
from capacity_tui.tui.cli.plan_sources import GivenPlan, config_option, machine_for, plan_options, read_plan

NO_ANSWER = 1
RENTED = ("instances",)  # What is chosen among where nobody names hardware


def _seed_option(words: str) -> Callable[[CommandT], CommandT]:
    return click.option("--seed", metavar="N", type=click.IntRange(0), default=1, show_default=True, help=words)


@click.command()
@plan_options(tried=RENTED)
@click.option("--deadline", metavar="TIME", required=True, help="When the job has to be done, such as 24h.")
@click.option("--budget", metavar="USD", help="Largest cost, such as 500.")
@click.option(
    "--hardware",
    multiple=True,
    metavar="NAMES",
    shell_complete=plan_sources.devices,
    help="Instances or devices to choose among: ids separated by commas, a vendor or cloud for all of theirs. "
    "By default all instances.",
)
@click.option("--devices", metavar="LO..HI", help="Numbers of devices to try, such as 8..64; by default up to 64.")
@config_option
@output_options("table", "json", "yaml")
def recommend(
    given: GivenPlan,
    deadline: str,
    budget: str | None,
    hardware: tuple[str, ...],
    devices: str | None,
    config: Path | None,
    output: Output,
) -> int:
    """Recommend machines for a job that has to end in time: the cheapest, the fastest, and the one that balances.

    Each with its memory, cores, storage, GPUs, database and cost. Time and cost hold at the far end of their ranges.
    Ctrl-C stops and shows the best so far. Exit code 1 where nothing ends in time.
    """
    plan = given.plan
    question = fleet.DeadlineQuestion(
        plan,
        parse_quantity(deadline, "s"),
        None if budget is None else parse_quantity(budget, "USD"),
        names_of(hardware),
        device_counts(devices),
    )
    catalog = catalogs.load_catalog(fleet_files=config)
    with interrupted() as stopped, progress("looking for machines") as shown:
        so_far = shown.telling(fleet_texts.recommended_so_far)
        machines = fleet.recommend(question, catalog, machine_for(plan), so_far, stopped)
    output.report(
        lambda: fleet_texts.recommended_as_dict(machines), lambda: fleet_texts.recommended_parts(question, machines)
    )
    return NO_ANSWER if machines.balanced is None else 0


@click.command()
@plan_options()
@click.option("--data", metavar="SIZE", default="0", help="Data that has to be where the job runs, such as 2TB.")
@click.option("--home", metavar="REGION", help="Where the data is; by default the plan's region.")
@config_option
@output_options("table", "json", "yaml")
def regions(given: GivenPlan, data: str, home: str | None, config: Path | None, output: Output) -> None:
    """Compare regions for one job: the price of its machines there, and of its data's way there.

    The plan names an instance, or a device whose instances are compared, of which each region has the cheapest.
    Prices are as the plan pays: on demand, with its commitment, or on spot capacity. A plan whose length is open is
    compared by the month.
    """
    plan = given.plan
    with progress("comparing regions"):
        comparison = fleet.by_region(
            plan, parse_quantity(data, "B"), home, catalogs.load_catalog(fleet_files=config), machine_for(plan)
        )
    output.report(lambda: fleet_texts.regions_as_dict(comparison), lambda: fleet_texts.regions_parts(comparison))


MISSED = 1


@click.command()
@click.argument("file", metavar="FILE|FOLDER", type=click.Path())
@click.option("--check", is_flag=True, help="Exit with 1 if a deadline is missed.")
@click.option("--cluster", metavar="NAME", help="Cluster that was kept, for a FOLDER; the only one by default.")
@_seed_option("Of the search: the same seed gives the same schedule.")
@output_options("table", "json", "yaml")
@reaching_later
def schedule(
    choose: Callable[[], nodes.Launcher], file: str, check: bool, cluster: str | None, seed: int, output: Output
) -> int:
    """Schedule jobs on machines: order, start and end, machines, what is late and by how much, and the cost.

    FILE is YAML, - is standard input. Under fleet: entries of instance, count, free_from, usd_per_hour, name; under
    jobs: entries of plan or time, machines, only_on, earliest, deadline, priority, name. A plan is a file, an example,
    a saved plan, a line in quotes, or a plan itself. Times are such as 90s, 24h or 2d; plain numbers are hours.

    A FOLDER of plans is a queue on what a cluster has free: each file a job, with the words of jobs: and fleet: in its
    queue.yaml. The cluster is the one that --slurm or --kubernetes reach, or that was kept. Exit code 1 with --check
    also where a job of it runs nowhere. A file that is no plan is left out and named: exit code 2.
    """
    is_folder = Path(file).is_dir()
    folder = Path(file) if is_folder else Path(file).parent

    def read(name: str) -> plans.Plan:
        sibling = folder / name
        return read_plan(str(sibling) if file != "-" and sibling.is_file() else name)

    try:
        with progress("scheduling the jobs"):
            if is_folder:
                entries = fleet.folder_entries(folder, lambda: _machines(choose, cluster))
            else:
                entries = fleet.read_entries(file, sys.stdin.buffer)
            result = fleet.schedule(entries, read, None, None, seed)
    except PlanError as error:
        tell_faults((error, *error.further))
        return error.exit_code
    for fault in result.unread:
        tell(f"capacity-tui: left out: {fault.one_line()}")
    output.report(lambda: fleet_texts.schedule_as_dict(result), lambda: fleet_texts.schedule_parts(result))
    missed = MISSED if check and (result.missed or result.left_out) else 0
    return max((missed, *(fault.exit_code for fault in result.unread)))


def _machines(choose: Callable[[], nodes.Launcher], cluster: str | None) -> list[catalogs.Plain]:
    """Return what a cluster has free, and say where that is from."""
    launcher = None
    if cluster is None:
        try:
            launcher = choose()
        except LauncherError:
            if not nodes.kept_cluster_names():
                raise
    machines, source = nodes.machines_of(launcher, cluster, catalogs.load_catalog())
    tell(f"machines: {source}")
    return machines


@click.command()
@plan_options(tried=RENTED)
@click.option("--rate", metavar="REQ/S", help="Requests a second; of a load that varies, at its peak.")
@click.option("--ttft", metavar="TIME", help="Limit of the time to first token, such as 2s; the plan's own by default.")
@click.option("--tpot", metavar="TIME", help="Limit of the time per output token; the plan's own by default.")
@click.option("--percentile", metavar="PERCENT", type=float, help="Requests that must keep each limit; 95 by default.")
@click.option(
    "--hardware",
    multiple=True,
    metavar="NAMES",
    shell_complete=plan_sources.devices,
    help="Instances or devices to choose among: ids separated by commas, a vendor or cloud for all of theirs, "
    "instances for all that are rented. By default the plan's own, and instances where it names none.",
)
@click.option(
    "--spread",
    metavar="SHARE",
    type=float,
    help="Standard deviation of prompts and answers over their mean; the plan's own by default.",
)
@click.option(
    "--load",
    metavar="FILE|SHAPE",
    help="How the load varies over a day: a shape (even, office, consumer, global), or a file of rates "
    "in even parts of it. Adds the fleet over a day, fixed and autoscaled.",
)
@click.option("--startup", metavar="TIME", help="Time until a new replica answers; assumed by default.")
@click.option("--scale-down", metavar="TIME", help="Time for which fewer must be enough before one is released.")
@click.option("--reserve", metavar="SHARE", type=float, help="Replicas beyond what the load needs, such as 0.1.")
@_seed_option("Of the random requests: the same seed gives the same answer.")
@config_option
@output_options("table", "json", "yaml")
def serve(
    given: GivenPlan,
    hardware: tuple[str, ...],
    load: str | None,
    config: Path | None,
    output: Output,
    **limits: str | float | None,
) -> int:
    """Find the cheapest fleet that serves a load: replicas, batch, instance and its price.

    Requests are simulated as they come at random and are worked in batches that change with every step. Limits hold
    for a percentile of them; step times are the estimate's, and its range gives a range of replicas. Exit code 1
    where nothing keeps the limits.
    """
    plan = given.plan
    is_open = plan.hardware.name == "detected" and not plan.hardware.spec
    among = names_of(hardware) or (RENTED if is_open else ())
    question = _question(plan, among, load, limits)
    catalog = catalogs.load_catalog(fleet_files=config)
    with interrupted() as stopped, progress("looking for fleets") as shown:
        answer = serving.serve(question, catalog, machine_for(plan), stopped, shown.telling(str))
    output.report(lambda: fleet_texts.serving_as_dict(answer), lambda: fleet_texts.serving_parts(answer))
    return NO_ANSWER if answer.best is None else 0


def _question(
    plan: plans.Plan, hardware: tuple[str, ...], load: str | None, limits: dict[str, str | float | None]
) -> serving.ServingQuestion:
    """Return what options ask of a plan, which says itself what they leave out."""

    def seconds(option: str, otherwise: float | None = None) -> float | None:
        text = limits[option]
        return otherwise if text is None else parse_quantity(str(text), "s")

    inference = plan.inference
    curve = None if load is None else serving.load_curve(load)
    rate = inference.arrival_rate if limits["rate"] is None else parse_quantity(str(limits["rate"]), "req/s")
    if rate is None and curve is not None and curve.peak > 1:
        rate = curve.peak
    if rate is None:
        raise PlanError("no rate of requests", hint="say --rate 20, or set inference.request_rate in the plan")
    percentile = limits["percentile"]
    share, reserve, seed = limits["spread"], limits["reserve"], limits["seed"]
    return serving.ServingQuestion(
        plan,
        rate,
        seconds("ttft", inference.ttft_seconds),
        seconds("tpot", inference.tpot_seconds),
        float(inference.percentile if percentile is None else percentile),
        hardware,
        None if share is None else float(share),
        curve,
        seconds("startup"),
        seconds("scale_down"),
        None if reserve is None else float(reserve),
        int(seed or 0),
    )
