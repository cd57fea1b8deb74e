"""What detection promises: no connection, no waiting for what hangs, little cost while sampling."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

LOCAL = ("AF_UNIX", "AF_NETLINK")


def test_detection_opens_no_connection(tmp_path):
    """Under strace, with children, so that no tool that is called connects either."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    log = tmp_path / "calls"
    command = [sys.executable, "-m", "capacity_tui.tui", "detect", "--profile-only"]
    traced = ["strace", "-f", "-e", "trace=connect,sendto,bind", "-o", str(log), *command]
    done = subprocess.run(traced, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0 and "ptrace" in done.stderr.lower():
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    calls = [line for line in log.read_text().splitlines() if "sa_family=" in line]
    assert [line for line in calls if not any(family in line for family in LOCAL)] == []


HANGING = """
import json, time
from dataclasses import replace
from capacity_tui.engine.machine.vendors.amd import AMD
import importlib
detection = importlib.import_module("capacity_tui.engine.machine.detect")
hung = replace(AMD, probe=lambda host: time.sleep(30))
detection.probe_networks = lambda host: time.sleep(30)
started = time.perf_counter()
machine = detection.detect(timeout_seconds=2, vendors=[hung])
probes = {probe.name: [probe.outcome, probe.detail] for probe in machine.probes}
print(json.dumps({"seconds": time.perf_counter() - started, "probes": probes, "cpu": machine.cpu.model.value}))
"""


def test_probes_that_hang_delay_nothing_and_are_named():
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=25, check=True)
    assert time.perf_counter() - started < 8  # the interpreter does not wait for them either
    found = json.loads(done.stdout)
    assert found["seconds"] < 3
    assert found["cpu"]
    late = {name: detail for name, (outcome, detail) in found["probes"].items() if outcome == "timed out"}
    assert late == {"amd": "no answer within 2 s", "networks": "no answer within 2 s"}


SAMPLING = """
import time
from capacity_tui.engine.machine.sample import Sampler
sampler = Sampler()
sampler.sample()
time.sleep(0.3)
before = time.process_time()
for _ in range(8):
    sampler.sample()
    time.sleep(0.05)
print((time.process_time() - before) / 8)
"""


@pytest.mark.parametrize("mode", ["eight", "none"])
def test_sampling_costs_less_than_a_hundredth_of_a_core(mode, driver_library):
    settings = {**os.environ, "LD_LIBRARY_PATH": str(driver_library), "FAKE_NVML": mode}
    if mode == "none":
        del settings["LD_LIBRARY_PATH"]
    done = subprocess.run(
        [sys.executable, "-c", SAMPLING], env=settings, capture_output=True, text=True, timeout=30, check=True
    )
    assert float(done.stdout) < 0.01  # of the second between samples


def test_a_profile_loads_neither_numpy_nor_the_screen(tmp_path):
    code = (
        "import sys; from capacity_tui.tui.cli import main\n"
        "try:\n    main(['detect', '--profile-only'])\n"
        "finally:\n    print(sorted({'numpy', 'pydantic', 'textual'} & set(sys.modules)), file=sys.stderr)\n"
    )
    environment = {**os.environ, "CAPACITY_TUI_DATA": str(tmp_path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.strip() == "[]"
