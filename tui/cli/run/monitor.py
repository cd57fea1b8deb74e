"""``monitor``: watches a run by its log, its processes or its output, and lays what was predicted beside it."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.engine import estimate as estimates
from capacity_tui.engine import runs, solve
from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.runs import logs
from capacity_tui.engine.runs import monitor as monitoring
from capacity_tui.tui.cli.options import options
from capacity_tui.tui.cli.run.run_output import SharedOutput, tell_problems_of

if TYPE_CHECKING:
    from capacity_tui.tui.cli.run.run_output import RunOutput

_STANDARD_INPUT = "-"
_PIPE_WAIT = 0.05
_FIRST_RATES = 0.5  # Seconds between the two samples of ``--once`` that rates need


@click.command(context_settings={"allow_interspersed_args": False})
@options("monitor")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def monitor(
    pid: int | None,
    log_place: str | None,
    plan_name: str | None,
    patterns: tuple[str, ...],
    interval: float,
    once: bool,
    as_json: bool,
    jsonl: Path | None,
    serve: str | None,
    no_history: bool,
    command: tuple[str, ...],
) -> int:
    """Watch a run: how far it is, how fast, how long it goes on, what goes wrong, and what was predicted of it.

    Name a log, a process, or a command behind `--`, whose output, signals and exit code stay as they are. Logs of the
    usual training programs and inference engines are known; Ctrl-C ends the watching of a log or a process.
    """
    if command and pid is not None:
        raise click.UsageError("give --pid or a command, not both")
    if not command and pid is None and log_place is None:
        raise click.UsageError("give --log FILE, --pid N, or a command behind --")
    if command and once:
        raise click.UsageError("--once looks at a run that is there: leave it out with a command")
    if once and serve:
        raise click.UsageError("--serve answers while a run goes on: leave out --once")
    reader = logs.LineReader(expressions=[logs.parse_user_expression(text) for text in patterns])
    answer = None if plan_name is None else _estimated(plan_name)
    if pid is not None:
        runs.need_process(pid)
        output = runs.output_file(pid) if log_place is None else None
        log_place = log_place if output is None else str(output)
    log = _opened(log_place, reader, must_exist=once)
    with closing(runs.Outlets(jsonl, serve)) as outlets:
        if command:
            from capacity_tui.tui.cli.run.piped_command import watch_command

            return watch_command(command, log, reader, answer, interval, outlets, as_json, no_history)
        with closing(monitoring.RunMonitor(log, pid, answer, _folders(log_place, pid))) as run:
            if once:
                return _report_once(run, outlets, as_json, log_place == _STANDARD_INPUT)
            writer = runs.RunWriter(run.beginning(), "monitor", pid, log_place or "")
            return _watched(run, writer, outlets, interval, as_json, no_history)


def _report_once(run: monitoring.RunMonitor, outlets: runs.Outlets, as_json: bool, wait_for_end: bool) -> int:
    """Say once how a run stands; return the exit code."""
    from capacity_tui.tui.cli.run.run_output import output_for

    with output_for(sys.stdout, as_json, once=True) as output:
        state = run.look(last=True)
        while wait_for_end and run.alive:
            time.sleep(_PIPE_WAIT)
            state = run.look()
        if state.observation is not None:
            time.sleep(_FIRST_RATES)
            state = run.look(last=True)
        SharedOutput(output, outlets).show(state, last=True)
    tell_problems_of(outlets)
    return 0


def _watched(
    run: monitoring.RunMonitor,
    writer: runs.RunWriter,
    outlets: runs.Outlets,
    interval: float,
    as_json: bool,
    no_history: bool,
) -> int:
    """Watch until the process ends or the user has enough; return the exit code."""
    from capacity_tui.tui.cli.run.run_output import RecordedOutput, finish, output_for

    with output_for(sys.stdout, as_json) as output:
        outlets.start()
        shared = SharedOutput(output, outlets)
        state = _until_over(run, RecordedOutput(shared, writer, run.curve), interval)
    finish(writer, run.entry(state), no_history, goes_on=run.alive)
    tell_problems_of(outlets)
    return 0


def _until_over(run: monitoring.RunMonitor, output: RunOutput, interval: float) -> monitoring.RunState:
    """Look again and again; return the last state. What asks the program to end ends the watching in good order."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    state = run.look()
    try:
        while run.alive:
            output.show(state)
            time.sleep(interval)
            state = run.look()
    except KeyboardInterrupt:
        pass
    state = run.look(last=True)
    output.show(state, last=True)
    return state


def _estimated(plan_name: str) -> estimates.Answer:
    from capacity_tui.tui.cli.plan_sources import machine_for, read_plan

    plan = read_plan(plan_name)
    return solve.answer(plan, machine_for(plan))


def _opened(place: str | None, reader: logs.LineReader, must_exist: bool) -> logs.LogSource | None:
    """Return the log at a place; one that does not exist yet is waited for, unless it is looked at but once."""
    if place is None:
        return None
    if must_exist and _is_file(place) and not Path(place).exists():
        raise StorageError("there is no such log", hint="without --once it is waited for", place=Place(place))
    return logs.open_log(place, reader)


def _folders(place: str | None, pid: int | None) -> tuple[Path, ...]:
    """Return folders on whose disks a run may write."""
    folders = [] if place is None or not _is_file(place) else [Path(place).absolute().parent]
    work = None if pid is None else runs.work_folder(pid)
    return tuple(dict.fromkeys([*folders, *([work] if work else [])]))


def _is_file(place: str) -> bool:
    return place != _STANDARD_INPUT and "://" not in place
