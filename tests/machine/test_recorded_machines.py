"""Machines that this one is not, replayed through the real probes."""

from __future__ import annotations

import pytest
from recorded import GIB, replay, write, write_cpus

from capacity_tui.engine.machine import detect, probe_memory, probe_power
from capacity_tui.engine.machine.cpu import probe_cpu
from capacity_tui.engine.machine.disk import probe_disks, probe_swap
from capacity_tui.engine.machine.main_memory import cpu_quota
from capacity_tui.engine.machine.sample import GpuSensors
from capacity_tui.engine.machine.system import probe_container, probe_networks, probe_platform
from capacity_tui.engine.machine.vendors.amd import probe_amd


@pytest.fixture
def laptop(tmp_path):
    host = replay("hybrid_laptop", tmp_path)
    for thread in range(12):
        siblings = f"{thread // 2 * 2}-{thread // 2 * 2 + 1}" if thread < 4 else str(thread)
        write(tmp_path, f"/sys/devices/system/cpu/cpu{thread}/topology/thread_siblings_list", siblings)
        write(tmp_path, f"/sys/devices/system/cpu/cpu{thread}/topology/physical_package_id", "0")
        write(tmp_path, f"/sys/devices/system/cpu/cpu{thread}/cpufreq/base_frequency", "1800000")
        boost = "5200000" if thread < 4 else "3900000"
        write(tmp_path, f"/sys/devices/system/cpu/cpu{thread}/cpufreq/cpuinfo_max_freq", boost)
    return host


@pytest.fixture
def server(tmp_path):
    host = replay("epyc_server", tmp_path)
    write_cpus(tmp_path, sockets=2, cores=64, nodes=8)
    return host


def test_a_hybrid_laptop_tells_its_cores_apart(laptop):
    cpu = probe_cpu(laptop)
    assert (cpu.physical_cores.value, cpu.performance_cores.value, cpu.efficiency_cores.value) == (10, 2, 8)
    assert (cpu.threads.value, cpu.usable_threads.value) == (12, 12)
    assert (cpu.base_mhz.value, cpu.boost_mhz.value) == (1800, 5200)
    assert cpu.catalogue_id.value == "i7-1365u"
    assert cpu.simd_bits.value == 256
    assert "AVX-VNNI" in (cpu.simd.value or ())
    assert cpu.numa_nodes.value is not None
    assert cpu.numa_nodes.value[0].memory_bytes == 32594288 * 1024


def test_a_laptop_on_battery_ignores_the_mouse(laptop):
    power = probe_power(laptop)
    assert power.battery_percent.value == 63
    assert power.on_mains.value is False


def test_disks_show_once_with_their_kind(laptop):
    disks = {disk.mount: disk for disk in probe_disks(laptop)}
    assert set(disks) == {"/", "/dev/shm", "/media/backup"}
    assert disks["/"].kind.value == "NVMe"
    assert disks["/"].model.value == "Samsung SSD 980 PRO 1TB"
    assert disks["/media/backup"].kind.value == "HDD"
    assert disks["/dev/shm"].kind.value == "tmpfs"
    assert disks["/"].free_bytes.value == 400 * GIB


def test_an_unlimited_group_leaves_the_host_memory(laptop):
    memory = probe_memory(laptop)
    assert memory.total_bytes.value == 32594288 * 1024
    assert memory.limit_bytes.value is None
    assert memory.limit_bytes.reason == "no limit set"
    assert probe_swap(laptop).total_bytes.value == 8388604 * 1024


def test_wireless_and_graphics_of_the_laptop(laptop):
    assert [(card.name, card.kind) for card in probe_networks(laptop)] == [("wlp0s20f3", "wifi")]
    (graphics,) = detect(host=laptop).accelerators
    assert graphics.integrated.value is True
    assert graphics.memory_total_bytes.value == 32594288 * 1024  # main memory is all it has
    assert graphics.clock_mhz.value == 300


