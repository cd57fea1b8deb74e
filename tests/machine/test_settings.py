"""Settings fit the generation, the links and the processor, and each says why."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from recorded import replay

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.machine import NetworkInterface, detect, detected, missing
from capacity_tui.engine.machine.known_devices import generations, table
from capacity_tui.engine.machine.machine import LinkPeer, MigInstance, unknown_accelerator
from capacity_tui.engine.machine.topology import complete_topology
from capacity_tui.engine.solve import settings_for
from capacity_tui.engine.solve.hardware_advice import LINK_RULES, settings_for_row


@pytest.fixture
def laptop(tmp_path, without_nvml):
    machine = detect(host=replay("hybrid_laptop", tmp_path))
    return replace(machine, accelerators=())


def values(machine) -> dict[str, str]:
    return {setting.name: setting.value for setting in settings_for(machine)}


def with_gpus(machine, name: str, capability: str, count: int, *, links: bool = False, vendor: str = "NVIDIA"):
    gpus = tuple(
        replace(
            unknown_accelerator(index, vendor, "test", "not told"),
            name=detected(name, "test"),
            compute_capability=detected(capability, "test"),
            visible=detected(True, "test"),
            pci_path=detected(("pci0000:00", f"0000:0{index}:00.0"), "test"),
            numa_node=detected(index % 2, "test"),
            links=detected((LinkPeer("NVLink", None, 18),), "test") if links else missing("test", "none"),
        )
        for index in range(count)
    )
    return replace(machine, accelerators=gpus, topology=complete_topology(gpus, machine.networks, None))


# The generations that the configurations must tell apart, with the precision that suits each.
CASES = [
    ("GeForce GTX 1660 Ti", "7.5", "fp32"),
    ("GeForce RTX 2080 Ti", "7.5", "fp16"),
    ("GeForce RTX 3090", "8.6", "bf16"),
    ("GeForce RTX 4090", "8.9", "bf16"),
    ("GeForce RTX 5090", "12.0", "bf16"),
    ("Tesla V100-SXM2-32GB", "7.0", "fp16"),
    ("Tesla P100-SXM2-16GB", "6.0", "fp32"),
    ("Quadro RTX 8000", "7.5", "fp16"),
    ("H100 80GB HBM3", "9.0", "bf16"),
    ("B200", "10.0", "bf16"),
]


@pytest.mark.parametrize(("name", "capability", "precision"), CASES)
def test_every_generation_has_its_precision_and_attention(laptop, name, capability, precision):
    found = values(with_gpus(laptop, name, capability, 1))
    assert found["precision"] == precision
    assert found["attention"] in ("flash", "sdpa")
    assert "backend" not in found


def test_every_setting_says_why(laptop):
    machines = [
        laptop,
        with_gpus(laptop, "GeForce RTX 4090", "8.9", 2),
        with_gpus(laptop, "H100", "9.0", 8, links=True),
    ]
    for machine in machines:
        for setting in settings_for(machine):
            assert setting.value
            assert setting.reason
            assert not re.search(r"[{}]", setting.value + setting.reason)


def test_every_catalogue_device_belongs_to_a_generation():
    without = {row.id for row in load_catalog().accelerators.values() if not settings_for_row(row)}
    assert without <= {"rubin-sxm", "mi455x"}  # their targets are not published


def test_cards_without_peer_access_say_so(laptop):
    assert values(with_gpus(laptop, "GeForce RTX 4090", "8.9", 2))["NCCL_P2P_DISABLE"] == "1"
    assert "NCCL_P2P_DISABLE" not in values(with_gpus(laptop, "H100", "9.0", 2, links=True))
    assert values(with_gpus(laptop, "A10", "8.6", 2))["NCCL_P2P_LEVEL"] == "NODE"


def test_adapters_beside_the_gpus_are_named(laptop):
    place = detected(("pci0000:00", "0000:0a:00.0"), "test"), detected(0, "test")
    switch = ("pci0000:10", "0000:10:01.0", "0000:11:00.0")
    beside = detected((*switch, "0000:12:01.0", "0000:14:00.0"), "test"), detected(0, "test")
    speed, up = detected(400_000, "test"), detected(True, "test")
    cards = (
        NetworkInterface("eth0", "ethernet", detected(25_000, "test"), up, *place),
        NetworkInterface("mlx5_0:1", "infiniband", speed, up, *beside),
        NetworkInterface("mlx5_9:1", "infiniband", speed, up, *place),
    )
    machine = with_gpus(laptop, "H100", "9.0", 2, links=True)
    gpus = tuple(
        replace(gpu, pci_path=detected((*switch, "0000:12:00.0", "0000:13:00.0"), "test"))
        for gpu in machine.accelerators
    )
    found = values(replace(machine, accelerators=gpus, networks=cards, topology=complete_topology(gpus, cards, None)))
    assert found["NCCL_IB_HCA"] == "mlx5_0:1"
    assert found["NCCL_SOCKET_IFNAME"] == "eth0"
    assert "NCCL_IB_DISABLE" not in found


def test_slices_do_not_talk(laptop):
    machine = with_gpus(laptop, "H100", "9.0", 1)
    slices = detected((MigInstance("3g.40gb", 1 << 35, 3 / 7),) * 2, "test")
    gpu = replace(machine.accelerators[0], mig_enabled=detected(True, "test"), mig_instances=slices)
    found = values(replace(machine, accelerators=(gpu,)))
    assert found["world size"] == "1 a slice"
    assert "backend" not in found


def test_a_processor_alone_gets_threads_and_places(laptop):
    cpu = replace(
        laptop.cpu,
        physical_cores=detected(10, "test"),
        performance_cores=detected(2, "test"),
        efficiency_cores=detected(8, "test"),
        threads=detected(12, "test"),
        usable_threads=detected(12, "test"),
    )
    found = values(replace(laptop, cpu=cpu))
    assert found["OMP_NUM_THREADS"] == "2"
    assert found["taskset"] == "-c 0-3"
    assert found["precision"] == "fp32"
    assert "OMP_PROC_BIND" in found
    assert "KMP_AFFINITY" not in found  # read by Intel's OpenMP alone


def test_several_numa_nodes_get_a_process_each(tmp_path):
    found = values(detect(host=replay("epyc_server", tmp_path)))
    assert "OMP_PROC_BIND" in found


def test_ids_are_unique():
    ids = [row.id for row in generations()]
    assert len(ids) == len(set(ids))


def test_every_setting_between_devices_has_its_row_and_its_rule():
    for row in table()["collectives"].values():
        assert {*row.get("links", ())} <= {*LINK_RULES} & {*table()["links"]}


def test_eight_of_a_kind_get_the_channels_their_row_asks_for(laptop):
    machine = with_gpus(laptop, "Instinct MI300X", "gfx942", 8, vendor="AMD")
    gpus = tuple(replace(gpu, catalogue_id=detected("mi300x", "test")) for gpu in machine.accelerators)
    assert values(replace(machine, accelerators=gpus))["NCCL_MIN_NCHANNELS"] == "112"
    assert "NCCL_MIN_NCHANNELS" not in values(replace(machine, accelerators=gpus[:4]))
    assert "NCCL_P2P_LEVEL" not in values(machine)


def test_a_generation_may_have_a_library_of_its_own(laptop):
    assert values(with_gpus(laptop, "HL-225", "", 2, vendor="Intel"))["backend"] == "hccl"
    assert values(with_gpus(laptop, "Data Center GPU Max 1550", "", 2, vendor="Intel"))["backend"] == "xccl"
    assert values(with_gpus(laptop, "Acme One", "", 2, vendor="Acme"))["backend"] == "gloo"
