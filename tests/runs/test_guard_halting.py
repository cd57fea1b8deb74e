"""Processes of a guarded run stand still while it is too hot or the battery too empty, and go on by themselves."""

from __future__ import annotations

import os
import sys
import time
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.runs.guard.attempt import Attempt
from capacity_tui.engine.runs.guard.pauses import PauseControl, Supply, supply_now
from capacity_tui.engine.solve import answer

PLAN = """
task: train
model: {name: llama-3.2-1b}
training: {seq_len: 1024, micro_batch: 1, global_batch: 8, steps: 200}
hardware: {name: h100-sxm-80gb, devices: 1}
watch: {temperature_c: 80}
recovery: {heat: pause, battery: {pause_below: 0.3}}
"""


class Watched:
    """A run that is halted, with readings one can set."""

    def __init__(self, attempt):
        self.attempt, self.told = attempt, []
        self.degrees, self.supply = 60.0, Supply(None)
        plan = answer(plan_from_text(PLAN, "plan.yaml")).plan
        self.halts = PauseControl(attempt, plan, self.told.append, lambda: self.supply)

    def look(self, halted):
        """Look once; each process stands still then, or goes on, as soon as the system has passed the signal on."""
        samples = SimpleNamespace(of_gpus=lambda _: np.full((50, 1), self.degrees))
        curve = SimpleNamespace(step=1.0, passed_seconds=lambda: (np.empty(0), np.empty(0)))
        self.halts._asked_at = -np.inf
        self.halts.look(SimpleNamespace(samples=samples, curve=curve), SimpleNamespace(active=()))
        until = time.monotonic() + 60
        while time.monotonic() < until and self.standing() != {halted}:
            time.sleep(0.01)
        assert self.standing() == {halted}

    def standing(self):
        """Return whether each process stands still."""
        return {process.status() == psutil.STATUS_STOPPED for process in self.attempt.processes()}


@pytest.fixture
def watched(tmp_path):
    attempt = Attempt(tmp_path / "attempt-1", "halting", 1)
    attempt.start([sys.executable, "-c", "import time; time.sleep(60)"], os.environ, tmp_path, 0)
    yield Watched(attempt)
    attempt.end(0.1)


def test_a_hot_device_halts_the_run_until_it_has_cooled(watched):
    watched.look(halted=False)
    watched.degrees = 90.0
    watched.look(halted=True)
    watched.degrees = 79.0
    watched.look(halted=True)
    watched.degrees = 50.0
    watched.look(halted=False)
    assert [(event["event"], event["cause"]) for event in watched.told] == [("pause", "heat"), ("resume", "heat")]
    assert 0 < watched.halts.seconds < 60


def test_an_empty_battery_halts_it_until_there_is_power(watched):
    watched.supply = Supply(False, 0.2)
    watched.look(halted=True)
    watched.supply = Supply(True, 0.2)
    watched.look(halted=False)


def test_this_machine_tells_where_its_power_comes_from():
    assert supply_now().on_mains in (True, False, None)
