"""``cluster submit``, ``jobs`` and ``stop``: jobs for plans, and the queue with predicted beside actual figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from capacity_tui.tui.cli.history_store import history_option, keep_entries
from capacity_tui.tui.cli.node_options import reaching
from capacity_tui.tui.cli.output import Output, interrupted, output_options, say, tell
from capacity_tui.tui.cli.plan_sources import (
    changed_plan,
    machine_for,
    plan_flags,
    settings_option,
    source_of,
    sources_of,
)

if TYPE_CHECKING:
    from capacity_tui.engine.nodes import Launcher
    from capacity_tui.engine.nodes.jobs import JobLauncher, JobProposal, JobQueue, JobSettings
    from capacity_tui.engine.plan.line import PlanFlags


@click.command()
@click.argument("names", nargs=-1, metavar="[JOB]...")
@click.option("--all", "everyone", is_flag=True, help="Jobs of all users, not only yours.")
@click.option(
    "--since",
    metavar="TIME",
    default="now-7days",
    show_default=True,
    help="How far back accounting is read, in sacct's time format.",
)
@click.option("--follow", is_flag=True, help="Follow one JOB to its end; Ctrl-C leaves it running.")
@history_option
@output_options("table", "json", "yaml")
@reaching
def jobs(
    nodes: Launcher,
    names: tuple[str, ...],
    everyone: bool,
    since: str,
    follow: bool,
    no_history: bool,
    output: Output,
) -> int:
    """List jobs: state, predicted start, time beside what was predicted, energy where nodes measure it.

    What was submitted from here and has ended is kept in the history, with what was predicted of it.
    """
    from capacity_tui.engine.nodes.jobs import jobs_as_dict, jobs_parts, list_jobs, queue_of

    queue = queue_of(nodes)
    if follow:
        if len(names) != 1:
            raise click.UsageError("--follow takes one JOB")
        queue.check(names[0])
        return _followed(names[0], queue)
    listed = list_jobs(queue, names, everyone=everyone, since=since)
    for kept, entry in listed.newly_ended:
        keep_entries([entry], no_history)
        if not no_history:
            replace(kept, is_reported=True).write()
    output.report(lambda: jobs_as_dict(listed), lambda: jobs_parts(listed))
    return 0


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="JOB...")
@reaching
def stop(nodes: Launcher, names: tuple[str, ...]) -> None:
    """End jobs that were submitted from here; their processes are told first, and can save.

    Jobs of others, and others of the same name, are left alone.
    """
    from capacity_tui.engine.nodes.jobs import queue_of, stop_job

    queue = queue_of(nodes)
    for name in names:
        stop_job(name, queue)
        tell(f"job {name} is told to end")


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
    image: str
    claim: str


@click.command()
@click.argument("file", required=False, metavar="[PLAN]")
@click.argument("command", metavar="[-- CMD]", nargs=-1, type=click.UNPROCESSED)
@plan_flags
@settings_option
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="NAME",
    help="Look at this partition, or local queue of Kueue, alone; may be repeated. All by default.",
)
@click.option("--account", metavar="NAME", default="", help="Account that pays.")
@click.option("--qos", metavar="NAME", default="", help="Quality of service.")
@click.option(
    "--option",
    "more",
    multiple=True,
    metavar="TEXT",
    help="A further option of sbatch, as in --option=--constraint=ib; may be repeated.",
)
@click.option("--name", metavar="NAME", default="", help="Name of the job; model and task by default.")
@click.option(
    "--time",
    "limit",
    metavar="TIME",
    help="Time limit, such as 12h; from the upper end of the predicted range by default.",
)
@click.option(
    "--checkpoints",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where CMD leaves checkpoints, on a disk that all nodes see: a job that was pre-empted, or whose "
    "time ended, goes on from the newest, {run.checkpoint}.",
)
@click.option(
    "--launcher",
    type=click.Choice(["torchrun", "queue", "command"]),
    help="What starts the processes: torchrun on each node, the queue, or CMD itself.",
)
@click.option("--image", metavar="NAME", default="", help="Image of containers on Kubernetes.")
@click.option("--claim", metavar="NAME", default="", help="Volume claim of Kubernetes with the folder --checkpoints.")
@click.option("--no-guard", is_flag=True, help="Put no `guard` around CMD; then nodes need no capacity-tui.")
@click.option(
    "--prices",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Dollars by partition: a number for a node and hour, or {usd_per_device_hour: 2.5}.",
)
@click.option("--force", is_flag=True, help="Take a plan that does not fit all the same.")
@click.option("--submit", is_flag=True, help="Submit it to the partition where it starts first.")
@click.option("--follow", is_flag=True, help="Submit it and follow it to its end; Ctrl-C leaves it running.")
@output_options("table", "json", "yaml")
@reaching
def submit(
    nodes: Launcher,
    file: str | None,
    command: tuple[str, ...],
    flags: PlanFlags,
    settings: tuple[str, ...],
    submit: bool,
    follow: bool,
    output: Output,
    **options: Unpack[Options],
) -> int:
    """Write a batch script or manifest for a plan, say where it would start when and for how much; submit it if asked.

    Placeholders in CMD are keys of the plan, such as {training.micro_batch}; a `guard` around it answers trouble as the
    plan says. -o FILE writes the script. Exit code 1 where no partition can take the job, or the job that is followed
    fails.
    """
    from capacity_tui.engine.nodes.jobs import propose_job, queue_of, submit_job
    from capacity_tui.engine.solve import answer

    if file is not None and flags.is_given:
        command, file = (file, *command), None
    (name,) = sources_of((file,) if file else (), flags)
    plan = changed_plan(source_of(name, flags).plan(), settings)
    estimated = answer(plan, machine_for(plan))
    proposal = propose_job(estimated, _settings(command, options), nodes)
    if not (submit or follow):
        _show(proposal, output)
        return 0 if proposal.script else NO_PARTITION
    queue = queue_of(nodes)
    proposal = submit_job(proposal, estimated, queue)
    _show(proposal, output)
    if follow:
        return _followed(proposal.job, queue)
    return 0


def _settings(command: tuple[str, ...], options: Options) -> JobSettings:
    """Return what options say of a job."""
    from capacity_tui.engine.nodes.jobs import JobSettings, SlurmOptions
    from capacity_tui.engine.units import parse_quantity

    limit = options["limit"]
    return JobSettings(
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
        image=options["image"],
        claim=options["claim"],
    )


def _show(proposal: JobProposal, output: Output) -> None:
    """Write the script to a file and the rest to the terminal, or all of it as data."""
    from capacity_tui.engine.nodes.jobs import proposal_as_dict, proposal_parts

    form = output.form
    if form in ("json", "yaml"):
        output.data(proposal_as_dict(proposal))
        return
    if output.is_file and proposal.script:
        output.write(proposal.script)
    shows_script = not output.is_file and not proposal.job
    Output().parts(proposal_parts(proposal, with_script=shows_script))


def _followed(job: str, queue: JobQueue) -> int:
    """Say what becomes of a job whenever that changes, and what it prints; return whether it failed."""
    from capacity_tui.engine.nodes.jobs import ENDED, follow_job, job_line

    shown: tuple[object, ...] = ()
    state = ""
    with interrupted() as stopped:
        for job_state in follow_job(queue, job, stopped, write=say):
            now = (job_state.state, job_state.turns, job_state.on_nodes, job_state.start)
            if now != shown:
                say(job_line(job_state))
            shown, state = now, job_state.state
        if stopped():
            tell(f"job {job} goes on: `cluster stop {job}` ends it, `cluster jobs` tells of it")
            return 0
    if not state or state not in ENDED:
        tell(f"job {job} is not there any more")
    return 0 if state == _COMPLETED else FAILED
