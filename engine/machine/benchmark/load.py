"""How much of the processor others took while a benchmark ran."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from capacity_tui.engine.machine.sample import Counters

BUSY_SHARE = 0.1  # from here on figures are not this machine's: less is the system's own work


@dataclass(frozen=True, slots=True)
class Moment:
    """Running totals at one moment: of the whole machine, and this process's own CPU seconds."""

    at_seconds: float
    counters: Counters
    own_seconds: float


def moment(counters: Callable[[], Counters]) -> Moment:
    """Return the totals now."""
    return Moment(time.monotonic(), counters(), time.process_time())


def busy_share(before: Moment, after: Moment, threads: int) -> float | None:
    """Return the share of the usable CPUs that others took between two moments; None where nothing counts them.

    CPUs that this process may not use count only when there are too few left: share = (others + usable - all) / usable.
    """
    busy, total = _between(before, after, "busy_seconds"), _between(before, after, "total_seconds")
    elapsed = after.at_seconds - before.at_seconds
    if busy is None or total is None or elapsed <= 0 or threads < 1:
        return None
    others = max(0.0, busy - (after.own_seconds - before.own_seconds)) / elapsed
    return min(1.0, max(0.0, others + threads - total / elapsed) / threads)


def _between(before: Moment, after: Moment, name: str) -> float | None:
    first, second = getattr(before.counters, name), getattr(after.counters, name)
    return None if first is None or second is None else second - first
