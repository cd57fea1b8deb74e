"""When a run is paused for heat and when it resumes, with hysteresis."""

from __future__ import annotations

import math

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog, named_numbers
from capacity_tui.engine.observe.foresight.devices import held_over
from capacity_tui.engine.observe.foresight.trends import Numbers
from capacity_tui.engine.observe.guard.move import Move
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.units import format_seconds, format_temperature

NUMBERS = "recovery.yaml"


def heat_move(
    plan: Plan,
    temperatures: Numbers,
    paused_seconds: float | None = None,
    is_throttled: bool = False,
    catalog: Catalog | None = None,
) -> Move | None:
    """Return whether to pause a run for heat, or to resume it; None to leave it.

    Args:
        plan: the plan, filled in: ``watch.temperature_c`` and ``recovery.heat``.
        temperatures: degrees Celsius, one row a sample and one column a device; NaN where there was no reading.
        paused_seconds: for how long it has been paused for heat; None where it runs.
        is_throttled: whether the driver holds clocks down for heat.
    """
    limit = plan.watch.temperature_c
    if not isinstance(limit, float):
        return None
    if paused_seconds is not None:
        return _going_on(temperatures, limit, paused_seconds)
    if plan.recovery.heat != "pause":
        return None
    samples = round((catalog or load_catalog()).detectors["hot"].thresholds["samples"])
    hot = [device for device in range(_width(temperatures)) if held_over(temperatures[:, device], limit, samples)]
    if hot:
        hottest = max(hot, key=lambda device: float(temperatures[-1, device]))
        now = format_temperature(float(temperatures[-1, hottest]))
        return Move("pause", "heat", f"GPU {hottest} is at {now}, the plan allows {format_temperature(limit)}")
    # The driver's newest reasons may be outdated.
    still_warm = not _hottest(temperatures) <= _cool(limit)
    return Move("pause", "heat", "the driver holds clocks down for heat") if is_throttled and still_warm else None


def _going_on(temperatures: Numbers, limit: float, paused_seconds: float) -> Move | None:
    hottest = _hottest(temperatures)
    if hottest <= _cool(limit):
        return Move("resume", "heat", f"cooled to {format_temperature(hottest)}")
    longest = named_numbers(NUMBERS)["longest_pause_seconds"].value
    if paused_seconds >= longest:
        still = "nothing tells how hot it is" if math.isnan(hottest) else f"still {format_temperature(hottest)}"
        return Move("resume", "heat", f"{still} after {format_seconds(paused_seconds)}: look at air and fans")
    return None


def _cool(limit: float) -> float:
    return limit - named_numbers(NUMBERS)["cooled_degrees"].value


def _hottest(temperatures: Numbers) -> float:
    """Return the newest temperature of the hottest device; NaN where one is not known."""
    newest = temperatures[-1] if _width(temperatures) else np.empty(0)
    return float(np.max(newest)) if newest.size else math.nan


def _width(temperatures: Numbers) -> int:
    return temperatures.shape[1] if temperatures.ndim == 2 and temperatures.shape[0] else 0
