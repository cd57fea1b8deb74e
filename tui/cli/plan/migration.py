"""``fleet migrate``, ``run``, ``set`` and ``promises``: whether moving a job is worth it, for one job or for many."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import compat, models
from capacity_tui.engine import plan as plans
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.fleet import migration as migrations
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.plan import line as plan_lines
from capacity_tui.engine.present import fleet as fleet_texts
from capacity_tui.engine.units import parse_quantity
from capacity_tui.tui.cli import plan_sources
from capacity_tui.tui.cli.output import Output, interrupted, output_options, progress, tell_problems
from capacity_tui.tui.cli.plan.search import names_of
from capacity_tui.tui.cli.plan_sources import changed_plan, config_option, machine_for, settings_option, source_of

if TYPE_CHECKING:
    from collections.abc import Iterable


_FORMS = ("table", "json", "markdown", "csv", "yaml", "html")
_TOP = 15

_top_option = click.option(
    "--top", metavar="N", type=click.IntRange(1, 1000), default=_TOP, show_default=True, help="Rows of a table."
)
_to_option = click.option(
    "--to",
    "targets",
    multiple=True,
    metavar="NAMES",
    shell_complete=plan_sources.devices,
    help="Compare with these alone: instances separated by commas, or a provider for all of its own.",
)


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
@click.option(
    "--from",
    "instance",
    metavar="INSTANCE",
    shell_complete=plan_sources.devices,
    help="Where the job runs: an instance or a device; by default where a plan says.",
)
@click.option(
    "--count",
    metavar="N",
    type=click.IntRange(1, 100_000),
    default=1,
    show_default=True,
    help="Instances that are rented for it now.",
)
@click.option(
    "--gpus",
    "devices",
    metavar="N",
    type=click.IntRange(1, 1_000_000),
    help="Devices in use, where those are not all of the instances; instances are paid whole.",
)
@click.option(
    "--task",
    "kind",
    metavar="TASK",
    type=JobKindType(),
    help="train, finetune, infer (people wait) or batch_infer (nobody does).",
)
@click.option(
    "--model",
    metavar="SIZE|NAME|PLAN",
    shell_complete=plan_sources.models,
    help="A size such as small or 13b, or a model, in place of a plan.",
)
@click.option("--precision", metavar="P", help="Of the training, or of the weights that are served.")
@click.option(
    "--hours",
    metavar="H",
    type=click.FloatRange(0, 744, min_open=True),
    default=720,
    show_default=True,
    help="Hours per month that it runs.",
)
@click.option("--spot", is_flag=True, help="Compare spot prices too; never for infer, where people wait.")
@click.option("--region", metavar="REGION", help="Region or area of the prices, as us-east-1 or europe.")
@click.option("--commitment", type=click.Choice(("none", "1y", "3y")), help="How long capacity is committed to.")
@click.option(
    "--goal",
    type=click.Choice(("cost", "performance")),
    default="cost",
    show_default=True,
    help="Goal of moving: lower cost, or higher speed.",
)
@click.option(
    "--mode",
    type=click.Choice(("conservative", "balanced", "extreme")),
    help="The mode that fills open fields; balanced by default, extreme for batch_infer.",
)
@_to_option
@click.option("--data", metavar="SIZE", help="Data to move, such as 2TB.")
@settings_option
@_top_option
@config_option
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
    from dataclasses import replace

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
@_to_option
@_top_option
@config_option
@output_options(*_FORMS)
def run(workloads: tuple[str, ...], targets: tuple[str, ...], top: int, config: Path | None, output: Output) -> None:
    """Find out for workloads of the catalogue whether to move; without any, for those of basic_demos."""
    catalog = catalogs.load_catalog(fleet_files=config)
    _run(workloads or migrations.workloads_of((), catalog), names_of(targets), catalog, top, output)


@click.command("set")
@click.argument("names", nargs=-1, metavar="[SET]...")
@_to_option
@_top_option
@config_option
@output_options(*_FORMS)
def run_set(names: tuple[str, ...], targets: tuple[str, ...], top: int, config: Path | None, output: Output) -> None:
    """Find out for all workloads of sets whether to move; without any, for those of basic_demos."""
    catalog = catalogs.load_catalog(fleet_files=config)
    _run(migrations.workloads_of(names, catalog), names_of(targets), catalog, top, output)


@click.command()
@config_option
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
