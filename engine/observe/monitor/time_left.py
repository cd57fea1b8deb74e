"""The remaining time of a run, from its newest steps."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.observe.logs.run_curve import Numbers
from capacity_tui.engine.uncertainty import Interval

NEWEST = 200
BLOCKS = 10
LEAST = 3
LOWEST, HIGHEST = 0.1, 0.9
# One long halt among the newest steps says little of those to come.
LONGEST_TIMES_USUAL = 3.0


def seconds_left(steps_left: float, seconds: Numbers) -> Interval | None:
    """Return the time that steps still take; None where too few were seen.

    The newest steps are averaged in blocks, so that evaluations and checkpoints count as often as they come; the range
    is that of eight of ten blocks.

    Args:
        seconds: what each step so far took, the newest last.
    """
    # The first compiles, allocates and fills caches.
    newest = seconds[1:][-NEWEST:]
    if newest.size < LEAST or steps_left < 0:
        return None
    means = np.asarray([block.mean() for block in np.array_split(newest, min(BLOCKS, newest.size))])
    means = np.minimum(means, LONGEST_TIMES_USUAL * np.median(means))
    low, high = np.quantile(means, (LOWEST, HIGHEST))
    value = float(means.mean())
    return Interval(value, min(float(low), value), max(float(high), value)).scaled(steps_left)
