"""``cluster submit``: a batch script for a plan, where and when it would run, and its submission."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless.cluster.reaching import reaching
from capacity_tui.tui.headless.listings import write_data
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, say, tell, write
from capacity_tui.tui.headless.plan_sources import plan_flags, source_of, sources_of
from capacity_tui.tui.headless.plans import changed_plan, machine_for
from capacity_tui.tui.headless.questions import interrupted

if TYPE_CHECKING:
    from capacity_tui.engine.nodes.jobs import JobWish
    from capacity_tui.engine.nodes.jobs import Launcher as JobLauncher
    from capacity_tui.engine.nodes.jobs import Proposal as JobProposal
    from capacity_tui.engine.nodes.launchers import Launcher
    from capacity_tui.engine.plan.line import PlanFlags

NO_PARTITION, FAILED = 1, 1
_COMPLETED = "COMPLETED"


class Options(TypedDict):
    """What is said of a job beside its plan."""

    partitions: tuple[str, ...]
    account: str
    qos: str
    more: tuple[str, ...]
    name: str
    limit: str | None
    checkpoints: Path | None
    launcher: JobLauncher | None
    no_guard: bool
    prices: Path | None
    force: bool


@click.command()
@click.argument("file", required=False, metavar="[PLAN]")
@click.argument("command", metavar="[-- CMD]", nargs=-1, type=click.UNPROCESSED)
@plan_flags
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", shell_complete=completion.fields,
              help="Change a value of the plan first; may be repeated.")  # fmt: skip
@reaching
@click.option("--partition", "partitions", multiple=True, metavar="NAME",
              help="Look at this partition alone; may be repeated. All by default.")  # fmt: skip
@click.option("--account", metavar="NAME", default="", help="Account that pays.")
@click.option("--qos", metavar="NAME", default="", help="Quality of service.")
@click.option("--option", "more", multiple=True, metavar="TEXT",
              help="A further option of sbatch, as in --option=--constraint=ib; may be repeated.")  # fmt: skip
@click.option("--name", metavar="NAME", default="", help="Name of the job; model and task by default.")
@click.option("--time", "limit", metavar="TIME",
              help="Time limit, such as 12h; from the upper end of the predicted range by default.")  # fmt: skip
@click.option("--checkpoints", metavar="DIR", type=click.Path(path_type=Path),
              help="Where CMD leaves checkpoints, on a disk that all nodes see: a job that was pre-empted, or whose "
                   "time ended, goes on from the newest, {run.checkpoint}.")  # fmt: skip
@click.option("--launcher", type=click.Choice(["torchrun", "queue", "command"]),
              help="What starts the processes: torchrun on each node, the queue, or CMD itself.")  # fmt: skip
@click.option("--no-guard", is_flag=True, help="Put no `guard` around CMD; then nodes need no capacity-tui.")
@click.option("--prices", metavar="FILE", type=click.Path(path_type=Path),
              help="Dollars by partition: a number for a node and hour, or {usd_per_device_hour: 2.5}.")  # fmt: skip
@click.option("--force", is_flag=True, help="Take a plan that does not fit all the same.")
@click.option("--submit", is_flag=True, help="Submit it to the partition where it starts first.")
@click.option("--follow", is_flag=True, help="Submit it and follow it to its end; Ctrl-C leaves it running.")
@format_option("table", "json", "yaml")
@output_option
def submit(
    nodes: Launcher,
    file: str | None,
    command: tuple[str, ...],
    flags: PlanFlags,
    settings: tuple[str, ...],
    submit: bool,
    follow: bool,
    wanted: str | None,
    output: Path | None,
    **options: Unpack[Options],
) -> int:
    """Write a batch script for a plan, say where it would start when and for how much, and submit it if asked.

    Placeholders in CMD are keys of the plan, such as {training.micro_batch}; a `guard` around it answers trouble as the
    plan says. -o FILE writes the script. Exit code 1 where no partition can take the job, or the job that is followed
    fails.
    """
    from capacity_tui.engine.nodes.jobs import propose as propose_job
    from capacity_tui.engine.nodes.jobs import submit as submit_job
    from capacity_tui.engine.solve import answer

    if file is not None and flags.is_given:
        command, file = (file, *command), None
    (name,) = sources_of((file,) if file else (), flags)
    plan = changed_plan(source_of(name, flags).plan(), settings)
    estimated = answer(plan, machine_for(plan))
    proposal = propose_job(estimated, _wish(command, options), nodes)
    if submit or follow:
        proposal = submit_job(proposal, estimated)
    _show(proposal, wanted, output)
    if follow:
        return _followed(proposal.job)
    return 0 if proposal.script else NO_PARTITION


def _wish(command: tuple[str, ...], options: Options) -> JobWish:
    """Return what options say of a job."""
    from capacity_tui.engine.nodes.jobs import JobWish, SlurmOptions
    from capacity_tui.engine.units import parse_quantity

    limit = options["limit"]
    return JobWish(
        command=command,
        name=options["name"],
        limit_seconds=None if limit is None else parse_quantity(limit, "s"),
        checkpoints=options["checkpoints"],
        launcher=options["launcher"],
        is_guarded=not options["no_guard"],
        may_fail=options["force"],
        partitions=options["partitions"],
        options=SlurmOptions(options["account"], options["qos"], options["more"]),
        prices=options["prices"],
    )


def _show(proposal: JobProposal, wanted: str | None, output: Path | None) -> None:
    """Write the script to a file and the rest to the terminal, or all of it as data."""
    from capacity_tui.engine.nodes.jobs import proposal_as_dict, proposal_parts
    from capacity_tui.tui.headless.tables.layout import rich_parts

    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        write_data(proposal_as_dict(proposal), form, output)
        return
    if output is not None and proposal.script:
        write(proposal.script, output)
    shows_script = output is None and not proposal.job
    write(as_text(rich_parts(proposal_parts(proposal, with_script=shows_script))), None)


def _followed(job: str) -> int:
    """Say what becomes of a job whenever that changes; return whether it failed."""
    from capacity_tui.engine.nodes.jobs import followed as follow_job
    from capacity_tui.engine.nodes.jobs import job_line

    told: tuple[object, ...] = ()
    state = ""
    with interrupted() as stopped:
        for found in follow_job(job, stopped):
            now = (found.state, found.turns, found.on_nodes, found.start)
            if now != told:
                say(job_line(found))
            told, state = now, found.state
        if stopped():
            tell(f"job {job} goes on: `scancel {job}` ends it, `cluster jobs` tells of it")
            return 0
    return 0 if state == _COMPLETED else FAILED
