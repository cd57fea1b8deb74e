"""``monitor``, ``guard`` and ``profile``: watch runs, or start them by a plan, beside what was predicted of them."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import IO

import click

from capacity_tui.engine import estimate as estimates
from capacity_tui.engine import files, present, runs, solve
from capacity_tui.engine import machine as machines
from capacity_tui.engine.errors import CapacityError, Place, StorageError
from capacity_tui.engine.present import runs as run_texts
from capacity_tui.engine.printable import printable
from capacity_tui.engine.runs import guard as guarding
from capacity_tui.engine.runs import history as histories
from capacity_tui.engine.runs import logs
from capacity_tui.engine.runs import monitor as monitoring
from capacity_tui.engine.runs import profile as profiling
from capacity_tui.tui.cli.options import keep_entries, options
from capacity_tui.tui.cli.output import say, tell
from capacity_tui.tui.cli.run.piped_command import OutputReading, watch_command, work_in_output
from capacity_tui.tui.cli.run.run_output import (
    JsonLines,
    RecordedOutput,
    RunOutput,
    SharedOutput,
    finish,
    is_kept,
    output_for,
    stream_of_events,
    tell_problems_of,
)

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
            return watch_command(command, log, reader, answer, interval, outlets, as_json, no_history)
        with closing(monitoring.RunMonitor(log, pid, answer, _folders(log_place, pid))) as run:
            if once:
                return _report_once(run, outlets, as_json, log_place == _STANDARD_INPUT)
            writer = runs.RunWriter(run.beginning(), "monitor", pid, log_place or "")
            return _watched(run, writer, outlets, interval, as_json, no_history)


def _report_once(run: monitoring.RunMonitor, outlets: runs.Outlets, as_json: bool, wait_for_end: bool) -> int:
    """Say once how a run stands; return the exit code."""
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


_NAMES = 12  # Cells that names of rows take


@click.command()
@click.argument("plan_name", metavar="PLAN", required=False)
@click.argument("command", metavar="-- CMD", nargs=-1, type=click.UNPROCESSED)
@options("guard")
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
    from capacity_tui.tui.cli.plan_sources import machine_for, read_plan

    if attach is not None:
        if plan_name is not None:
            raise click.UsageError("--attach knows plan and command: leave them out")
        output = GuardOutput(as_json, no_history)
        return output.guarded(guarding.take_up(attach, output.listeners(), machines.detect))
    if plan_name is None or not command:
        raise click.UsageError("give a plan, and a command behind --")
    plan = read_plan(plan_name)
    machine = machine_for(plan)
    estimated = solve.answer(plan, machine)
    order = guarding.new_order(command, estimated.plan, files, checkpoints, log_place)
    if dry_run:
        tell_rehearsal(order, as_json)
        return 0
    output = GuardOutput(as_json, no_history)
    return output.guarded(guarding.begin(order, estimated, output.listeners(), machine))


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
        self._writer: runs.RunWriter | None = None

    def guarded(self, supervisor: guarding.Supervisor) -> int:
        """Guard a run to its end; return the exit code of its command."""
        self._writer = supervisor.writer
        code = supervisor.run()
        if not is_kept(self._no_history):
            self._writer.forget()
        if self._writer.problem:
            tell(f"capacity-tui: {self._writer.problem}")
        return code

    def listeners(self) -> guarding.Listeners:
        return guarding.Listeners(self.event, self.state, self.output, self.entry)

    def event(self, event: Mapping[str, object]) -> None:
        if self._lines is not None:
            self._lines.event(dict(event))
        else:
            self._say(run_texts.guard_event_line(event))

    def state(self, state: monitoring.RunState, last: bool) -> None:
        """Tell how the run stands: all of it as JSON, else what goes wrong, since its own log says the rest."""
        if self._writer is not None:
            self._writer.write(*run_texts.run_events(state, last))
        if self._lines is not None:
            self._lines.show(state, last)
            return
        for line in (*state.notices, *map(run_texts.alarm_line, state.alarms)):
            self._say(line)

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

    def entry(self, entry: histories.RunRecord) -> None:
        keep_entries([entry], self._no_history)

    def _say(self, text: str) -> None:
        self._stream.write(f"guard: {printable(text)}\n")
        self._stream.flush()


def tell_rehearsal(order: guarding.Order, as_json: bool) -> None:
    """Say what would be started, with what, and what would be done about trouble."""
    rehearsal = run_texts.guard_rehearsal(order)
    if as_json:
        sys.stdout.write(present.to_json(rehearsal, one_line=True))
        return
    for line in run_texts.guard_rehearsal_lines(rehearsal):
        say(line)


_WIDEST = 160


@click.command(context_settings={"allow_interspersed_args": False})
@options("profile")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def profile(
    interval: float,
    samples: str | None,
    stages: tuple[str, ...],
    url: str | None,
    tier: str | None,
    thresholds: tuple[str, ...],
    json_file: Path | None,
    html_file: Path | None,
    jsonl: Path | None,
    serve: str | None,
    quiet: bool,
    no_history: bool,
    command: tuple[str, ...],
) -> int:
    """Run a command and say what it used: memory, CPU, disk, network, GPUs, and what held it up.

    The command's output, input, signals and exit code stay as they are; what was found goes to stderr. Write `--`
    before the command.
    """
    count, work = work_in_output(samples, stages)
    limits = {
        **(profiling.thresholds_of_tier(tier) if tier else {}),
        **profiling.parse_thresholds(dict(map(_named, thresholds))),
    }
    with closing(runs.Outlets(jsonl, serve)) as outlets:

        def seen(snapshot: profiling.ResourceSnapshot) -> None:
            data = profiling.snapshot_as_dict(snapshot)
            outlets.show(data, profiling.gauges_of(snapshot))
            writer.write({"event": "sample", **data})
            if reading is not None:
                reading.look(engine)

        # What is wrong with any of this is said before the command runs.
        engine = profiling.ProfilingEngine(interval, url=url, thresholds=limits, seen=seen)
        reading = OutputReading(work) if work else None
        running = reading.started(command) if reading else runs.RunningCommand(command)
        writer = runs.RunWriter(profiling.begun_profile(command), "profile", running.pid)
        _guarded(outlets.start)
        _guarded(lambda: engine.start(running.pid))
        with engine.stage(stages[0], count) if stages and not work else nullcontext():
            ended = running.wait()
        if reading is not None:
            _guarded(lambda: reading.end(engine))

        def report() -> None:
            if count is not None and (work or not stages):
                engine.done(count)
            result = engine.profile(ended, command)
            _write(result, json_file, html_file)
            for line in () if quiet else _lines(result):
                tell(line)
            tell_problems_of(outlets)
            finish(writer, profiling.profile_entry(result), no_history, ended.exit_code)

        _guarded(report)
    return ended.exit_code


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--threshold takes NAME=VALUE, not {text!r}")
    return name.strip(), value


def _guarded(work: Callable[[], None]) -> None:
    """Do something beside the command, whose exit code stands whatever comes of it."""
    try:
        work()
    except CapacityError as error:
        tell(f"capacity-tui: {error.one_line()}")
    except Exception as error:
        tell(f"capacity-tui: profiling failed, the command did not: {type(error).__name__}: {error}")


def _write(result: profiling.Profile, json_file: Path | None, html_file: Path | None) -> None:
    if json_file is not None:
        _guarded(lambda: files.write_atomically(json_file, profiling.profile_as_json(result), overwrite=True))
    if html_file is not None:
        _guarded(lambda: files.write_atomically(html_file, run_texts.profile_page(result), overwrite=True))


def _lines(result: profiling.Profile) -> Iterator[str]:
    """Yield what was found, folded to the width of the terminal."""
    width = min(_WIDEST, shutil.get_terminal_size().columns) if sys.stderr.isatty() else _WIDEST
    yield run_texts.profile_title(result)
    for name, text in (*run_texts.profile_rows(result.summary), *(("Problem", problem) for problem in result.problems)):
        folded = textwrap.wrap(text, max(20, width - _NAMES - 2)) or [""]
        for number, line in enumerate(folded):
            yield f"{'' if number else name:<{_NAMES}}  {line}"
