"""Step time and peak memory of a whole log: what a run is compared with its plan by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from capacity_tui.engine.observe.logs.entry import LogEntry
from capacity_tui.engine.observe.logs.line_reader import LineReader
from capacity_tui.engine.observe.logs.run_curve import RunCurve
from capacity_tui.engine.observe.logs.sources import open_log

# The first steps compile, allocate and fill caches.
_WARM_UP_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class LogFigures:
    """Figures of a whole log.

    Attributes:
        step_seconds: median step time after warm-up, in seconds; None where unknown.
        peak_bytes: largest memory it names; None likewise.
    """

    step_seconds: float | None
    peak_bytes: float | None
    steps: int


def read_log(place: str) -> LogFigures:
    """Return step time and peak memory from a log of any program.

    Raises:
        StorageError: a folder holds no log.
    """
    log = open_log(place, LineReader())
    try:
        return figures_of(log.poll(last=True))
    finally:
        log.close()


def figures_of(entries: Iterable[LogEntry]) -> LogFigures:
    """Return step time and peak memory of the entries of a log."""
    curve, known = RunCurve(), list(entries)
    curve.add(known)
    times = [seconds for entry in known if (seconds := entry.figures.get("step_seconds", 0.0)) > 0]
    times = times or curve.step_seconds()[1].tolist()
    steady = times[max(1, round(_WARM_UP_SHARE * len(times))) :] or times
    return LogFigures(median(steady) if steady else None, curve.peak_bytes, len(times))