def test_a_dual_socket_server(server):
    cpu = probe_cpu(server)
    assert (cpu.sockets.value, cpu.physical_cores.value, cpu.threads.value) == (2, 128, 256)
    assert cpu.performance_cores.reason == "the cores are all of one kind"
    assert cpu.catalogue_id.value == "epyc-7763"
    assert cpu.microarchitecture.value == "zen3"
    nodes = cpu.numa_nodes.value or ()
    assert [node.index for node in nodes] == list(range(8))
    assert nodes[1].cpus[:2] == (16, 17)
    assert sum(len(node.cpus) for node in nodes) == 256
    (cache,) = cpu.caches.value or ()
    assert (cache.level, cache.size_bytes, cache.count) == (3, 32 << 20, 16)


def test_server_disks_follow_mappings_and_shares(server):
    disks = {disk.mount: disk for disk in probe_disks(server)}
    assert disks["/"].kind.value == "NVMe"
    assert disks["/"].model.value == "Micron_7450_MTFDKCC3T8TFR"
    assert disks["/datasets"].kind.value == disks["/scratch"].kind.value == "network"


def test_infiniband_ports_carry_their_rate(server):
    cards = {card.name: card for card in probe_networks(server)}
    assert (cards["mlx5_0:1"].kind, cards["mlx5_0:1"].speed_mbps.value) == ("infiniband", 400_000)
    assert (cards["mlx5_1:1"].kind, cards["mlx5_1:1"].up.value) == ("roce", False)
    assert cards["docker0"].kind == "virtual"
    assert cards["ib0"].kind == "infiniband"


