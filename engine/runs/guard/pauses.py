"""When a guarded run is paused, for heat or its battery, and when it resumes; and the processes that pause."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field
from typing import Literal

import numpy as np

from capacity_tui.engine.catalog import load_catalog, named_numbers
from capacity_tui.engine.machine import Host, Power, probe_power
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.guard.attempt import Attempt, Event
from capacity_tui.engine.runs.monitor.alarms import Alarm, RunSamples
from capacity_tui.engine.runs.monitor.anomalies import Numbers, held_over
from capacity_tui.engine.runs.monitor.run_monitor import RunMonitor, RunState
from capacity_tui.engine.units import PERCENT, format_percent, format_seconds, format_temperature


@dataclass(frozen=True, slots=True)
class PauseAction:
    """What is done to the processes of a run."""

    action: Literal["pause", "resume"]
    cause: Literal["heat", "battery"]
    reason: str


NUMBERS = "recovery.yaml"


def heat_action(
    plan: Plan, temperatures: Numbers, paused_seconds: float | None = None, is_throttled: bool = False
) -> PauseAction | None:
    """Return whether to pause a run for heat, or to resume it; None to leave it.

    Args:
        plan: the plan, filled in: ``watch.temperature_c`` and ``recovery.heat``.
        temperatures: degrees Celsius, one row a sample and one column a device; NaN where there was no reading.
        paused_seconds: for how long it has been paused for heat; None where it runs.
        is_throttled: whether the driver throttles clocks for heat.
    """
    limit = plan.watch.temperature_c
    if not isinstance(limit, float):
        return None
    if paused_seconds is not None:
        return _heat_while_paused(temperatures, limit, paused_seconds)
    if plan.recovery.heat != "pause":
        return None
    samples = round(load_catalog().detectors["hot"].thresholds["samples"])
    hot = [device for device in range(_width(temperatures)) if held_over(temperatures[:, device], limit, samples)]
    if hot:
        hottest = max(hot, key=lambda device: float(temperatures[-1, device]))
        now = format_temperature(float(temperatures[-1, hottest]))
        return PauseAction("pause", "heat", f"GPU {hottest} is at {now}, the plan allows {format_temperature(limit)}")
    # The driver's newest reasons may be outdated.
    still_warm = not _hottest(temperatures) <= _cool(limit)
    return PauseAction("pause", "heat", "the driver throttles for heat") if is_throttled and still_warm else None


def _heat_while_paused(temperatures: Numbers, limit: float, paused_seconds: float) -> PauseAction | None:
    hottest = _hottest(temperatures)
    if hottest <= _cool(limit):
        return PauseAction("resume", "heat", f"cooled to {format_temperature(hottest)}")
    longest = named_numbers(NUMBERS)["longest_pause_seconds"].value
    if paused_seconds >= longest:
        still = "no temperature sensor" if math.isnan(hottest) else f"still {format_temperature(hottest)}"
        return PauseAction("resume", "heat", f"{still} after {format_seconds(paused_seconds)}: check airflow and fans")
    return None


def _cool(limit: float) -> float:
    return limit - named_numbers(NUMBERS)["cooled_degrees"].value


def _hottest(temperatures: Numbers) -> float:
    """Return the newest temperature of the hottest device; NaN where one is not known."""
    newest = temperatures[-1] if _width(temperatures) else np.empty(0)
    return float(np.max(newest)) if newest.size else math.nan


def _width(temperatures: Numbers) -> int:
    return temperatures.shape[1] if temperatures.ndim == 2 and temperatures.shape[0] else 0


_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Supply:
    """Where a machine's power comes from."""

    on_mains: bool | None  # whether from the mains; None where unknown
    charge: float | None = None  # share of the battery that is left; None without one


def supply_of(power: Power) -> Supply:
    """Return the power supply that a machine reports."""
    percent = power.battery_percent.value
    return Supply(power.on_mains.value, None if percent is None else percent / PERCENT)


@dataclass(frozen=True, slots=True)
class BatteryPlan:
    """How a run continues on battery."""

    pause_below: float  # charge below which it is halted
    threads: int  # threads of the processor that it has
    most_steps: int | None  # steps that it may still take; None where only the charge bounds them
    reason: str

    def environment(self) -> dict[str, str]:
        """Return the variables that set the threads of numerical libraries."""
        return dict.fromkeys(_THREAD_VARIABLES, str(self.threads))


def battery_plan(plan: Plan, supply: Supply, cores: int) -> BatteryPlan | None:
    """Return how a filled plan's run continues on battery; None on mains, or where the supply is unknown."""
    setting = plan.recovery.battery
    below = setting.pause_below
    if supply.on_mains is not False or supply.charge is None or not isinstance(below, float):
        return None
    share = named_numbers(NUMBERS)["battery_cores"].value
    threads = setting.threads if isinstance(setting.threads, int) else max(1, int(cores * share))
    threads = min(threads, max(1, cores))
    steps = setting.most_steps if isinstance(setting.most_steps, int) else None
    many = "" if steps is None else f" and {steps} steps"
    reason = f"on battery: {threads} of {cores} threads{many}, halted below {format_percent(below)} of charge"
    return BatteryPlan(below, threads, steps, reason)


