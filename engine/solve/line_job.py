"""How long a job of pictures takes, of which a plan tells only how many it makes a second."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import METRICS
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.line import OneLine
from capacity_tui.engine.solve.modes.modes import fill
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_count, format_seconds


def job_words(line: OneLine, plan: Plan, catalog: Catalog) -> Iterator[str]:
    """Yield how long all pictures of a line take, as of ``flux dev 1000 images on a 4090``."""
    jobs = (entry.value for entry in line.assumptions if entry.key == Key.INFERENCE_REQUESTS)
    pictures = next((value for value in jobs if isinstance(value, int)), None)
    if pictures is None or line.has(Key.INFERENCE_REQUESTS) or not line.has(Key.HARDWARE_NAME):
        return
    try:
        rate = METRICS[Figure.SAMPLES_PER_SECOND].read(fill(plan, "balanced", None, catalog).estimate)
    except CapacityError:
        return
    if isinstance(rate, Interval):
        low, most, high = (pictures / largest(bound) for bound in (rate.high, rate.value, rate.low))
        times = f"{format_seconds(most)} ({format_seconds(low)} to {format_seconds(high)})"
        yield f"all {format_count(pictures)} take {times}, at as many a second as the plan tells"
