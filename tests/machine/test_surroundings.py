"""Memory modules, swap, power, processes and software stacks, from what the firmware and the kernel write."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import replay, write

from capacity_tui.engine.machine import Host, detect, probe_memory, probe_power
from capacity_tui.engine.machine.disk import probe_swap
from capacity_tui.engine.machine.main_memory import parse_memory_devices, probe_memory_modules
from capacity_tui.engine.machine.system import probe_processes

GIB = 1 << 30


@pytest.fixture
def empty(tmp_path) -> Host:
    return replay("graviton3", tmp_path)


def memory_device(slot: str, bank: str, mebibytes: int, speed: int, configured: int, width: int = 64) -> bytes:
    """Return an SMBIOS structure of type 17 as firmware 3.2 and later writes it."""
    extended = mebibytes >= 0x7FFF
    area = bytearray(0x54)
    struct.pack_into("<BBH", area, 0, 17, len(area), 0x1100)
    struct.pack_into("<HHH", area, 0x08, width + 8, width, 0x7FFF if extended else mebibytes)
    area[0x10], area[0x11], area[0x12] = 1, 2, 0x22
    struct.pack_into("<H", area, 0x15, speed)
    struct.pack_into("<I", area, 0x1C, mebibytes if extended else 0)
    struct.pack_into("<H", area, 0x20, configured)
    return bytes(area) + slot.encode() + b"\0" + bank.encode() + b"\0\0"


def table(*structures: bytes) -> bytes:
    other = struct.pack("<BBH", 1, 4, 0x0100) + b"a maker\0\0"
    end = struct.pack("<BBH", 127, 4, 0xFEFF) + b"\0\0"
    return other + b"".join(structures) + end


def write_table(host: Host, content: bytes) -> None:
    place = host.root / "sys/firmware/dmi/tables/DMI"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def test_modules_with_channels_and_bandwidth(empty):
    modules = [
        memory_device(f"DIMM {number}", f"P0 CHANNEL {channel}", 65536, 5600, 4800)
        for channel in "ABCD"
        for number in range(2)
    ]
    write_table(empty, table(*modules, memory_device("DIMM 9", "P0 CHANNEL E", 0, 0, 0)))
    found = probe_memory_modules(empty)
    assert len(found.modules.value) == 8
    first = found.modules.value[0]
    assert (first.size_bytes, first.kind, first.speed_mts) == (64 * GIB, "DDR5", 4800)
    assert found.channels.value == 4
    assert found.bandwidth.value == 4 * 4800e6 * 8


def test_small_modules_and_slots_that_name_the_channel(empty):
    write_table(
        empty,
        table(
            memory_device("ChannelA-DIMM0", "BANK 0", 8192, 3200, 3200),
            memory_device("ChannelB-DIMM0", "BANK 1", 8192, 3200, 3200),
        ),
    )
    found = probe_memory_modules(empty)
    assert [module.size_bytes for module in found.modules.value] == [8 * GIB] * 2
    assert found.channels.value == 2


def test_a_virtual_machine_tells_no_speed(empty):
    write_table(empty, table(memory_device("DIMM 0", "", 16384, 0, 0)))
    found = probe_memory_modules(empty)
    assert found.modules.value[0].speed_mts is None
    assert found.bandwidth.reason == "speed or width of the modules is not reported"


def test_memory_controllers_stand_in_for_the_firmware(empty, tmp_path):
    for number in range(2):
        base = f"/sys/devices/system/edac/mc/mc0/dimm{number}"
        write(tmp_path, f"{base}/size", "32768")
        write(tmp_path, f"{base}/dimm_mem_type", "Registered-DDR4")
        write(tmp_path, f"{base}/dimm_location", f"channel {number} slot 0")
    found = probe_memory_modules(empty)
    assert [module.kind for module in found.modules.value] == ["DDR4", "DDR4"]
    assert found.channels.value == 2
    assert found.bandwidth.value is None


def test_tables_for_root_alone_say_so(empty, monkeypatch):
    write_table(empty, table())

    def deny(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", deny)
    found = probe_memory_modules(empty)
    assert found.modules.reason == "only root may read the firmware's tables"


@given(st.binary(max_size=400))
def test_no_table_breaks_the_reader(content):
    with suppress(struct.error):  # the probe takes it as no table
        parse_memory_devices(content)


SWAPS = "Filename\tType\tSize\tUsed\tPriority\n"


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ("/dev/zram0 partition 8388604 0 100", "compressed memory"),
        ("/swapfile file 2097148 0 -2", "file"),
        ("/dev/zram0 partition 1 0 1\n/swapfile file 2 0 -2", "file"),
    ],
)
def test_swap_names_what_it_lies_on(empty, tmp_path, lines, kind):
    write(tmp_path, "/proc/swaps", SWAPS + lines)
    assert probe_swap(empty).kind.value == kind


def test_no_swap_says_so(empty):
    assert probe_swap(empty).kind.reason == "no swap space"
    assert probe_swap(empty).bandwidth.reason == "no swap space"


@pytest.mark.parametrize(("rotates", "rate"), [("1", 15e6), ("0", 530e6)])
def test_swap_says_how_fast_its_pages_come_back(empty, tmp_path, rotates, rate):
    write(tmp_path, "/proc/swaps", SWAPS + "/dev/sda2 partition 8388604 0 -2")
    write(tmp_path, "/sys/class/block/sda2/partition", "2")
    write(tmp_path, "/sys/class/block/sda/queue/rotational", rotates)
    write(tmp_path, "/sys/class/block/sda2/../queue/rotational", rotates)
    found = probe_swap(empty).bandwidth
    assert (found.value, found.origin) == (pytest.approx(rate), "assumed")


def test_what_the_system_and_programs_hold_of_memory(empty, tmp_path):
    write(tmp_path, "/proc/meminfo", "MemTotal: 16777216 kB\nMemFree: 1048576 kB\nMemAvailable: 12582912 kB")
    assert probe_memory(empty).held_bytes.value == 4 * GIB


def test_power_of_the_package_and_the_battery(empty, tmp_path):
    for socket in range(2):
        base = f"/sys/class/powercap/intel-rapl:{socket}"
        write(tmp_path, f"{base}/name", f"package-{socket}")
        write(tmp_path, f"{base}/constraint_0_power_limit_uw", "205000000")
    write(tmp_path, "/sys/class/powercap/intel-rapl:0:0/name", "dram")
    write(tmp_path, "/sys/class/hwmon/hwmon2/name", "k10temp")
    write(tmp_path, "/sys/class/hwmon/hwmon2/temp1_input", "61500")
    write(tmp_path, "/sys/class/power_supply/BAT0/type", "Battery")
    write(tmp_path, "/sys/class/power_supply/BAT0/charge_now", "4000000")
    write(tmp_path, "/sys/class/power_supply/BAT0/voltage_now", "12000000")
    power = probe_power(empty)
    assert power.package_limit_watts.value == 410
    assert power.package_celsius.value == 61.5
    assert power.battery_watt_hours.value == 48


def test_large_processes_tell_whose_they_are(empty, tmp_path):
    for pid, size, user in ((10, 3, os.getuid()), (11, 9, os.getuid() + 1), (12, 0, 0)):
        status = f"Name:\tprogram{pid}\nUid:\t{user}\t{user}\t{user}\t{user}\nVmRSS:\t{size * 1048576} kB"
        write(tmp_path, f"/proc/{pid}/status", status)
    found = probe_processes(empty).value
    assert [(process.pid, process.memory_bytes, process.own) for process in found] == [
        (11, 9 * GIB, False),
        (10, 3 * GIB, True),
    ]


def test_stacks_are_listed_without_loading_them(empty, tmp_path):
    write(tmp_path, "/usr/local/cuda/version.json", '{"cuda": {"name": "CUDA SDK", "version": "12.8.1"}}')
    write(tmp_path, "/opt/rocm/.info/version", "6.4.1-83")
    write(tmp_path, "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json", "{}")
    write(tmp_path, "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json", "{}")
    found = {stack.name: stack.version.value for stack in detect(host=empty).stacks}
    assert found == {"CUDA toolkit": "12.8.1", "ROCm": "6.4.1-83", "Vulkan": "radeon, lvp"}
