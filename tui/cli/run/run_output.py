"""How a watched run is shown: JSON lines, plain lines, or one block that repaints itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Protocol

from capacity_tui.engine import present, runs
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.present import runs as run_texts
from capacity_tui.engine.printable import printable, printable_lines
from capacity_tui.engine.runs import history as histories
from capacity_tui.engine.runs import logs
from capacity_tui.engine.runs import monitor as monitoring
from capacity_tui.tui.cli.options import chosen_history, keep_entries
from capacity_tui.tui.cli.output import tell

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live


_MOST_ALARMS = 6  # Alarms that the block shows, the newest
_MARKS = {"note": "-", "warning": "!", "error": "x"}


class RunOutput(Protocol):
    """Where a watched run is shown."""

    def show(self, state: monitoring.RunState, last: bool = False) -> None:
        """Show how the run stands, and what is new."""


class JsonLines:
    """One JSON object a line."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def show(self, state: monitoring.RunState, last: bool = False) -> None:
        for event in run_texts.run_events(state, last):
            self.event(event)

    def event(self, data: dict[str, object]) -> None:
        self._stream.write(present.to_json(data, one_line=True))
        self._stream.flush()


class PlainLines:
    """A line for each look that brought something new; all there is to say with the last."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._shown = ""

    def show(self, state: monitoring.RunState, last: bool = False) -> None:
        lines = [f"note: {notice}" for notice in state.notices]
        lines += [run_texts.alarm_line(alarm) for alarm in state.alarms]
        progress = run_texts.progress_line(state)
        if progress != self._shown or last:
            lines.append(progress)
            self._shown = progress
        if last:
            lines += _ending(state)
        for line in lines:
            self._stream.write(f"{printable(line)}\n")
        self._stream.flush()


class LiveBlock:
    """One block at the foot of the terminal; what a command writes goes by above it."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console = console
        self._live = live
        self._alarms: list[monitoring.Alarm] = []

    def show(self, state: monitoring.RunState, last: bool = False) -> None:  # noqa: ARG002 - the block stays as it is
        self._alarms = [*self._alarms, *state.alarms][-_MOST_ALARMS:]
        for notice in state.notices:
            self.above(f"note: {notice}")
        self._live.update(self._block(state), refresh=True)

    def above(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text.from_ansi(printable_lines(text) if "\x1b" not in text else text), highlight=False)

    def _block(self, state: monitoring.RunState) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        parts: list[RenderableType] = [Text(printable(run_texts.progress_line(state)), style="bold", no_wrap=True)]
        rows = run_texts.compared_rows(state)
        if rows:
            table = Table(box=None, pad_edge=False, show_edge=False)
            for head in ("", "predicted", "now", "verdict"):
                table.add_column(Text(head, style="dim"), no_wrap=True)
            for row in rows:
                table.add_row(*(Text(printable(cell)) for cell in row))
            parts.append(table)
        parts += [Text(f"why: {printable(reason.text)}") for reason in state.reasons]
        parts += [Text(printable(line), style="dim", no_wrap=True) for line in run_texts.machine_lines(state)]
        parts += [Text(f"{_MARKS[alarm.level]} {printable(run_texts.alarm_line(alarm))}") for alarm in self._alarms]
        return Group(*parts)


@contextmanager
def output_for(stream: IO[str], as_json: bool, once: bool = False) -> Iterator[JsonLines | PlainLines | LiveBlock]:
    """Yield what shows a run on a stream: on a terminal a block, unless it is looked at but once."""
    if as_json:
        yield JsonLines(stream)
    elif once or not stream.isatty():
        yield PlainLines(stream)
    else:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=stream, markup=False, highlight=False, emoji=False)
        # Nothing repaints by itself: the block changes when a look brings something.
        with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
            yield LiveBlock(console, live)


def _ending(state: monitoring.RunState) -> Iterator[str]:
    """Yield what a plain text says beside the progress."""
    rows = run_texts.compared_rows(state)
    widths = [max(len(row[column]) for row in rows) for column in range(4)] if rows else []
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield from (f"why: {reason.text}" for reason in state.reasons)
    yield from run_texts.machine_lines(state)


def stream_of_events(as_json: bool) -> IO[str]:
    """Return where a run is shown whose own output goes to stdout: JSON takes stdout for itself."""
    return sys.stdout if as_json else sys.stderr


class SharedOutput:
    """Shows a run, and hands what is new to other outlets."""

    def __init__(self, output: RunOutput, outlets: runs.Outlets) -> None:
        self._output = output
        self._outlets = outlets
        self._gauges = monitoring.RunGauges()

    def show(self, state: monitoring.RunState, last: bool = False) -> None:
        self._output.show(state, last)
        gauges = tuple(self._gauges.of(state))
        for event in run_texts.run_events(state, last):
            self._outlets.show(event, gauges)


def tell_problems_of(outlets: runs.Outlets) -> None:
    """Say what went wrong with what other programs were to have."""
    for problem in outlets.problems:
        tell(f"capacity-tui: {problem}")


class RecordedOutput:
    """Shows a run, and writes what is new of its curve into its folder."""

    def __init__(self, output: RunOutput, writer: runs.RunWriter, curve: logs.RunCurve) -> None:
        self._output = output
        self._writer = writer
        self._curve = curve
        self._is_first = True

    def show(self, state: monitoring.RunState, last: bool = False) -> None:
        self._output.show(state, last)
        before = [runs.course_of(self._curve)] if self._is_first and self._curve.points else []
        self._writer.write(*before, *run_texts.run_events(state, last))
        self._is_first = False


def finish(
    writer: runs.RunWriter,
    entry: histories.RunRecord | None,
    no_history: bool,
    exit_code: int | None = None,
    *,
    goes_on: bool = False,
) -> None:
    """Keep what a run came to in the history; where nothing is to be kept, its folder goes too.

    Args:
        entry: what it came to; None where nothing was measured.
        no_history: whether the user wants nothing kept.
        exit_code: how its command ended.
        goes_on: whether the run goes on without anybody who watches it.
    """
    if entry is not None:
        entry = replace(entry, id=writer.run.record.id)
        keep_entries([entry], no_history)
    if not is_kept(no_history):
        writer.forget()
    elif goes_on:
        writer.close()
    else:
        writer.end(entry, exit_code)
    if writer.problem:
        tell(f"capacity-tui: {writer.problem}")


def is_kept(no_history: bool) -> bool:
    """Return whether anything of a run is to be kept: the user may want nothing of this one, or of any."""
    try:
        return not no_history and chosen_history().is_on
    except CapacityError:
        return True
