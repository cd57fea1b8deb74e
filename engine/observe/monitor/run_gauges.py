"""How a run stands as gauges, for those who collect metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator

from capacity_tui.engine.observe.exporting import Gauge
from capacity_tui.engine.observe.monitor.run_monitor import RunState
from capacity_tui.engine.observe.profile.gauges import gauges_of
from capacity_tui.engine.observe.profile.snapshots import Snapshots


class RunGauges:
    """Makes gauges of the states of one run, one after the other."""

    def __init__(self) -> None:
        self._snapshots = Snapshots()

    def of(self, state: RunState) -> Iterator[Gauge]:
        """Yield every number of a state that could be had.

        Figures of the log and of the run begin with ``run_``, what was predicted of it with ``predicted_`` and has
        the end of its range as a label; what processes and machine do has the names that it has of a profile.
        """
        figures = {**state.figures, **{_short(key): value for key, value in state.actual.items()}}
        for name, value in figures.items():
            if math.isfinite(value):
                yield Gauge(f"run_{name}", float(value))
        ends = {f"predicted_{_short(figure.key)}": figure.predicted for figure in state.compared}
        if state.left is not None:
            ends["run_seconds_left"] = state.left
        for name, interval in ends.items():
            for end in ("value", "low", "high"):
                value = float(getattr(interval, end))
                if math.isfinite(value):
                    yield Gauge(name, value, {"end": end})
        for alarm in state.going_on:
            yield Gauge("alarm", 1.0, {"kind": alarm.kind, "level": alarm.level, "where": alarm.where})
        if state.observation is not None:
            yield from gauges_of(self._snapshots.take(state.observation))


def _short(key: str) -> str:
    return key.rpartition(".")[2]
