"""What a command sees of a run, written where others can follow it, and kept in the history in the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.headless.kept import chosen_place, keep_entries
from capacity_tui.tui.headless.output import tell

if TYPE_CHECKING:
    from capacity_tui.engine.observe.history import RunRecord
    from capacity_tui.engine.observe.logs import RunCurve
    from capacity_tui.engine.observe.monitor import RunState
    from capacity_tui.engine.observe.runs import RunWriter
    from capacity_tui.tui.headless.runs.monitor_output import RunOutput


class RecordedOutput:
    """Shows a run, and writes what is new into its folder.

    Args:
        output: where it is shown.
        writer: writes the folder.
        curve: what the run's log tells.
    """

    def __init__(self, output: RunOutput, writer: RunWriter, curve: RunCurve) -> None:
        self._output = output
        self._writer = writer
        self._curve = curve
        self._is_first = True

    def show(self, state: RunState, last: bool = False) -> None:
        """Show how the run stands, and write it down."""
        from capacity_tui.engine.observe.runs import course_of
        from capacity_tui.engine.present.runs import run_events

        self._output.show(state, last)
        before = [course_of(self._curve)] if self._is_first and self._curve.points else []
        self._writer.write(*before, *run_events(state, last))
        self._is_first = False


def finish(
    writer: RunWriter,
    entry: RunRecord | None,
    no_history: bool,
    exit_code: int | None = None,
    *,
    goes_on: bool = False,
) -> None:
    """Keep what a run came to in the history; where nothing is to be kept, its folder goes too.

    Args:
        writer: of its folder.
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
        return not no_history and chosen_place().is_on
    except CapacityError:
        return True
