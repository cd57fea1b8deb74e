"""``guard``: runs a command by a plan, and starts it again with a changed plan where that may help."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from capacity_tui.engine.printable import printable
from capacity_tui.tui.cli.history_store import history_option, keep_entries
from capacity_tui.tui.cli.output import say, tell
from capacity_tui.tui.cli.run.run_output import JsonLines, is_kept, stream_of_events

if TYPE_CHECKING:
    from capacity_tui.engine.runs import RunWriter
    from capacity_tui.engine.runs.guard import Listeners as GuardListeners
    from capacity_tui.engine.runs.guard import Order as GuardOrder
    from capacity_tui.engine.runs.guard import Supervisor
    from capacity_tui.engine.runs.history import RunRecord
    from capacity_tui.engine.runs.monitor import RunState


@click.command()
@click.argument("plan_name", metavar="PLAN", required=False)
@click.argument("command", metavar="-- CMD", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--checkpoints",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where the command leaves checkpoints; the newest complete one is {run.checkpoint}.",
)
@click.option(
    "--rewrite",
    "files",
    metavar="FILE",
    multiple=True,
    help="Give the command a copy of this file with its placeholders filled; may be repeated.",
)
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
    from capacity_tui.engine.runs.guard import begin as begin_guarding
    from capacity_tui.engine.runs.guard import new_order as guard_order
    from capacity_tui.engine.runs.guard import take_up as take_up_guarding
    from capacity_tui.engine.solve import answer
    from capacity_tui.tui.cli.plan_sources import machine_for, read_plan

    if attach is not None:
        if plan_name is not None:
            raise click.UsageError("--attach knows plan and command: leave them out")
        output = GuardOutput(as_json, no_history)
        return output.guarded(take_up_guarding(attach, output.listeners(), detect))
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
    return output.guarded(begin_guarding(order, estimated, output.listeners(), machine))


class GuardOutput:
    """Tells of a guarded run.

    Args:
        as_json: whether every look and event is a JSON line; the command's output goes to stderr then.
        no_history: whether nothing of it is kept.
    """

    def __init__(self, as_json: bool, no_history: bool) -> None:
        self._stream: IO[str] = stream_of_events(as_json)
        self._lines = JsonLines(self._stream) if as_json else None
        self._no_history = no_history
        self._writer: RunWriter | None = None

    def guarded(self, supervisor: Supervisor) -> int:
        """Guard a run to its end; return the exit code of its command."""
        self._writer = supervisor.writer
        code = supervisor.run()
        if not is_kept(self._no_history):
            self._writer.forget()
        if self._writer.problem:
            tell(f"capacity-tui: {self._writer.problem}")
        return code

    def listeners(self) -> GuardListeners:
        """Return it as what a guard tells."""
        from capacity_tui.engine.runs.guard import Listeners as GuardListeners

        return GuardListeners(self.event, self.state, self.output, self.entry)

    def event(self, event: Mapping[str, object]) -> None:
        """Tell what happened."""
        from capacity_tui.engine.present.runs import guard_event_line

        if self._lines is not None:
            self._lines.event(dict(event))
        else:
            self._say(guard_event_line(event))

    def state(self, state: RunState, last: bool) -> None:
        """Tell how the run stands: all of it as JSON, else what goes wrong, since its own log says the rest."""
        from capacity_tui.engine.present.runs import alarm_line, run_events

        if self._writer is not None:
            self._writer.write(*run_events(state, last))
        if self._lines is not None:
            self._lines.show(state, last)
            return
        for alarm in state.alarms:
            self._say(alarm_line(alarm))

    def output(self, number: int, data: bytes) -> None:
        """Pass on what the command wrote; where nobody reads it any more the command goes on."""
        stream = sys.stderr if number == 2 or self._lines is not None else sys.stdout
        rest = memoryview(data)
        try:
            stream.flush()
            while rest:
                rest = rest[os.write(stream.fileno(), rest) :]
        except OSError:
            return

    def entry(self, entry: RunRecord) -> None:
        """Keep what the run came to."""
        keep_entries([entry], self._no_history)

    def _say(self, text: str) -> None:
        self._stream.write(f"guard: {printable(text)}\n")
        self._stream.flush()


def tell_rehearsal(order: GuardOrder, as_json: bool) -> None:
    """Say what would be started, with what, and what would be done about trouble."""
    from capacity_tui.engine.present import to_json
    from capacity_tui.engine.present.runs import guard_rehearsal, guard_rehearsal_lines

    rehearsal = guard_rehearsal(order)
    if as_json:
        sys.stdout.write(to_json(rehearsal, one_line=True))
        return
    for line in guard_rehearsal_lines(rehearsal):
        say(line)
