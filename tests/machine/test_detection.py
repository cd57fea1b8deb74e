"""Detection as a whole: quick, quiet, and never held up by what hangs or breaks."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from recorded import GIB, replay

from capacity_tui.engine.machine import (
    Fact,
    Host,
    detect,
    detected,
    machine_as_dict,
    missing,
    probe_memory,
    probe_power,
)
from capacity_tui.engine.machine.disk import probe_swap
from capacity_tui.engine.machine.probing import NotPresentError, Running
from capacity_tui.engine.machine.vendors.amd import AMD
from capacity_tui.engine.machine.vendors.apple import probe_apple_cpu, probe_apple_gpu
from capacity_tui.engine.machine.vendors.intel import INTEL

MAC = {
    "sysctl hw machdep.cpu": (
        "machdep.cpu.brand_string: Apple M4 Max\nhw.packages: 1\nhw.physicalcpu: 16\nhw.logicalcpu: 16\n"
        "hw.perflevel0.physicalcpu: 12\nhw.perflevel1.physicalcpu: 4\nhw.perflevel0.l2cachesize: 16777216\n"
        "hw.optional.arm.FEAT_BF16: 1\nhw.optional.arm.FEAT_SME: 1\n"
    ),
    "sysctl -n hw.memsize": "137438953472\n",
    "sysctl -n vm.swapusage": "total = 2048.00M  used = 1024.00M  free = 1024.00M  (encrypted)\n",
    "vm_stat": (
        "Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPages free: 100000.\n"
        "Pages inactive: 50000.\nPages speculative: 2000.\n"
    ),
    "system_profiler SPDisplaysDataType -json": json.dumps(
        {"SPDisplaysDataType": [{"sppci_model": "Apple M4 Max", "sppci_cores": "40"}]}
    ),
    "pmset -g batt": "Now drawing from 'AC Power'\n -InternalBattery-0 (id=1)\t81%; charging\n",
}


@pytest.fixture
def mac(tmp_path):
    def run(words, seconds):
        if " ".join(words) not in MAC:
            raise FileNotFoundError(words[0])
        return MAC[" ".join(words)]

    return Host(root=tmp_path, system="Darwin", architecture="arm64", environment={}, run=run)


def test_this_machine_is_detected():
    machine = detect()
    assert machine.memory.total_bytes.value
    assert {"cpu", "memory", "disks", "nvidia", "amd"} <= {probe.name for probe in machine.probes}


def test_a_crashing_probe_is_named_and_the_rest_goes_on(monkeypatch, tmp_path):
    def crash(host):
        raise ZeroDivisionError("nothing there")

    monkeypatch.setattr(sys.modules[detect.__module__], "probe_disks", crash)
    machine = detect(host=replay("hybrid_laptop", tmp_path))
    probe = next(probe for probe in machine.probes if probe.name == "disks")
    assert (probe.outcome, probe.detail) == ("failed", "ZeroDivisionError: nothing there")
    assert machine.disks == ()
    assert machine.memory.total_bytes.value


def test_a_hanging_probe_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules[detect.__module__], "probe_power", lambda host: time.sleep(60))
    started = time.perf_counter()
    machine = detect(timeout_seconds=0.3, host=replay("hybrid_laptop", tmp_path))
    assert time.perf_counter() - started < 30  # the probe hangs for 60
    assert machine.power.on_mains.reason == "timed out: no answer within 0.3 s"


def test_a_denied_probe_says_what_was_denied(tmp_path):
    def deny(host):
        raise PermissionError(13, "Permission denied", "/dev/kfd")

    machine = detect(host=replay("hybrid_laptop", tmp_path), vendors=[replace(AMD, probe=deny)])
    probe = next(probe for probe in machine.probes if probe.name == "amd")
    assert (probe.outcome, probe.detail) == ("denied", "Permission denied: /dev/kfd")


def test_cancelling_returns_at_once(tmp_path):
    hung = replace(INTEL, probe=lambda host: time.sleep(60))
    cancelled = threading.Event()
    threading.Timer(0.1, cancelled.set).start()
    started = time.perf_counter()
    machine = detect(host=replay("hybrid_laptop", tmp_path), cancelled=cancelled, vendors=[hung])
    assert time.perf_counter() - started < 30  # the probe hangs for 60
    assert next(probe for probe in machine.probes if probe.name == "intel").outcome == "cancelled"


def test_the_program_ends_while_a_probe_hangs():
    script = (
        "import time\n"
        "import importlib\nd = importlib.import_module('capacity_tui.engine.machine.detect')\n"
        "d.probe_disks = lambda host: time.sleep(600)\n"
        "d.detect(timeout_seconds=0.2)\n"
    )
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    assert time.perf_counter() - started < 120  # the probe hangs for 600


def test_a_dead_share_does_not_hide_the_disks(tmp_path):
    def space(mount):
        if mount == "/datasets":
            time.sleep(60)
        raise PermissionError(13, "Permission denied", mount)

    disks = {disk.mount: disk for disk in detect(host=replay("epyc_server", tmp_path, space=space)).disks}
    assert disks["/datasets"].total_bytes.reason == "no answer within 1 s"
    assert "Permission denied" in disks["/"].total_bytes.reason


def test_no_connection_is_opened(monkeypatch):
    import socket

    def refuse(*arguments, **options):
        raise AssertionError("detection opened a socket")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert all(probe.outcome in ("found", "absent") for probe in detect().probes)


def test_a_mac(mac):
    cpu, memory, power = probe_apple_cpu(mac), probe_memory(mac), probe_power(mac)
    assert (cpu.model.value, cpu.catalogue_id.value) == ("Apple M4 Max", "apple-m4-max-cpu")
    assert (cpu.performance_cores.value, cpu.efficiency_cores.value) == (12, 4)
    assert cpu.simd.value == ("NEON", "BF16", "SME")
    assert memory.total_bytes.value == 128 * GIB
    assert memory.available_bytes.value == 152000 * 16384
    assert probe_swap(mac).free_bytes.value == GIB
    assert (power.battery_percent.value, power.on_mains.value) == (81, True)


def test_a_macs_gpu_shares_the_memory(mac):
    (gpu,) = probe_apple_gpu(mac).accelerators
    assert gpu.catalogue_id.value == "apple-m4-max-40"
    assert gpu.integrated.value is True
    assert gpu.memory_total_bytes.value == pytest.approx(107.52 * GIB)  # as llama.cpp prints it of macOS 26
    assert gpu.memory_total_bytes.source == (
        "macOS lets the GPU use 107.5 GiB of 128.0 GiB (sysctl iogpu.wired_limit_mb sets it)"
    )
    assert gpu.power_watts.reason == "macOS does not tell"


def test_a_mac_without_its_tools(tmp_path):
    def run(words, seconds):
        raise subprocess.TimeoutExpired(words, seconds)

    bare = Host(root=tmp_path, system="Darwin", architecture="arm64", environment={}, run=run)
    assert probe_apple_cpu(bare).model.reason == "no answer within 3 s"
    with pytest.raises(NotPresentError, match="no answer"):
        probe_apple_gpu(bare)


def test_json_keeps_the_provenance_of_every_value(tmp_path):
    data = json.loads(json.dumps(machine_as_dict(detect(host=replay("container_v2", tmp_path)))))
    assert data["memory"]["total_bytes"] == {
        "value": 16 * GIB,
        "origin": "detected",
        "source": "/sys/fs/cgroup/memory.max",
    }
    assert data["power"]["battery_percent"]["reason"] == "no battery"
    assert data["power"]["on_mains"]["origin"] == "assumed"


def test_a_missing_value_needs_a_reason():
    with pytest.raises(ValueError, match="needs a reason"):
        Fact(None, "detected", "/proc/nothing")
    assert str(missing("NVML", "no permission")) == "n/a (no permission)"
    assert str(detected(3, "NVML")) == "3"
    assert missing("a", "first").or_else(missing("b", "second")).reason == "first"
    assert missing("a", "first").or_else(detected(0, "b")).value == 0


def test_a_probe_reports_its_time():
    found, probe = Running("nap", lambda: time.sleep(0.05) or 7, 1.0).wait()
    assert found == 7
    assert 0.05 <= probe.seconds < 0.5
