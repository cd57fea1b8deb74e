"""Why a run is paused, and when to pause and resume it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from capacity_tui.engine.observe.guard.battery import BatteryPlan, Supply, battery_move, battery_plan
from capacity_tui.engine.observe.guard.heat import heat_move
from capacity_tui.engine.observe.guard.move import Move
from capacity_tui.engine.observe.monitor.alarms import Alarm
from capacity_tui.engine.observe.monitor.run_samples import RunSamples
from capacity_tui.engine.plan import Plan

_HEAT, _BATTERY = "heat", "battery"


@dataclass(slots=True)
class Halting:
    """The causes a run is paused for; it resumes when none is left.

    Attributes:
        cores: cores that the run may use.
        since: when it was halted for each cause, on the clock of the looks.
        battery: how it continues on battery; None on mains.
    """

    plan: Plan
    cores: int
    since: dict[str, float] = field(default_factory=dict)
    battery: BatteryPlan | None = None
    _step_on_mains: float = 0.0

    @property
    def is_halted(self) -> bool:
        """Whether the run is to stand still now."""
        return bool(self.since)

    def look(
        self,
        at: float,
        samples: RunSamples,
        alarms: Collection[Alarm] = (),
        supply: Supply | None = None,
        step: float = 0.0,
        step_seconds: float | None = None,
        watts: float | None = None,
    ) -> Move | None:
        """Return whether to pause or to resume the run; None to leave it.

        Args:
            at: seconds on a monotonic clock.
            supply: where power comes from; None where unknown.
            step: the newest optimizer step.
            step_seconds: of one.
        """
        throttled = any(alarm.kind == "throttling" and alarm.cause == _HEAT for alarm in alarms)
        paused = at - self.since[_HEAT] if _HEAT in self.since else None
        moves = [heat_move(self.plan, samples.of_gpus("temperature_celsius"), paused, throttled)]
        if supply is not None:
            moves.append(self._on_battery(supply, step, step_seconds, watts))
        was_halted = self.is_halted
        for move in moves:
            if move is not None and move.action == "pause":
                self.since[move.cause] = at
            elif move is not None:
                self.since.pop(move.cause, None)
        if self.is_halted == was_halted:
            return None
        return next(move for move in moves if move is not None and (move.action == "pause") is self.is_halted)

    def environment(self) -> Mapping[str, str]:
        """Return the variables that a run is started with while it has no power but the battery's."""
        return {} if self.battery is None else self.battery.environment()

    def _on_battery(self, supply: Supply, step: float, step_seconds: float | None, watts: float | None) -> Move | None:
        is_paused = _BATTERY in self.since
        if supply.on_mains is not False and not is_paused:
            self.battery, self._step_on_mains = None, step
            return None
        self.battery = self.battery or battery_plan(self.plan, supply, self.cores, watts, step_seconds)
        if self.battery is None:
            return None
        return battery_move(self.battery, supply, int(step - self._step_on_mains), is_paused)
