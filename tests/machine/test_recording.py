"""A recording tells of a machine what the machine itself does, and writes nowhere but below its own folder."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from recorded import RECORDINGS, replay

from capacity_tui.engine.errors import HardwareError
from capacity_tui.engine.machine import RECORDING_SCRIPT, detect, machine_as_dict, recorded_host
from capacity_tui.engine.machine.recording import RecordedFiles


def test_a_shell_records_what_detection_needs():
    done = subprocess.run(["sh", "-s"], input=RECORDING_SCRIPT, capture_output=True, text=True, check=True)
    there, here = detect(host=recorded_host(done.stdout)), detect()
    assert not done.stderr
    for part in ("model", "sockets", "physical_cores", "threads", "simd", "caches", "catalogue_id"):
        assert getattr(there.cpu, part) == getattr(here.cpu, part), part
    assert there.memory.total_bytes == here.memory.total_bytes
    told = [[(card.name, card.kind, card.speed_mbps.value) for card in each.networks] for each in (there, here)]
    assert told[0] == told[1]
    assert there.container == here.container
    assert [disk.mount for disk in there.disks] == [disk.mount for disk in here.disks]
    assert there.platform.architecture == here.platform.architecture
    assert not there.troubles


def test_a_node_with_throttled_gpus():
    columns = (
        "name, uuid, driver_version, compute_cap, memory.total [MiB], memory.used [MiB], clocks_throttle_reasons.active"
    )
    rows = "\n".join(
        f"NVIDIA H100 80GB HBM3, GPU-{n}, 570.86.15, 9.0, 81559 MiB, 1 MiB, 0x{mask:016X}"
        for n, mask in enumerate((1, 0x44))
    )
    text = f"=== /proc/meminfo\nMemTotal: 1000000 kB\n$ nvidia-smi --query-gpu=name\n{columns}\n{rows}\n"
    first, second = detect(host=recorded_host(text)).accelerators
    assert first.catalogue_id.value == "h100-sxm-80gb"
    assert (first.throttle.value, second.throttle.value) == ((), ("power cap", "thermal (hardware)"))


@pytest.mark.parametrize(
    "text", ["", "hello\n", "=== /../../outside\nx\n", "=== /etc/x\n--> /../y /etc\n", "=== etc/x\n1\n"]
)
def test_what_is_no_recording_is_refused(text):
    with pytest.raises(HardwareError):
        recorded_host(text)


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDINGS.glob("*.txt")))
def test_a_recording_tells_the_same_as_its_files_on_a_disk(name, tmp_path):
    on_disk = replay(name, tmp_path)
    in_memory = replace(
        on_disk, root=Path("/"), recorded=recorded_host((RECORDINGS / f"{name}.txt").read_text()).recorded
    )
    first, second = (machine_as_dict(detect(host=host)) for host in (on_disk, in_memory))
    for found in (first, second):
        del found["probes"], found["benchmarked"]
    assert first == second


def test_links_lead_to_the_files_of_a_device():
    files = RecordedFiles(
        {"/sys/class/drm/card0/device/vendor": "0x10de\n"},
        {"/sys/class/drm/card0/device": "../../../devices/pci0000:00/0000:01:00.0", "/a": "/b", "/b": "/a"},
    )
    assert files.read("/sys/devices/pci0000:00/0000:01:00.0/vendor") == b"0x10de\n"
    assert str(files.target("/sys/class/drm/card0/device")) == "/sys/devices/pci0000:00/0000:01:00.0"
    assert set(files.names("/sys/class/drm/card0")) == {"device"}
    with pytest.raises(OSError, match="directory"):
        files.read("/sys/class/drm/card0/device")
    assert not files.exists("/a"), "links that lead to each other lead nowhere"