def test_a_containers_limits_are_the_truth(tmp_path):
    host = replay("container_v2", tmp_path, environment={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    memory, cpu, container = probe_memory(host), probe_cpu(host), probe_container(host)
    assert memory.total_bytes.value == memory.limit_bytes.value == 16 * GIB
    assert memory.host_total_bytes.value == 528280000 * 1024
    assert memory.available_bytes.value == 13 * GIB
    assert memory.total_bytes.source == "/sys/fs/cgroup/memory.max"
    assert (cpu.threads.value, cpu.usable_threads.value) == (64, 4)
    assert (container.kind.value, container.cgroup_version.value) == ("kubernetes", 2)
    assert probe_platform(host).hypervisor.value == "Amazon EC2"


def test_a_containers_disks_leave_out_its_plumbing(tmp_path):
    disks = {disk.mount: disk for disk in probe_disks(replay("container_v2", tmp_path))}
    assert set(disks) == {"/", "/data"}
    assert disks["/"].kind.value == "overlay"
    assert disks["/data"].kind.value == "network"


def test_the_tightest_of_nested_groups_wins(tmp_path):
    host = replay("container_v1", tmp_path)
    memory, cpu = probe_memory(host), probe_cpu(host)
    assert memory.total_bytes.value == 8 * GIB
    assert memory.available_bytes.value == 2000000 * 1024  # the host has less left than the group may take
    assert cpu_quota(host).value == 1.5
    assert cpu.usable_threads.value == 1
    assert cpu.base_mhz.value == 2300
    assert probe_container(host).kind.value == "docker"


def test_affinity_counts_without_a_quota(tmp_path):
    host = replay("container_v1", tmp_path)
    (tmp_path / "sys/fs/cgroup/cpu,cpuacct/abc/cpu.cfs_quota_us").write_text("-1\n")
    assert probe_cpu(host).usable_threads.value == 2


def test_wsl_is_named(tmp_path):
    host = replay("wsl", tmp_path)
    platform = probe_platform(host)
    assert platform.wsl.value is True
    assert platform.hypervisor.value == "Hyper-V (WSL)"
    assert {disk.mount: disk.kind.value for disk in probe_disks(host)}["/mnt/c"] == "network"


def test_a_raspberry_pi(tmp_path):
    host = replay("raspberry_pi", tmp_path, architecture="aarch64")
    cpu = probe_cpu(host)
    assert cpu.model.value == "Raspberry Pi 5 Model B Rev 1.0 Cortex-A76"
    assert cpu.vendor.value == "ARM"
    assert cpu.catalogue_id.value == "rpi5-bcm2712"
    assert (cpu.threads.value, cpu.simd_bits.value) == (4, 128)
    assert probe_memory(host).limit_bytes.reason


def test_arm_cores_of_several_sizes(tmp_path):
    host = replay("phone_board", tmp_path, architecture="aarch64")
    for cpu, capacity in enumerate([382] * 4 + [867] * 3 + [1024]):
        write(tmp_path, f"/sys/devices/system/cpu/cpu{cpu}/cpu_capacity", str(capacity))
        write(tmp_path, f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", str(cpu))
    cpu = probe_cpu(host)
    assert (cpu.performance_cores.value, cpu.efficiency_cores.value) == (1, 7)
    assert cpu.simd_bits.value == 128
    assert cpu.model.value == "Cortex-A720"


def test_amd_gpus_with_their_links(tmp_path):
    first, second = probe_amd(replay("mi300x_node", tmp_path, environment={"ROCR_VISIBLE_DEVICES": "0"})).accelerators
    assert first.catalogue_id.value == "mi300x"
    assert first.compute_capability.value == "gfx942"
    assert first.memory_free_bytes.value == 205822885888 - 2058228858
    assert (first.pcie.generation.value, first.pcie.lanes.value) == (5, 16)
    assert (first.power_watts.value, first.power_limit_watts.value) == (141, 750)
    assert first.temperature_celsius.value == 43
    assert first.clock_max_mhz.value == 2100
    assert [(link.kind, link.peer) for link in first.links.value or ()] == [("XGMI", 1)]
    (holder,) = first.processes.value or ()
    assert (holder.pid, holder.name.value, holder.memory_bytes.value) == (4242, "python", 1762000000)
    assert (first.visible.value, second.visible.value) == (True, False)
    assert second.power_watts.value is None
    assert first.integrated.value is False


def test_amd_topology_and_live_readings(tmp_path):
    host = replay("mi300x_node", tmp_path)
    machine = detect(host=host)
    assert machine.topology.links.value == (("X", "XGMI"), ("XGMI", "X"))
    assert "7a3f5c0e0badcafe" not in repr(machine)
    first, second = GpuSensors(host).read()
    assert first.utilization_percent.value == 37
    assert second.utilization_percent.value is None


def test_an_amd_name_from_rocm_smi(tmp_path):
    answer = '{"card0": {"Card Series": "AMD Radeon RX 7900 XTX", "PCI Bus": "0000:0C:00.0"}}'
    host = replay("mi300x_node", tmp_path, run=lambda words, seconds: answer)
    first, second = probe_amd(host).accelerators
    assert first.name.value == "AMD Radeon RX 7900 XTX"
    assert second.name.reason == "this machine does not tell"


def test_files_that_may_not_be_read_are_missing_with_the_reason(laptop, monkeypatch):
    from pathlib import Path

    read = Path.read_bytes

    def deny(self):
        if self.name == "meminfo":
            raise PermissionError(13, "Permission denied", str(self))
        return read(self)

    monkeypatch.setattr(Path, "read_bytes", deny)
    machine = detect(host=laptop)
    assert machine.memory.total_bytes.value is None
    assert machine.memory.total_bytes.reason == "permission denied"
    assert machine.cpu.model.value


def test_an_empty_machine_is_all_reasons(tmp_path):
    machine = detect(host=replay_nothing(tmp_path))
    assert machine.cpu.model.value is None
    assert machine.memory.total_bytes.reason == "this machine does not tell"
    assert machine.disks == machine.networks == machine.accelerators == ()


def replay_nothing(root):
    (root / "empty").mkdir()
    host = replay("wsl", root / "recorded")
    return type(host)(root / "empty", "Linux", "x86_64", {}, host.run, host.space)
