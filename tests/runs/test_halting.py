"""When runs are halted for heat and on battery, and how often they save."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.machine import Power, detected, missing
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.runs.guard.checkpoints import save_interval, seconds_between_failures
from capacity_tui.engine.runs.guard.failures import Failure
from capacity_tui.engine.runs.guard.pauses import (
    BatteryPlan,
    PausePolicy,
    Supply,
    battery_action,
    battery_plan,
    heat_action,
    supply_of,
)
from capacity_tui.engine.runs.guard.recovery_policy import next_step
from capacity_tui.engine.runs.monitor.alarms import RunSamples, detectors_of
from capacity_tui.engine.solve import answer

PLAN = """
model: {name: gpt2}
training: {steps: 100000, micro_batch: 4, global_batch: BATCH, seq_len: 1024}
hardware: {name: h100-sxm-80gb, devices: DEVICES}
watch: {temperature_c: 85}
"""


@cache
def answered(devices: int = 1, more: str = "") -> Answer:
    return answer(
        plan_from_text(PLAN.replace("DEVICES", str(devices)).replace("BATCH", str(max(16, 4 * devices))) + more, "plan")
    )


def plan_with(more: str = "recovery: {heat: pause, battery: {pause_below: 0.2}}") -> Plan:
    return plan_from_text(PLAN.replace("DEVICES", "1").replace("BATCH", "16") + more, "plan")


def devices_at(*degrees: float, samples: int = 10) -> np.ndarray:
    return np.tile(np.asarray(degrees), (samples, 1))


def test_heat_that_lasts_halts_a_run_until_it_has_cooled_by_some_degrees() -> None:
    plan = plan_with()
    halt = heat_action(plan, devices_at(60, 86))
    assert halt is not None
    assert (halt.action, halt.cause) == ("pause", "heat")
    assert "GPU 1 is at 86 C" in halt.reason
    assert heat_action(plan, devices_at(60, 84)) is None
    assert heat_action(plan, np.vstack([devices_at(60, 90, samples=3), devices_at(60, 80, samples=1)])) is None
    assert heat_action(plan, devices_at(60, 80), paused_seconds=60.0) is None
    cooled = heat_action(plan, devices_at(60, 77), paused_seconds=60.0)
    assert cooled is not None
    assert cooled.action == "resume"


def test_a_run_that_never_cools_or_tells_nothing_goes_on_after_the_longest_pause() -> None:
    for now in (devices_at(88), devices_at(np.nan), np.empty((0, 0))):
        assert heat_action(plan_with(), now, paused_seconds=60.0) is None
        move = heat_action(plan_with(), now, paused_seconds=1801.0)
        assert move is not None
        assert move.action == "resume"


def test_a_plan_that_only_warns_of_heat_is_not_halted() -> None:
    assert heat_action(plan_with("recovery: {heat: warn}"), devices_at(99)) is None
    assert heat_action(plan_with(), devices_at(80), is_throttled=True) is not None
    assert heat_action(plan_with(), devices_at(70), is_throttled=True) is None


@settings(max_examples=40, deadline=None)
@given(st.floats(30, 120), st.floats(0.1, 20))
def test_what_resumed_a_run_does_not_halt_it_at_once(start: float, rise: float) -> None:
    plan = plan_with()
    resumed = heat_action(plan, devices_at(start), paused_seconds=10.0)
    if resumed is not None:
        assert heat_action(plan, devices_at(start)) is None
    if heat_action(plan, devices_at(start)) is not None:
        assert heat_action(plan, devices_at(start + rise)) is not None


def test_a_laptop_goes_on_with_fewer_threads() -> None:
    plan, half = plan_with(), Supply(False, 0.6)
    found = battery_plan(plan, half, 8)
    assert found is not None
    assert (found.pause_below, found.threads, found.most_steps) == (0.2, 4, None)
    assert found.reason == "on battery: 4 of 8 threads, halted below 20 % of charge"
    assert found.environment()["OMP_NUM_THREADS"] == "4"
    assert battery_plan(plan, Supply(True, 0.6), 8) is None
    assert battery_plan(plan, Supply(None), 8) is None
    given_ones = plan_with("recovery: {battery: {pause_below: 0.5, threads: 2, most_steps: 10}}")
    asked = battery_plan(given_ones, half, 8)
    assert asked is not None
    assert (asked.threads, asked.most_steps) == (2, 10)


def test_a_run_on_battery_is_halted_by_charge_or_steps_and_goes_on_with_power_alone() -> None:
    plan = BatteryPlan(0.2, 4, 600, "")
    assert battery_action(plan, Supply(False, 0.5), 10, is_paused=False) is None
    low = battery_action(plan, Supply(False, 0.19), 10, is_paused=False)
    many = battery_action(plan, Supply(False, 0.5), 600, is_paused=False)
    assert low is not None
    assert many is not None
    assert (low.action, many.action) == ("pause", "pause")
    assert battery_action(plan, Supply(False, 0.9), 0, is_paused=True) is None
    back = battery_action(plan, Supply(True, 0.1), 0, is_paused=True)
    assert back is not None
    assert back.action == "resume"
    assert battery_action(plan, Supply(None), 0, is_paused=False) is None


class Degrees(RunSamples):
    """Samples of one device at a temperature."""

    now = 60.0

    def of_gpus(self, reading: str) -> np.ndarray:
        assert reading == "temperature_celsius"
        return devices_at(self.now)


def test_a_run_goes_on_when_nothing_is_left_that_halted_it() -> None:
    samples, halting = Degrees(), PausePolicy(plan_with(), cores=8)
    mains, low = Supply(True, 1.0), Supply(False, 0.1)
    assert halting.look(0.0, samples, supply=mains) is None
    samples.now = 90.0
    first = halting.look(1.0, samples, supply=low)
    assert first is not None
    assert (first.action, halting.is_halted) == ("pause", True)
    assert set(halting.since) == {"heat", "battery"}
    assert halting.environment()["OMP_NUM_THREADS"] == "4"
    samples.now = 60.0
    assert halting.look(2.0, samples, supply=low) is None
    assert set(halting.since) == {"battery"}
    last = halting.look(3.0, samples, supply=mains)
    assert last is not None
    assert (last.action, last.cause) == ("resume", "battery")
    assert halting.since == {}
    assert last.reason == "mains power is back"


def test_steps_on_battery_are_counted_from_when_the_power_went() -> None:
    more = "recovery: {battery: {pause_below: 0.2, most_steps: 10}}"
    samples, halting = Degrees(), PausePolicy(plan_with(more), cores=8)
    assert halting.look(0.0, samples, supply=Supply(True, 1.0), step=100.0) is None
    assert halting.look(1.0, samples, supply=Supply(False, 0.9), step=109.0) is None
    halt = halting.look(2.0, samples, supply=Supply(False, 0.9), step=110.0)
    assert halt is not None
    assert halt.action == "pause"


@pytest.mark.parametrize("drop", [0.01, 0.1])
def test_a_run_takes_as_many_steps_on_battery_as_the_charge_lasts_for(drop: float) -> None:
    samples, halting = Degrees(), PausePolicy(plan_with(), cores=8)
    charges = np.arange(0.95, 0.0, -drop).tolist()
    halts = [halting.look(at, samples, supply=Supply(False, left), step=1e4 * at) for at, left in enumerate(charges)]
    (halt,) = [(left, halt) for left, halt in zip(charges, halts, strict=True) if halt is not None]
    assert halt[0] == next(left for left in charges if left < 0.2)
    assert halt[1].cause == "battery"


def test_a_machine_without_a_battery_is_on_mains() -> None:
    none = missing("supplies", "no battery")
    power = Power(none, none, detected(True, "supplies"), none, none, none)
    assert supply_of(power) == Supply(True, None)


def test_saving_that_costs_little_keeps_the_modes_interval_and_slow_saving_stretches_it() -> None:
    mode = float(str(answered().plan.recovery.checkpoint_every))
    quick = save_interval(answered(), 1.0, 0.5)
    assert quick is not None
    assert quick.seconds == mode
    assert quick.steps == round(mode / 0.5)
    slow = save_interval(answered(), mode)
    assert slow is not None
    assert slow.seconds == pytest.approx(19 * mode)
    assert slow.steps is None


def test_many_devices_save_as_often_as_loses_least() -> None:
    many = answered(16384)
    between = seconds_between_failures(many)
    assert between == pytest.approx(50_000 * 3600 / 16384)
    found = save_interval(many, 10.0)
    assert found is not None
    assert found.seconds == pytest.approx(np.sqrt(2 * 10.0 * between) - 10.0)
    assert "Young, Daly" in found.reason


def test_an_interval_of_the_plan_is_kept_and_a_changed_plan_keeps_what_the_mode_chose() -> None:
    told = save_interval(answered(1, "recovery: {checkpoint_every: 10min}"), 400.0)
    assert told is not None
    assert (told.seconds, told.reason) == (600.0, "set in the plan")
    step = next_step(answered(), Failure("out_of_memory", "no memory", "device"))
    assert step is not None
    assert save_interval(step.answer, 1.0) == save_interval(answered(), 1.0)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.1, 5000), st.floats(0.1, 5000))
def test_slower_saving_never_saves_more_often(one: float, other: float) -> None:
    less, more = (save_interval(answered(), seconds) for seconds in sorted((one, other)))
    assert less is not None
    assert more is not None
    assert less.seconds <= more.seconds * (1 + 1e-9)


def test_a_plan_tells_from_when_on_heat_power_memory_and_losses_are_told() -> None:
    shipped = load_catalog().detectors
    watch = answered().plan.watch
    found = detectors_of(shipped, watch)
    assert found["hot"].thresholds["celsius"] == 85
    assert found["memory_full"].thresholds["share"] == watch.memory_share
    assert found["power"].thresholds["share"] == watch.power_share
    assert found["hot"].thresholds["samples"] == shipped["hot"].thresholds["samples"]
    assert detectors_of(shipped, None) == dict(shipped)
