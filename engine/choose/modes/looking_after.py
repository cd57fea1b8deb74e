"""What a mode makes of the sections of a plan about a run while it goes on; no estimate depends on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Mode
from capacity_tui.engine.estimate import Estimate, job_seconds
from capacity_tui.engine.plan import AUTO, Plan, RecoverySection, Section, WatchSection
from capacity_tui.engine.units import format_percent, format_seconds

_MINUTE = 60.0
_BATTERY = "recovery.battery."
_WHERE_IT_RUNS = "settled where it runs, by its cores and its battery"

SectionT = TypeVar("SectionT", bound=Section)
_Chosen = Mapping[str, tuple[object, str]]


def with_run_policies(plan: Plan, mode: Mode, estimate: Estimate, catalog: Catalog) -> tuple[Plan, dict[str, str]]:
    """Return a plan with what is open of watching and recovery as a mode has it, and why for each path.

    What only the machine can tell, threads and steps on battery, stays open.
    """
    reasons: dict[str, str] = {}
    watch = _filled(plan.watch, "watch.", _watch(mode, catalog), reasons)
    recovery = _filled(plan.recovery, "recovery.", _recovery(mode, estimate), reasons)
    below = {"pause_below": (mode.recovery.pause_below, because(mode, mode.recovery.style))}
    battery = _filled(plan.recovery.battery, _BATTERY, below, reasons)
    reasons |= {f"{_BATTERY}{name}": _WHERE_IT_RUNS for name, value in battery if value == AUTO}
    recovery = recovery.model_copy(update={"battery": battery})
    return plan.model_copy(update={"watch": watch, "recovery": recovery}), reasons


def settings_alone(plan: Plan) -> Plan:
    """Return a plan without what is said of the run while it goes on."""
    return plan.model_copy(update={"watch": WatchSection(), "recovery": RecoverySection()})


def _filled(section: SectionT, above: str, chosen: _Chosen, reasons: dict[str, str]) -> SectionT:
    taken = {name: choice for name, choice in chosen.items() if getattr(section, name) == AUTO}
    reasons |= {f"{above}{name}": why for name, (_, why) in taken.items()}
    return section.model_copy(update={name: value for name, (value, _) in taken.items()})


def _watch(mode: Mode, catalog: Catalog) -> _Chosen:
    watch = mode.watch
    why = because(mode, watch.style)
    widths = catalog.detectors["loss_spike"].thresholds["widths"]
    return {
        "temperature_c": (watch.temperature_c, why),
        "memory_share": (watch.memory_share, why),
        "power_share": (watch.power_share, why),
        "nan": (watch.nan, why),
        "loss_spike": (widths, "what the detector of loss spikes tells from, with few false alarms"),
    }


def _recovery(mode: Mode, estimate: Estimate) -> _Chosen:
    recovery = mode.recovery
    why = because(mode, recovery.style)
    return {
        "out_of_memory": (recovery.out_of_memory, why),
        "max_restarts": (recovery.max_restarts, why),
        "heat": (recovery.heat, why),
        "device_lost": (recovery.device_lost, why),
        "unstable": (recovery.unstable, why),
        "hang": (recovery.hang, why),
        "checkpoint_every": _checkpoint_every(mode, estimate),
    }


def _checkpoint_every(mode: Mode, estimate: Estimate) -> tuple[float, str]:
    """Return the seconds between checkpoints by the length of the job; saving is not measured yet."""
    least, most = (_MINUTE * minutes for minutes in mode.recovery.checkpoint_minutes_range)
    within = f"between {format_seconds(least)} and {format_seconds(most)}"
    steps = estimate.computation.steps
    if steps is None:
        return least, f"{because(mode, within)}; the length of the job is open"
    seconds = float(np.max(np.asarray(job_seconds(steps, estimate.computation.step_seconds.value))))
    share = mode.recovery.checkpoint_share
    every = float(round(min(max(share * seconds, least), most)))
    return every, because(mode, f"{format_percent(share)} of the {format_seconds(seconds)} it takes, {within}")


def because(mode: Mode, why: str) -> str:
    """Return a reason in the words of the mode that has it."""
    return f"{mode.title}: {why}"