def battery_action(plan: BatteryPlan, supply: Supply, steps: int, is_paused: bool) -> PauseAction | None:
    """Return whether to pause a run for its battery, some steps after it began, or to resume it; None for neither."""
    if is_paused:
        return PauseAction("resume", "battery", "mains power is back") if supply.on_mains else None
    if supply.on_mains is not False:
        return None
    if supply.charge is not None and supply.charge < plan.pause_below:
        charge, least = format_percent(supply.charge), format_percent(plan.pause_below)
        return PauseAction("pause", "battery", f"{charge} of charge left, the plan halts below {least}")
    if plan.most_steps is not None and steps >= plan.most_steps:
        return PauseAction("pause", "battery", f"{steps} steps on battery, as many as were to be made")
    return None


_HEAT, _BATTERY = "heat", "battery"


@dataclass(slots=True)
class PausePolicy:
    """The causes a run is paused for; it resumes when none is left."""

    plan: Plan
    cores: int  # cores that the run may use
    # when it was halted for each cause, on the clock of the samples
    since: dict[str, float] = field(default_factory=dict)
    battery: BatteryPlan | None = None  # how it continues on battery; None on mains
    _step_on_mains: float = 0.0

    @property
    def is_halted(self) -> bool:
        """Whether the run is to be paused now."""
        return bool(self.since)

    def look(
        self,
        at: float,
        samples: RunSamples,
        alarms: Collection[Alarm] = (),
        supply: Supply | None = None,
        step: float = 0.0,
    ) -> PauseAction | None:
        """Return whether to pause or to resume the run; None to leave it.

        Args:
            at: seconds on a monotonic clock.
            supply: where power comes from; None where unknown.
        """
        throttled = any(alarm.kind == "throttling" and alarm.cause == _HEAT for alarm in alarms)
        paused = at - self.since[_HEAT] if _HEAT in self.since else None
        moves = [heat_action(self.plan, samples.of_gpus("temperature_celsius"), paused, throttled)]
        if supply is not None:
            moves.append(self._on_battery(supply, step))
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

    def _on_battery(self, supply: Supply, step: float) -> PauseAction | None:
        is_paused = _BATTERY in self.since
        if supply.on_mains is not False and not is_paused:
            self.battery, self._step_on_mains = None, step
            return None
        self.battery = self.battery or battery_plan(self.plan, supply, self.cores)
        if self.battery is None:
            return None
        return battery_action(self.battery, supply, int(step - self._step_on_mains), is_paused)


_SUPPLY_SECONDS = 5.0  # Seconds between two readings of the power supply
_NEWEST_STEPS = 50


class PauseControl:
    """Pauses and resumes one attempt; announced each time."""

    def __init__(
        self,
        attempt: Attempt,
        plan: Plan,
        announce: Callable[[Event], None],
        supply: Callable[[], Supply] | None = None,
    ) -> None:
        self._attempt = attempt
        self._announce = announce
        self._ask_supply = supply or supply_now
        self._policy = PausePolicy(plan, os.cpu_count() or 1)
        self._supply: Supply | None = None
        self._asked_at = -np.inf
        self._pauses: list[Pause] = []
        self._halted: set[int] = set()
        self._began = 0.0
        self._passed = 0.0

    @property
    def seconds(self) -> float:
        """Seconds for which it was paused so far."""
        return self._passed + (time.monotonic() - self._began if self._pauses else 0.0)

    def look(self, monitor: RunMonitor, state: RunState) -> None:
        """Pause or resume it where that is due."""
        now = time.monotonic()
        if now - self._asked_at >= _SUPPLY_SECONDS:
            self._asked_at, self._supply = now, self._ask_supply()
        move = self._policy.look(now, monitor.samples, state.active, self._supply, monitor.curve.step or 0.0)
        if move is None:
            return
        if move.action == "pause" and not self._pauses:
            self._began = now
            self._halt()
        elif move.action == "resume":
            self.over()
        self._announce({"event": move.action, **asdict(move)})

    def over(self) -> None:
        """Resume it, whatever it was paused for."""
        if self._pauses:
            self._passed += time.monotonic() - self._began
        while self._pauses:
            self._pauses.pop().over()
        self._halted.clear()

    def _halt(self) -> None:
        """Halt its processes, also those that others of them started meanwhile: a halted process starts none."""
        while fresh := [process.pid for process in self._attempt.processes() if process.pid not in self._halted]:
            self._pauses.append(Pause(fresh))
            self._halted.update(fresh)


def step_seconds_of(monitor: RunMonitor) -> float | None:
    """Return what a step takes recently; None where too few were seen."""
    passed = monitor.curve.passed_seconds()[1][-_NEWEST_STEPS:]
    return float(np.median(passed)) if passed.size else None


def supply_now() -> Supply:
    """Return where this machine's power comes from."""
    return supply_of(probe_power(Host()))


_WAITING = 'read line; kill -CONT "$@"'  # Waits for the end of its input, which comes also when the other end is killed


class Pause:
    """Halts processes until it is over, or this process has ended, however it ended.

    Raises:
        OSError: they could not be resumed, so they were not paused.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        listening, self._end = os.pipe()
        words = ("/bin/sh", "-c", _WAITING, "sh", *map(str, pids))
        action = (os.POSIX_SPAWN_DUP2, listening, 0)
        try:
            self._waker = os.posix_spawn(
                words[0], words, dict(os.environ), file_actions=[action], setsid=True, setsigmask=()
            )
        except OSError:
            os.close(self._end)
            raise
        finally:
            os.close(listening)
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)

    def over(self) -> None:
        """Resume them; returns once they were signalled."""
        os.close(self._end)
        with suppress(ChildProcessError):
            os.waitpid(self._waker, 0)
