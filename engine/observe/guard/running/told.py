"""Listeners to the events of a guard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from capacity_tui.engine.observe.guard.running.output import PassOn
from capacity_tui.engine.observe.history.records import RunRecord
from capacity_tui.engine.observe.monitor.run_monitor import RunState

Event: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Listeners:
    """Callbacks of a guard.

    Attributes:
        event: takes what happened, as plain data.
        state: takes how the run stands after each look, and whether that was the last of an attempt.
        entry: keeps what the run came to; called once or, where guards were killed, more often with the same id.
    """

    event: Callable[[Event], None]
    state: Callable[[RunState, bool], None]
    output: PassOn
    entry: Callable[[RunRecord], None]
