"""Trees, matrices and advice of machines with several devices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import replay

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import placement_advice, usable_devices
from capacity_tui.engine.cluster.assessment import linked_groups
from capacity_tui.engine.cluster.catalogue_devices import accelerator_device
from capacity_tui.engine.cluster.detected_machine import as_slice
from capacity_tui.engine.machine import Accelerator, NetworkInterface, detect, detected, missing, topology_lines
from capacity_tui.engine.machine.machine import LinkPeer, MigInstance, NumaNode, unknown_accelerator
from capacity_tui.engine.machine.topology import complete_topology, level

SWITCH = ("pci0000:16", "0000:16:01.0", "0000:17:00.0", "0000:18:00.0")


def at(index: int, path: tuple[str, ...], node: int | None = 0) -> Accelerator:
    bare = unknown_accelerator(index, "NVIDIA", "test", "not told")
    pcie = replace(bare.pcie, generation_max=detected(5, "test"), lanes_max=detected(16, "test"))
    return replace(
        bare,
        name=detected("H100 80GB HBM3", "test"),
        catalogue_id=detected("h100-sxm-80gb", "test"),
        memory_total_bytes=detected(80 << 30, "test"),
        pci_path=detected(path, "test"),
        pcie=pcie,
        numa_node=missing("test", "no node") if node is None else detected(node, "test"),
    )


def card(name: str, path: tuple[str, ...], node: int = 0) -> NetworkInterface:
    place = detected(path, "test"), detected(node, "test")
    return NetworkInterface(name, "infiniband", detected(400_000, "test"), detected(True, "test"), *place)


@pytest.fixture
def machine(tmp_path):
    """Two GPUs with an adapter on one switch, two more on the other socket, joined in pairs."""
    gpus = (
        at(0, (*SWITCH, "0000:19:00.0")),
        at(1, (*SWITCH[:3], "0000:18:01.0", "0000:1a:00.0")),
        at(2, ("pci0000:80", "0000:80:01.0", "0000:81:00.0"), 1),
        at(3, ("pci0000:90", "0000:90:01.0", "0000:91:00.0"), 1),
    )
    pairs = {0: 1, 1: 0, 2: 3, 3: 2}
    gpus = tuple(replace(gpu, links=detected((LinkPeer("NVLink", pairs[gpu.index], 4),), "test")) for gpu in gpus)
    cards = (card("mlx5_0:1", (*SWITCH[:3], "0000:18:02.0", "0000:1b:00.0")),)
    found = detect(host=replay("epyc_server", tmp_path))
    nodes = detected(tuple(NumaNode(node, (0, 1), 1 << 40) for node in range(2)), "test")
    matrix = (
        ("X", "NV4", "SYS", "SYS"),
        ("NV4", "X", "SYS", "SYS"),
        ("SYS", "SYS", "X", "NV4"),
        ("SYS", "SYS", "NV4", "X"),
    )
    return replace(
        found,
        cpu=replace(found.cpu, numa_nodes=nodes),
        accelerators=gpus,
        networks=cards,
        topology=complete_topology(gpus, cards, detected(matrix, "test")),
    )


def test_adapters_beside_gpus_are_found(machine):
    assert machine.topology.adapters == ("mlx5_0:1",)
    assert [row[0] for row in machine.topology.adapter_links] == ["PIX", "PIX", "SYS", "SYS"]


@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_tree_shows_every_device_under_its_node(machine, ascii_only):
    lines = topology_lines(machine, ascii_only)
    text = "\n".join(lines)
    assert text.isascii() or not ascii_only
    first, second = (next(i for i, line in enumerate(lines) if f"NUMA node {node}" in line) for node in (0, 1))
    places = {index: next(i for i, line in enumerate(lines) if f"GPU{index} H100" in line) for index in range(4)}
    adapter = next(i for i, line in enumerate(lines) if "mlx5_0:1 infiniband" in line)
    assert first < places[0] < places[1] < adapter < second < places[2] < places[3]
    assert "400 Gb/s" in lines[adapter]
    assert any(line.split()[:4] == ["GPU0", "X", "NV4", "SYS"] for line in lines)


def test_a_machine_without_devices_is_one_trunk(tmp_path):
    lines = topology_lines(detect(host=replay("hybrid_laptop", tmp_path)))
    assert "NUMA node 0" in lines[1]
    assert any("shares main memory" in line for line in lines)


def test_tensor_parallel_stays_on_direct_links(machine):
    advice = placement_advice(machine, load_catalog())
    inside, crossing, *rest = advice
    assert "GPU 0, 1; GPU 2, 3" in inside.where
    assert "450.0 GB/s" in inside.reason or "450 GB/s" in inside.reason
    assert crossing.where == "avoid"
    assert "times as long" in crossing.reason
    assert {entry.dimension for entry in rest} == {"pipeline parallel", "data parallel"}


def test_cards_without_links_are_told_so(machine):
    bare = complete_topology(
        tuple(replace(gpu, links=missing("test", "none")) for gpu in machine.accelerators), (), None
    )
    assert bare.links.value is not None
    assert bare.links.value[0][1] == "PIX"
    assert bare.links.value[0][2] == "SYS"
    assert bare.links.value[2][3] == "NODE"
    advice = placement_advice(replace(machine, topology=bare), load_catalog())
    assert advice[0].where == "only where a model fits no other way"


def test_one_device_needs_no_advice(tmp_path):
    assert placement_advice(detect(host=replay("trn1_2xlarge", tmp_path)), load_catalog()) == ()


def test_slices_are_devices_of_their_own(machine):
    gpu = replace(
        machine.accelerators[0],
        mig_enabled=detected(True, "test"),
        mig_instances=detected(
            (MigInstance("3g.40gb", 40 << 30, 3 / 7), MigInstance("1g.10gb", 10 << 30, 1 / 7)), "test"
        ),
        visible=detected(True, "test"),
    )
    first, second, *others = usable_devices(replace(machine, accelerators=(gpu, *machine.accelerators[1:])))
    assert first.accelerator.memory_total_bytes.value == 40 << 30
    assert (first.compute_share, first.bandwidth_share, first.linked) == (3 / 7, 0.5, False)
    assert second.accelerator.name.value == "H100 80GB HBM3 1g.10gb"
    assert len(others) == 3
    whole = accelerator_device(load_catalog().accelerators["h100-sxm-80gb"], load_catalog())
    part = as_slice(whole, first)
    assert part.peak("bf16") == pytest.approx(whole.peak("bf16") * 3 / 7)
    assert part.bandwidth == whole.bandwidth / 2
    assert as_slice(whole, others[0]) is whole


PATHS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).map(tuple)


@given(PATHS, PATHS, st.sampled_from([True, False, None]))
def test_distance_is_the_same_both_ways(first, second, same_node):
    assert level(first, second, same_node) == level(second, first, same_node)


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.sampled_from(["NV2", "SYS"]), min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
def test_groups_hold_every_device_once(matrix):
    both = [[matrix[max(i, j)][min(i, j)] for j in range(len(matrix))] for i in range(len(matrix))]
    groups = linked_groups(both)
    assert sorted(index for group in groups for index in group) == list(range(len(matrix)))
