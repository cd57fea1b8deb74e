"""NVIDIA GPUs through the real bindings and a driver library compiled for the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

DETECT = """
import json, sys
from capacity_tui.engine.machine.detect import detect
from capacity_tui.engine.machine.detect import machine_as_dict
print(json.dumps(machine_as_dict(detect())))
"""
SAMPLE = """
import time
from capacity_tui.engine.machine.sample import Sampler
sampler = Sampler()
started = time.monotonic()
samples = [(sampler.sample(), time.sleep(0.02))[0] for _ in range(4)]
print(time.monotonic() - started)
print(samples[-1].gpus)
sampler.close()
"""


@pytest.fixture
def run(driver_library):
    def start(mode: str, script: str = DETECT, **environment: str) -> str:
        settings = {**os.environ, "LD_LIBRARY_PATH": str(driver_library), "FAKE_NVML": mode, **environment}
        done = subprocess.run(
            [sys.executable, "-c", script], env=settings, capture_output=True, text=True, check=True, timeout=30
        )
        return done.stdout

    return start


UNDER_LOAD = """
from capacity_tui.engine.machine.sample import GpuSensors
from capacity_tui.engine.machine.probing import Host
sample = GpuSensors(Host(), detailed=True).read()[0]
print(sample.throttle, sample.power_limit_watts, sample.memory_activity_percent.value, sample.holders)
"""


def gpus(run, mode, **environment):
    machine = json.loads(run(mode, **environment))
    return machine["accelerators"], machine


def value(record, name):
    return record[name]["value"]


def test_one_gpu_is_described_with_its_sources(run):
    (gpu,), machine = gpus(run, "one")
    assert value(gpu, "name") == "NVIDIA H100 80GB HBM3"
    assert value(gpu, "catalogue_id") == "h100-sxm-80gb"
    assert gpu["memory_total_bytes"] == {
        "value": 81559 * 2**20,
        "origin": "detected",
        "source": "NVML nvmlDeviceGetMemoryInfo",
    }
    assert value(gpu, "driver") == "570.133.20"
    assert value(gpu, "runtime") == "12.8"
    assert value(gpu, "compute_capability") == "9.0"
    assert value(gpu, "power_watts") == pytest.approx(123.456)
    assert value(gpu, "power_limit_watts") == 700
    assert (value(gpu["pcie"], "generation"), value(gpu["pcie"], "generation_max")) == (1, 5)
    assert machine["topology"]["links"]["reason"] == "a single GPU"


def test_holders_of_memory_are_named_as_far_as_the_driver_tells(run):
    (gpu,), _ = gpus(run, "one")
    first, second = value(gpu, "processes")
    assert (first["pid"], value(first, "memory_bytes")) == (1, 2**30)
    assert value(first, "name") == Path("/proc/1/comm").read_text().strip()
    assert value(second, "memory_bytes") is None
    assert second["memory_bytes"]["reason"]


def test_serials_stay_private(run):
    assert "secret" not in run("one")


def test_eight_gpus_on_switches_reach_each_other_over_all_links(run):
    found, machine = gpus(run, "eight")
    assert len(found) == 8
    assert value(found[3], "links") == [{"kind": "NVLink", "peer": None, "links": 18}]
    matrix = value(machine["topology"], "links")
    assert matrix[2][2] == "X"
    assert {cell for row in matrix for cell in row} == {"X", "NV18"}


def test_a_direct_bridge_names_the_other_card(run):
    found, machine = gpus(run, "pair")
    assert value(found[0], "links") == [{"kind": "NVLink", "peer": 1, "links": 4}]
    assert value(found[1], "links") == [{"kind": "NVLink", "peer": 0, "links": 4}]
    assert value(machine["topology"], "links") == [["X", "NV4"], ["NV4", "X"]]
    assert value(found[0], "catalogue_id") == "rtx-3090"
    assert found[0]["mig_enabled"]["reason"] == "not supported by this device"


def test_mig_instances_are_listed(run):
    (gpu,), _ = gpus(run, "mig")
    assert value(gpu, "mig_enabled") is True
    assert [slice_["memory_bytes"] for slice_ in value(gpu, "mig_instances")] == [40448 * 2**20] * 2
    assert "3g.40gb" in value(gpu, "mig_instances")[0]["name"]


def test_a_lost_gpu_is_listed_with_what_to_do(run):
    found, _ = gpus(run, "lost")
    assert value(found[0], "catalogue_id") == "h100-sxm-80gb"
    assert value(found[1], "memory_total_bytes") is None
    assert found[1]["memory_total_bytes"]["reason"] == "the GPU is lost; it needs a reset or a reboot"


def test_a_hanging_gpu_hides_no_other_and_does_not_hold_up_the_exit(run):
    started = time.monotonic()
    found, machine = gpus(run, "hang")
    assert time.monotonic() - started < 120  # the driver hangs for 600
    assert value(found[0], "catalogue_id") == "h100-sxm-80gb"
    assert value(found[1], "name") is None
    assert "no answer within" in found[1]["name"]["reason"]
    assert machine["topology"]["links"]["reason"] == "a GPU does not answer"
    assert value(machine["memory"], "total_bytes") > 0


def test_missing_sensors_are_missing_not_zero(run):
    (gpu,), _ = gpus(run, "bare")
    for name in ("power_watts", "temperature_celsius", "clock_mhz", "processes"):
        assert value(gpu, name) is None
        assert gpu[name]["reason"] == "not supported by this device"
    assert value(gpu, "memory_total_bytes") == 81559 * 2**20


def test_unified_memory_counts_main_memory(run):
    (gpu,), machine = gpus(run, "unified")
    assert value(gpu, "integrated") is True
    assert value(gpu, "memory_total_bytes") == value(machine["memory"], "total_bytes")
    assert value(gpu, "catalogue_id") == "gb10-dgx-spark"


@pytest.mark.parametrize(
    ("mode", "detail"),
    [("empty", "the NVIDIA driver knows no GPU"), ("unloaded", "the NVIDIA driver is installed but not loaded")],
)
def test_no_gpu_says_why(run, mode, detail):
    found, machine = gpus(run, mode)
    probe = next(probe for probe in machine["probes"] if probe["name"] == "nvidia")
    assert found == []
    assert (probe["outcome"], probe["detail"]) == ("absent", detail)


def test_cuda_visible_devices_hides_gpus_from_programs(run):
    found, _ = gpus(run, "eight", CUDA_VISIBLE_DEVICES="0,GPU-secret-3,-1,5")
    assert [value(gpu, "visible") for gpu in found] == [True, False, True, *[False] * 5]


def test_limits_and_what_a_generation_can(run):
    (gpu,), machine = gpus(run, "one")
    assert (value(gpu, "power_default_watts"), value(gpu, "temperature_limit_celsius")) == (650, 87)
    assert value(gpu, "throttle") == ["power cap"]
    assert value(gpu, "matrix_units") == "tensor cores, 4th generation"
    assert "fp8" in value(gpu, "precisions")
    assert machine["stacks"][0] == {"name": "CUDA driver", "version": gpu["runtime"]}


def test_slices_carry_their_share_of_the_gpu(run):
    (gpu,), _ = gpus(run, "mig")
    assert [slice_["compute_share"] for slice_ in value(gpu, "mig_instances")] == [3 / 7] * 2


@pytest.mark.parametrize(
    ("listed", "slices"), [("0", [True, True]), ("MIG-secret-101", [False, True]), ("MIG-other", [False, False])]
)
def test_slices_can_be_named_one_by_one(run, listed, slices):
    (gpu,), _ = gpus(run, "mig", CUDA_VISIBLE_DEVICES=listed)
    assert [slice_["visible"] for slice_ in value(gpu, "mig_instances")] == slices
    assert value(gpu, "visible") is any(slices)


def test_samples_carry_what_graphs_show_and_no_more(run):
    _, reading = run("one", SAMPLE.replace("samples[-1].gpus", "samples[-1].gpus.value[0]")).splitlines()
    for part in ("value=87.0", "value=123.456", "value=41.0", "graphs do without it"):
        assert part in reading


def test_samples_of_a_run_say_what_holds_the_clock_down_and_who_holds_memory(run):
    told = run("one", UNDER_LOAD)
    assert "('power cap',)" in told
    assert "700.0" in told
    assert "(1, 1073741824), (999999, None)" in told


def test_sampling_never_waits_for_a_hanging_driver(run):
    started = time.monotonic()
    seconds, reading = run("hang", SAMPLE).splitlines()
    assert float(seconds) < 1
    assert reading == "n/a (not answered yet)"
    assert time.monotonic() - started < 120  # the driver hangs for 600


def test_a_machine_without_the_driver_does_not_load_its_bindings(run):
    script = "import sys; from capacity_tui.engine.machine import detect; detect(); print('pynvml' in sys.modules)"
    assert run("one", script).strip() == "True"
    installed = subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libnvidia-ml.so.1')"], check=False)
    assert run("one", script, LD_LIBRARY_PATH="").strip() == str(installed.returncode == 0)
