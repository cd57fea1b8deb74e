"""A recording tells of a machine what the machine itself does, and writes nowhere but below its own folder."""

import subprocess

import pytest

from capacity_tui.engine.errors import HardwareError
from capacity_tui.engine.machine.detect import detect
from capacity_tui.engine.machine.recording import RECORDING_SCRIPT, recorded_host


def test_a_shell_records_what_detection_needs(tmp_path):
    done = subprocess.run(["sh", "-s"], input=RECORDING_SCRIPT, capture_output=True, text=True, check=True)
    there, here = detect(host=recorded_host(done.stdout, tmp_path)), detect()
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


def test_a_node_with_throttled_gpus(tmp_path):
    columns = (
        "name, uuid, driver_version, compute_cap, memory.total [MiB], memory.used [MiB], clocks_throttle_reasons.active"
    )
    rows = "\n".join(
        f"NVIDIA H100 80GB HBM3, GPU-{n}, 570.86.15, 9.0, 81559 MiB, 1 MiB, 0x{mask:016X}"
        for n, mask in enumerate((1, 0x44))
    )
    text = f"=== /proc/meminfo\nMemTotal: 1000000 kB\n$ nvidia-smi --query-gpu=name\n{columns}\n{rows}\n"
    first, second = detect(host=recorded_host(text, tmp_path)).accelerators
    assert first.catalogue_id.value == "h100-sxm-80gb"
    assert (first.throttle.value, second.throttle.value) == ((), ("power cap", "thermal (hardware)"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "=== /../../outside\nx\n",
        "=== /etc/x\n--> /../y /etc\n",
    ],
)
def test_what_is_no_recording_is_refused(text, tmp_path):
    root = tmp_path / "a" / "b"
    with pytest.raises(HardwareError):
        recorded_host(text, root)
    assert not (tmp_path / "outside").exists()
