"""``guard``: runs a command by a plan, and starts it again with a changed plan where that may help."""

from __future__ import annotations

from pathlib import Path

import click

from capacity_tui.tui.headless.kept import history_option


@click.command()
@click.argument("plan_name", metavar="PLAN", required=False)
@click.argument("command", metavar="-- CMD", nargs=-1, type=click.UNPROCESSED)
@click.option("--checkpoints", metavar="DIR", type=click.Path(path_type=Path),
              help="Where the command leaves checkpoints; the newest complete one is {run.checkpoint}.")  # fmt: skip
@click.option("--rewrite", "files", metavar="FILE", multiple=True,
              help="Give the command a copy of this file with its placeholders filled; may be repeated.")  # fmt: skip
@click.option("--log", "log_place", metavar="FILE", default="", help="Follow this log too, besides what CMD writes.")
@click.option("--attach", metavar="RUN", help="Guard a run whose guard is gone, by its id.")
@click.option("--dry-run", is_flag=True, help="Say what would be started and done, and start nothing.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line, for every look and event.")
@history_option
def guard(
    plan_name: str | None,
    command: tuple[str, ...],
    checkpoints: Path | None,
    files: tuple[str, ...],
    log_place: str,
    attach: str | None,
    dry_run: bool,
    as_json: bool,
    no_history: bool,
) -> int:
    """Run a command by a plan, watch it, and answer trouble as the plan's `watch` and `recovery` say.

    {placeholders} in CMD and in files are keys of the plan, such as {training.micro_batch}; the environment has them as
    CAPACITY_TUI_TRAINING_MICRO_BATCH and so on. The exit code is the command's. Where the guard itself is killed the
    command goes on; `guard --attach RUN` takes it up again.
    """
    from capacity_tui.engine.machine import detect
    from capacity_tui.engine.observe.guard import begin as begin_guarding
    from capacity_tui.engine.observe.guard import new_order as guard_order
    from capacity_tui.engine.observe.guard import take_up as take_up_guarding
    from capacity_tui.engine.solve import answer
    from capacity_tui.tui.headless.plans import machine_for, read_plan
    from capacity_tui.tui.headless.runs.guard_output import GuardOutput, tell_rehearsal

    if attach is not None:
        if plan_name is not None:
            raise click.UsageError("--attach knows plan and command: leave them out")
        output = GuardOutput(as_json, no_history)
        return output.guarded(take_up_guarding(attach, output.told(), detect))
    if plan_name is None or not command:
        raise click.UsageError("give a plan, and a command behind --")
    plan = read_plan(plan_name)
    machine = machine_for(plan)
    estimated = answer(plan, machine)
    order = guard_order(command, estimated.plan, files, checkpoints, log_place)
    if dry_run:
        tell_rehearsal(order, as_json)
        return 0
    output = GuardOutput(as_json, no_history)
    return output.guarded(begin_guarding(order, estimated, output.told(), machine))
