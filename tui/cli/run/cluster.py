"""``cluster``: what its nodes are and how they are reached; jobs for plans, and the queue, predicted beside actual."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import nodes, present, solve
from capacity_tui.engine.keys import Key
from capacity_tui.engine.nodes import Launcher
from capacity_tui.engine.nodes import jobs as node_jobs
from capacity_tui.engine.plan import line as plan_lines
from capacity_tui.engine.units import format_bandwidth, format_seconds, parse_quantity
from capacity_tui.tui.cli.options import keep_entries, options, output_options, reaching, reaching_later
from capacity_tui.tui.cli.output import Output, interrupted, say, tell
from capacity_tui.tui.cli.plan_sources import changed_plan, machine_for, plan_flags, source_of, sources_of


@click.command()
@options("cluster detect")
@output_options("table", "json", "yaml")
@reaching
def detect(launcher: Launcher, name: str | None, seconds: float, dry_run: bool, output: Output) -> int:
    """Say what every node is, which are odd and which do not answer; keep it as hardware that plans can name."""
    inventory = _detected(launcher, name or nodes.CLUSTER_NAME, seconds)
    hardware = nodes.cluster_hardware(inventory, catalogs.load_catalog()) if dry_run else nodes.keep_cluster(inventory)
    _write(inventory, output)
    if hardware.row and not dry_run:
        tell(f"kept: plans can name it, as in `capacity-tui plan --model llama-3.1-8b --gpu {inventory.name}`")
    return 0


@click.command()
@click.argument("name", required=False)
@options("cluster show")
@output_options("table", "json", "yaml")
@reaching_later
def show(choose: Callable[[], Launcher], name: str | None, check: bool, seconds: float, output: Output) -> int:
    """Show the cluster that was kept, and how long ago."""
    kept = nodes.kept_cluster(name)
    now = _detected(choose(), kept.name, seconds) if check else None
    return _write(kept, output, now)


def _detected(launcher: Launcher, name: str, seconds: float) -> nodes.Inventory:
    """Return what the nodes are now; on a terminal it says how many have answered."""

    def progress(answered: int, asked: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{answered} of {asked} nodes{chr(10) if answered == asked else ''}", nl=False, err=True)

    return nodes.detect_cluster(launcher, name, seconds, progress)


def _write(inventory: nodes.Inventory, output: Output, now: nodes.Inventory | None = None) -> int:
    """Write an inventory, and what has changed since; return whether anything has."""
    hardware = nodes.cluster_hardware(inventory, catalogs.load_catalog())
    changes = None if now is None else nodes.cluster_changes(inventory, now)

    def parts() -> Iterator[present.Part]:
        yield from nodes.inventory_parts(inventory, hardware, ascii_only=not output.takes_unicode)
        if changes is not None:
            yield from nodes.change_parts(changes)

    output.report(lambda: nodes.inventory_as_dict(inventory, hardware, changes), parts)
    return 1 if changes else 0


@click.command()
@options("cluster sample")
@output_options("table", "json", to_file=False)
@reaching
def sample(launcher: Launcher, name: str, python: str | None, cluster: str | None, quick: bool, output: Output) -> int:
    """Time all-reduce, all-gather, reduce-scatter, all-to-all and send/recv over 2, 4 and 8 nodes.

    Between GPUs through NCCL, a process for each; between processors through Gloo, a process for each node. What they
    reach is kept as a link of the user's own catalogue: a plan that names it is estimated with what was measured.
    Kernels say what devices reach: a plan that names the cluster rests on that.
    """
    kinds = () if cluster is None else _kinds(launcher, cluster or None, python or sys.executable, quick)
    network = nodes.sample_network(
        launcher, python or sys.executable, nodes.QUICK_NETWORK_SIZES if quick else nodes.NETWORK_SIZES, _tell
    )
    path = nodes.keep_link(name, network.link) if network.link else None
    if output.is_data:
        data = {**asdict(network), "name": name if path else None, "kinds": [asdict(kind) for kind in kinds]}
        output.data(data)
    elif network.link is not None:
        reached, hop = format_bandwidth(network.link.bandwidth), format_seconds(network.link.hop_seconds)
        say(f"{name}: {reached} between nodes, {hop} a step, off by {network.link.error:.0%} in the median")
        say(f"name it in a plan: {Key.HARDWARE_INTERCONNECT}={name}")
    else:
        say("too few collectives could be timed to say anything of the network")
    if path is not None:
        tell(f"wrote {path}")
    return 0 if network.link else 1


def _kinds(launcher: Launcher, cluster: str | None, python: str, quick: bool) -> tuple[nodes.SampledKind, ...]:
    """Time kernels on one node of each kind of a kept cluster, keep what they say, and tell it."""
    inventory = nodes.kept_cluster(cluster)
    sampled = []
    for kind in nodes.NodeKernels(launcher, inventory, python, catalogs.load_catalog(), quick).sample_kinds():
        path = nodes.keep_measured_kind(inventory.name, kind)
        what = kind.failure or f"{kind.samples} timings of kernels"
        tell(f"{kind.device}, {kind.nodes} nodes{f', {kind.node}' if kind.node else ''}: {what}")
        if path is not None:
            tell(f"wrote {path}")
        sampled.append(kind)
    return tuple(sampled)


def _tell(group: nodes.NodeGroup) -> None:
    what = group.failure or f"{len(group.samples)} timings, {group.group.size} {group.group.backend} ranks"
    tell(f"{len(group.nodes)} nodes: {what}")


@click.command()
@click.argument("names", nargs=-1, metavar="[JOB]...")
@options("cluster jobs")
@output_options("table", "json", "yaml")
@reaching
def jobs(
    nodes: Launcher, names: tuple[str, ...], everyone: bool, since: str, follow: bool, no_history: bool, output: Output
) -> int:
    """List jobs: state, predicted start, time beside what was predicted, energy where nodes measure it.

    What was submitted from here and has ended is kept in the history, with what was predicted of it.
    """
    queue = node_jobs.queue_of(nodes)
    if follow:
        if len(names) != 1:
            raise click.UsageError("--follow takes one JOB")
        queue.check(names[0])
        return _followed(names[0], queue)
    listed = node_jobs.list_jobs(queue, names, everyone=everyone, since=since)
    for kept, entry in listed.newly_ended:
        keep_entries([entry], no_history)
        if not no_history:
            replace(kept, is_reported=True).write()
    output.report(lambda: node_jobs.jobs_as_dict(listed), lambda: node_jobs.jobs_parts(listed))
    return 0


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="JOB...")
@reaching
def stop(nodes: Launcher, names: tuple[str, ...]) -> None:
    """End jobs that were submitted from here; their processes are told first, and can save.

    Jobs of others, and others of the same name, are left alone.
    """
    queue = node_jobs.queue_of(nodes)
    for name in names:
        node_jobs.stop_job(name, queue)
        tell(f"job {name} is told to end")


NO_PARTITION, FAILED = 1, 1
_COMPLETED = "COMPLETED"


@click.command()
@click.argument("file", required=False, metavar="[PLAN]")
@click.argument("command", metavar="[-- CMD]", nargs=-1, type=click.UNPROCESSED)
@plan_flags
@options("cluster submit")
@output_options("table", "json", "yaml")
@reaching
def submit(
    nodes: Launcher,
    /,
    file: str | None,
    command: tuple[str, ...],
    flags: plan_lines.PlanFlags,
    settings: tuple[str, ...],
    submit: bool,
    follow: bool,
    output: Output,
    **options: Any,
) -> int:
    """Write a batch script or manifest for a plan, say where it would start when and for how much; submit it if asked.

    Placeholders in CMD are keys of the plan, such as {training.micro_batch}; a `guard` around it answers trouble as the
    plan says. -o FILE writes the script. Exit code 1 where no partition can take the job, or the job that is followed
    fails.
    """
    if file is not None and flags.is_given:
        command, file = (file, *command), None
    (name,) = sources_of((file,) if file else (), flags)
    plan = changed_plan(source_of(name, flags).plan(), settings)
    estimated = solve.answer(plan, machine_for(plan))
    proposal = node_jobs.propose_job(estimated, _settings(command, **options), nodes)
    if not (submit or follow):
        _show(proposal, output)
        return 0 if proposal.script else NO_PARTITION
    queue = node_jobs.queue_of(nodes)
    proposal = node_jobs.submit_job(proposal, estimated, queue)
    _show(proposal, output)
    if follow:
        return _followed(proposal.job, queue)
    return 0


def _settings(
    command: tuple[str, ...],
    limit: str | None,
    no_guard: bool,
    force: bool,
    account: str,
    qos: str,
    more: tuple[str, ...],
    **others: Any,
) -> node_jobs.JobSettings:
    """Return what is said of a job beside its plan."""
    return node_jobs.JobSettings(
        command=command,
        limit_seconds=None if limit is None else parse_quantity(limit, "s"),
        is_guarded=not no_guard,
        may_fail=force,
        options=node_jobs.SlurmOptions(account, qos, more),
        **others,
    )


def _show(proposal: node_jobs.JobProposal, output: Output) -> None:
    """Write the script to a file and the rest to the terminal, or all of it as data."""
    if output.is_data:
        output.data(node_jobs.proposal_as_dict(proposal))
        return
    if output.is_file and proposal.script:
        output.write(proposal.script)
    shows_script = not output.is_file and not proposal.job
    Output().parts(node_jobs.proposal_parts(proposal, with_script=shows_script))


def _followed(job: str, queue: node_jobs.JobQueue) -> int:
    """Say what becomes of a job whenever that changes, and what it prints; return whether it failed."""
    shown: tuple[object, ...] = ()
    state = ""
    with interrupted() as stopped:
        for job_state in node_jobs.follow_job(queue, job, stopped, write=say):
            now = (job_state.state, job_state.turns, job_state.on_nodes, job_state.start)
            if now != shown:
                say(node_jobs.job_line(job_state))
            shown, state = now, job_state.state
        if stopped():
            tell(f"job {job} goes on: `cluster stop {job}` ends it, `cluster jobs` tells of it")
            return 0
    if not state or state not in node_jobs.ENDED:
        tell(f"job {job} is not there any more")
    return 0 if state == _COMPLETED else FAILED
