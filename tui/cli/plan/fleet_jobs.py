"""The commands of ``fleet`` that answer for a job: machines for it, regions, a schedule, and whether to move it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import compat, fleet, models, nodes
from capacity_tui.engine import plan as plans
from capacity_tui.engine.errors import CapacityError, LauncherError, PlanError
from capacity_tui.engine.fleet import migration as migrations
from capacity_tui.engine.fleet import serving
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.plan import line as plan_lines
from capacity_tui.engine.present import fleet as fleet_texts
from capacity_tui.engine.units import parse_quantity
from capacity_tui.tui.cli.options import options, output_options, reaching_later
from capacity_tui.tui.cli.output import Output, interrupted, progress, tell, tell_faults, tell_problems
from capacity_tui.tui.cli.plan.search import device_counts, names_of
from capacity_tui.tui.cli.plan_sources import GivenPlan, changed_plan, machine_for, plan_options, read_plan, source_of

NO_ANSWER = 1
RENTED = ("instances",)  # What is chosen among where nobody names hardware


@click.command()
@plan_options(tried=RENTED)
@options("fleet recommend")
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
@options("fleet regions")
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
@options("fleet schedule")
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
@options("fleet serve")
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


_FORMS = ("table", "json", "markdown", "csv", "yaml", "html")


class JobKindType(click.ParamType["migrations.JobKind"]):
    """A kind of job, by this program's name or as workload files of the fleet guide have it."""

    name = "task"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> migrations.JobKind:
        try:
            return migrations.job_kind_called(str(value))
        except CapacityError as error:
            self.fail(error.one_line(), param, ctx)


@click.command()
@click.argument("file", required=False, metavar="[PLAN]", type=click.Path())
@options("fleet migrate", kind=JobKindType())
@output_options(*_FORMS)
def migrate(
    file: str | None,
    model: str | None,
    targets: tuple[str, ...],
    data: str | None,
    settings: tuple[str, ...],
    top: int,
    config: Path | None,
    output: Output,
    **words: Any,
) -> None:
    """Compare a job with what it would be on every other instance: stay or move?

    Every instance gets as many machines as do the same: a service the fewest that answer as much, a training as many
    devices. Savings are for the same work. Ctrl-C stops and shows what was found so far.
    """
    catalog = catalogs.load_catalog(fleet_files=config)
    tell_problems(catalog.instances.problems)
    job = migrations.JobWords(
        model=_model_or_plan(file, model, catalog),
        instances=names_of(targets),
        data_bytes=parse_quantity(data, "B") if data else 0.0,
        **words,
    )
    question = migrations.question_of_job(job, catalog)
    question = replace(question, plan=changed_plan(question.plan, settings))
    with interrupted() as stopped, progress("comparing instances") as shown:
        so_far = shown.telling(partial(_state, ""))
        migration = migrations.migrate(question, catalog, machine_for(question.plan), so_far, stopped)
    output.table_or(
        lambda: fleet_texts.migration_parts(migration, top), lambda form: fleet_texts.write_migration(form, migration)
    )


@click.command()
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@options("fleet run")
@output_options(*_FORMS)
def run(workloads: tuple[str, ...], targets: tuple[str, ...], top: int, config: Path | None, output: Output) -> None:
    """Find out for workloads of the catalogue whether to move; without any, for those of basic_demos."""
    catalog = catalogs.load_catalog(fleet_files=config)
    _run(workloads or migrations.workloads_of((), catalog), names_of(targets), catalog, top, output)


@click.command("set")
@click.argument("names", nargs=-1, metavar="[SET]...")
@options("fleet set")
@output_options(*_FORMS)
def run_set(names: tuple[str, ...], targets: tuple[str, ...], top: int, config: Path | None, output: Output) -> None:
    """Find out for all workloads of sets whether to move; without any, for those of basic_demos."""
    catalog = catalogs.load_catalog(fleet_files=config)
    _run(migrations.workloads_of(names, catalog), names_of(targets), catalog, top, output)


@click.command()
@options("fleet promises")
@output_options("table", "json", "markdown", "yaml", "html")
def promises(config: Path | None, output: Output) -> None:
    """Hold what is often promised of moving (90 % saved, 2-3 times as fast, spot 60-70 % off) against true prices."""
    catalog = catalogs.load_catalog(fleet_files=config)
    tell_problems(catalog.instances.problems)
    with interrupted() as stopped, progress("comparing instances") as shown:
        checked = list(compat.check_promises(None, catalog, stopped, shown.telling(_state)))
    output.table_or(lambda: compat.promises_parts(checked), lambda form: compat.write_promises(form, checked))


def _run(names: Iterable[str], instances: tuple[str, ...], catalog: catalogs.Catalog, top: int, output: Output) -> None:
    for problems in (catalog.workloads.problems, catalog.workload_sets.problems, catalog.instances.problems):
        tell_problems(problems)
    with interrupted() as stopped, progress("comparing instances") as shown:
        runs = list(migrations.run_workloads(names, catalog, shown.telling(_state), stopped, instances))
    output.table_or(lambda: fleet_texts.runs_parts(runs, top), lambda form: fleet_texts.write_runs(form, runs))


def _model_or_plan(file: str | None, name: str | None, catalog: catalogs.Catalog) -> str | plans.Plan:
    """Return the plan of a file or a line; of ``--model`` a model's name as it is, and a plan for what is none."""
    if (file is None) == (name is None):
        raise click.UsageError("Say what runs: PLAN, or --model with a size or a model")
    if file is not None:
        return source_of(file, plan_lines.PlanFlags()).plan()
    assert name is not None  # noqa: S101 - one of both is given

    try:
        models.family_of(name, catalog)
    except CapacityError as no_model:
        try:
            return plan_files.read_source(name, sys.stdin.buffer).plan()
        except CapacityError as no_plan:
            is_path = name == "-" or "/" in name or Path(name).suffix in (".yaml", ".yml", ".json")
            raise (no_plan if is_path else no_model) from no_plan
    return name


def _state(name: str, migration: migrations.Migration) -> str:
    """Return how far a comparison is, and what follows from it so far."""
    named = f"{name}: " if name else ""
    so_far = f"; so far {migration.verdict}: {migration.reasons[0]}" if migration.reasons else ""
    return f"{named}{migration.share_done:.0%} of the instances, ctrl-c stops{so_far}"
