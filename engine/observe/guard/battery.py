"""How a run continues while its machine runs on battery."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.catalog import named_numbers
from capacity_tui.engine.machine import Power
from capacity_tui.engine.observe.guard.heat import NUMBERS
from capacity_tui.engine.observe.guard.move import Move
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.units import HOUR_SECONDS, PERCENT, format_percent

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Supply:
    """Where a machine's power comes from.

    Attributes:
        on_mains: whether from the mains; None where unknown.
        charge: share of the battery that is left; None without one.
        watt_hours: what that is; None where unknown.
    """

    on_mains: bool | None
    charge: float | None = None
    watt_hours: float | None = None


def supply_of(power: Power) -> Supply:
    """Return the power supply that a machine reports."""
    percent = power.battery_percent.value
    return Supply(power.on_mains.value, None if percent is None else percent / PERCENT, power.battery_watt_hours.value)


@dataclass(frozen=True, slots=True)
class BatteryPlan:
    """How a run continues on battery.

    Attributes:
        pause_below: charge below which it is halted.
        threads: threads of the processor that it has.
        most_steps: steps that it may still take; None where only the charge bounds them.
    """

    pause_below: float
    threads: int
    most_steps: int | None
    reason: str

    def environment(self) -> dict[str, str]:
        """Return the variables that give numerical libraries so many threads."""
        return dict.fromkeys(_THREAD_VARIABLES, str(self.threads))


def battery_plan(
    plan: Plan, supply: Supply, cores: int, watts: float | None = None, step_seconds: float | None = None
) -> BatteryPlan | None:
    """Return how a run continues on battery; None on mains, or where the supply is unknown.

    Args:
        plan: the plan, filled in: ``recovery.battery``.
        cores: cores that the run may use.
        watts: what the machine draws; None where unknown.
        step_seconds: of an optimizer step; None where unknown.
    """
    wanted = plan.recovery.battery
    below = wanted.pause_below
    if supply.on_mains is not False or supply.charge is None or not isinstance(below, float):
        return None
    share = named_numbers(NUMBERS)["battery_cores"].value
    threads = wanted.threads if isinstance(wanted.threads, int) else max(1, int(cores * share))
    threads = min(threads, max(1, cores))
    steps = wanted.most_steps if isinstance(wanted.most_steps, int) else None
    if steps is None and supply.watt_hours is not None and watts and step_seconds:
        usable = max(0.0, supply.charge - below) / supply.charge if supply.charge > 0 else 0.0
        steps = int(usable * supply.watt_hours * HOUR_SECONDS / watts / step_seconds)
    many = "" if steps is None else f" and {steps} steps"
    reason = f"on battery: {threads} of {cores} threads{many}, halted below {format_percent(below)} of charge"
    return BatteryPlan(below, threads, steps, reason)


def battery_move(plan: BatteryPlan, supply: Supply, steps: int, is_paused: bool) -> Move | None:
    """Return whether to pause a run for its battery, or to resume it; None to leave it.

    Args:
        plan: how it continues on battery.
        steps: optimizer steps since there is no other power.
        is_paused: whether it is halted for the battery.
    """
    if is_paused:
        return Move("resume", "battery", "there is power again") if supply.on_mains else None
    if supply.on_mains is not False:
        return None
    if supply.charge is not None and supply.charge < plan.pause_below:
        left, least = format_percent(supply.charge), format_percent(plan.pause_below)
        return Move("pause", "battery", f"{left} of charge is left, the plan halts below {least}")
    if plan.most_steps is not None and steps >= plan.most_steps:
        return Move("pause", "battery", f"{steps} steps on battery, as many as were to be made")
    return None
