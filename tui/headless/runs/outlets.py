"""Options of commands that watch a run: where what they see goes while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capacity_tui.tui.headless.output import tell

if TYPE_CHECKING:
    from capacity_tui.engine.observe import Outlets
    from capacity_tui.engine.observe.monitor import RunState
    from capacity_tui.tui.headless.runs.monitor_output import RunOutput

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def outlet_options(command: CommandT) -> CommandT:
    """Add ``--jsonl`` and ``--serve`` to a command, as its arguments ``jsonl`` and ``serve``."""
    serve = click.option(
        "--serve",
        metavar="[HOST:]PORT",
        help="Serve Prometheus at /metrics; beyond this machine with a token in CAPACITY_TUI_METRICS_TOKEN.",
    )
    jsonl = click.option(
        "--jsonl", metavar="FILE", type=click.Path(path_type=Path), help="Append all of it as JSON lines; - for stdout."
    )
    return jsonl(serve(command))


class SharedOutput:
    """Shows a run, and lets other programs have what is new.

    Args:
        output: where it is shown.
        outlets: where the rest goes.
    """

    def __init__(self, output: RunOutput, outlets: Outlets) -> None:
        from capacity_tui.engine.observe.monitor import RunGauges

        self._output = output
        self._outlets = outlets
        self._gauges = RunGauges()

    def show(self, state: RunState, last: bool = False) -> None:
        """Show how the run stands, and hand it on."""
        from capacity_tui.engine.present.runs import run_events

        self._output.show(state, last)
        gauges = tuple(self._gauges.of(state))
        for event in run_events(state, last):
            self._outlets.show(event, gauges)


def tell_problems_of(outlets: Outlets) -> None:
    """Say what went wrong with what other programs were to have."""
    for problem in outlets.problems:
        tell(f"capacity-tui: {problem}")
