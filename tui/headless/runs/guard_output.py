"""What a guard tells: JSON lines, or a line for each event beside what the command writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

from capacity_tui.engine.printable import printable
from capacity_tui.tui.headless.kept import keep_entries
from capacity_tui.tui.headless.output import say, tell
from capacity_tui.tui.headless.runs.monitor_output import JsonLines, stream_of_events
from capacity_tui.tui.headless.runs.recorded import is_kept

if TYPE_CHECKING:
    from capacity_tui.engine.observe.guard import Listeners as GuardListeners
    from capacity_tui.engine.observe.guard import Order as GuardOrder
    from capacity_tui.engine.observe.guard import Supervisor
    from capacity_tui.engine.observe.history import RunRecord
    from capacity_tui.engine.observe.monitor import RunState
    from capacity_tui.engine.observe.runs import RunWriter


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

    def told(self) -> GuardListeners:
        """Return it as what a guard tells."""
        from capacity_tui.engine.observe.guard import Listeners as GuardListeners

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

    found = guard_rehearsal(order)
    if as_json:
        sys.stdout.write(to_json(found, one_line=True))
        return
    for line in guard_rehearsal_lines(found):
        say(line)
