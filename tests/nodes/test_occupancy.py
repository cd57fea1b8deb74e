"""Nodes with what their devices do: what a plan takes of them, rows of a map, plans for what is free."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import Cluster, resolve_cluster
from capacity_tui.engine.nodes import (
    ALL_NODES,
    NODE_STATES,
    Occupancy,
    change_to_available,
    kept_occupancy,
    node_map,
    planned,
    planned_occupancy,
    slurm_occupancy,
)
from capacity_tui.engine.nodes.occupancy import MOST_ROWS, NodeState, occupancy_of
from capacity_tui.engine.nodes.slurm import parse_nodes
from capacity_tui.engine.plan import HardwareSection, Plan, PricingSection, edited
from capacity_tui.engine.plan.files import plan_from_data
from tests.nodes.inventories import inventory, node, sixteen
from tests.nodes.slurm_cluster import SlurmCluster

CATALOG = load_catalog(Path("none"))
RACKS = [{"name": "rack", "devices": 64}, {"name": "fabric"}]


def plan(**hardware: object) -> Plan:
    return plan_from_data(
        {
            "model": {"name": "llama-3-8b"},
            "training": {"seq_len": 4096, "micro_batch": 1, "global_batch": 4096},
            "parallelism": {"tp": 4, "pp": 1},
            "hardware": {"name": "h100-sxm-80gb", "per_node": 8, **hardware},
        }
    )


def available(wanted: Plan, nodes: list[NodeState]) -> Mapping[str, object] | None:
    return change_to_available(wanted, "h100-sxm-80gb", nodes, CATALOG.accelerators)


@cache
def cluster(devices: int) -> Cluster:
    section = HardwareSection.model_validate(
        {"name": "h100-sxm-80gb", "devices": devices, "per_node": 8, "levels": RACKS}
    )
    return resolve_cluster(section, PricingSection(), CATALOG)


@st.composite
def clusters(draw: st.DrawFn) -> Occupancy:
    """Nodes of which some devices are busy and others down."""
    nodes = []
    for number in range(draw(st.integers(1, 80))):
        busy = draw(st.integers(0, 8))
        down = draw(st.integers(0, 8 - busy))
        kind = draw(st.sampled_from(["h100-sxm-80gb", "a100-sxm-80gb"]))
        nodes.append(NodeState(f"n{number}", kind, 8, busy, down, holders=(f"r {number // 8}",)))
    return Occupancy(tuple(nodes), ("node", "rack"), "a test", is_live=True)


@settings(max_examples=30, deadline=None)
@given(occupancy=clusters(), wanted=st.sampled_from([1, 8, 64, 512]))
def test_every_device_is_in_one_row_of_each_level_and_does_one_thing(occupancy: Occupancy, wanted: int) -> None:
    laid = planned(occupancy, wanted, {"h100-sxm-80gb"})
    found = node_map(laid)
    total = found.whole.counts
    assert sum(total.values()) == 8 * len(laid.nodes)
    assert total["planned"] <= wanted
    assert all(node.planned + node.busy + node.down + node.free == node.devices for node in laid.nodes)
    assert tuple(found.rows) == (*laid.levels, ALL_NODES)
    for rows in found.rows.values():
        assert {state: sum(row.counts[state] for row in rows) for state in NODE_STATES} == total
        assert all(0 < len(row.cells) <= MOST_ROWS for row in rows)


def test_a_plan_takes_nodes_of_its_own_kind_that_hold_all_it_wants_of_one() -> None:
    nodes = (
        NodeState("a1", "a100-sxm-80gb", 8),
        NodeState("h1", "h100-sxm-80gb", 8, busy=6),
        NodeState("h2", "h100-sxm-80gb", 8, down=8, note="drained"),
        NodeState("h3", "h100-sxm-80gb", 8),
    )
    laid = planned(Occupancy(nodes, ("node",), "a test"), 8, {"h100-sxm-80gb"})
    assert [node.planned for node in laid.nodes] == [0, 0, 0, 8]
    assert [row.notes for row in node_map(laid).rows["node"]][2] == ("h2: drained",)


def test_a_few_nodes_have_a_cell_for_each_device_and_thousands_stay_readable() -> None:
    few = node_map(planned_occupancy(cluster(16)))
    assert [row.cells for row in few.rows["node"]] == [("planned",) * 8] * 2
    assert few.usual == "node"
    many = node_map(planned_occupancy(cluster(16384)))
    assert many.usual == "rack"
    racks = many.rows["rack"]
    assert [row.name for row in racks][:2] == ["rack 1 – 32", "rack 33 – 64"]
    assert len(racks) == 8
    assert len(many.rows["node"]) == 64


def test_one_broken_device_is_seen_however_much_stands_in_a_row() -> None:
    many = planned_occupancy(cluster(16384))
    broken = replace(many.nodes[1000], down=1, note="GPU 3 missing")
    nodes = (*many.nodes[:1000], broken, *many.nodes[1001:])
    for rows in node_map(replace(many, nodes=nodes)).rows.values():
        assert sum(row.cells.count("down") for row in rows) == 1
        assert [note for row in rows for note in row.notes] == ["node 1001: GPU 3 missing"]


def test_groups_of_a_plan_are_nodes_of_their_own_of_which_it_uses_the_better_ones() -> None:
    groups = [{"name": name, "devices": 16, "per_node": 8} for name in ("h100-sxm-80gb", "a100-sxm-80gb")]
    wanted = plan(groups=groups)
    found = resolve_cluster(wanted.hardware, wanted.pricing, CATALOG)
    laid = planned_occupancy(found, wanted.hardware.groups)
    assert [(node.hardware, node.planned) for node in laid.nodes] == [("h100-sxm-80gb", 8)] * 2 + [
        ("a100-sxm-80gb", 0)
    ] * 2
    change = available(wanted, [node for node in laid.nodes if node.hardware == "a100-sxm-80gb"])
    assert change is not None
    assert [group.name for group in edited(wanted, change, CATALOG).plan.hardware.groups] == ["a100-sxm-80gb"]


@pytest.mark.parametrize(("free", "devices"), [(8, 8), (7, 4), (3, None), (30000, 16384)])
def test_a_plan_for_what_is_free_has_whole_replicas_and_no_more_than_sequences(free: int, devices: int | None) -> None:
    change = available(plan(devices=64), [NodeState("n1", "h100-sxm-80gb", free)])
    assert (None if change is None else change["hardware.devices"]) == devices


def test_a_plan_for_what_is_free_takes_whole_nodes_or_a_part_of_one() -> None:
    used, empty, gone = (NodeState(name, "h100-sxm-80gb", 8, busy) for name, busy in (("n1", 3), ("n2", 0), ("n3", 8)))
    other = replace(empty, name="n4")
    assert available(plan(devices=64), [used, empty, gone]) == {"hardware.devices": 8}
    assert available(plan(devices=64), [used, empty, other]) == {"hardware.devices": 16}
    assert available(plan(devices=64), [used, gone]) == {"hardware.devices": 4}
    assert available(plan(devices=64), [gone]) is None
    laid = planned(Occupancy((used, empty, gone, other), ("node",), "a test"), 4, {"h100-sxm-80gb"})
    assert [node.planned for node in laid.nodes] == [4, 0, 0, 0]


def test_a_plan_moves_to_other_devices_where_none_of_its_own_is_free() -> None:
    nodes = [
        NodeState("h1", "h100-sxm-80gb", 8, busy=8),
        NodeState("a1", "a100-sxm-80gb", 8),
        NodeState("x", "odd", 64),
    ]
    assert available(plan(devices=64), nodes) == {"hardware.name": "a100-sxm-80gb", "hardware.devices": 8}
    assert available(plan(devices=64), nodes[:1]) is None


RECORDED = """\
NodeName=n1 CPUTot=96 CPUAlloc=96 Gres=gpu:h100:8 RealMemory=2000000 State=ALLOCATED AllocTRES=cpu=96,gres/gpu:h100=8
NodeName=n2 CPUTot=96 CPUAlloc=12 Gres=gpu:h100:8(S:0-1) RealMemory=2000000 State=MIXED AllocTRES=gres/gpu:h100=3
NodeName=n3 CPUTot=96 CPUAlloc=0 Gres=gpu:h100:8 RealMemory=2000000 State=IDLE+DRAIN Reason=GPU 3 fell off [root@now]
NodeName=n4 CPUTot=96 CPUAlloc=0 Gres=gpu:h100:8 RealMemory=2000000 State=DOWN* Reason=Not responding
NodeName=c1 CPUTot=64 CPUAlloc=0 RealMemory=500000 State=IDLE
NodeName=o1 CPUTot=64 CPUAlloc=0 Gres=gpu:homemade:2 RealMemory=500000 State=IDLE
"""


def test_nodes_of_slurm_are_busy_down_or_free_rack_by_rack() -> None:
    racks = {"n1": ("r2", "core"), "n2": ("r1", "core"), "n3": ("r2", "core"), "n4": ("r1", "core")}
    found = occupancy_of(parse_nodes(RECORDED), racks, CATALOG)
    told = {node.name: (node.hardware, node.busy, node.down, node.free) for node in found.nodes}
    assert told == {
        "n1": ("h100-sxm-80gb", 8, 0, 0),
        "n2": ("h100-sxm-80gb", 3, 0, 5),
        "n3": ("h100-sxm-80gb", 0, 8, 0),
        "n4": ("h100-sxm-80gb", 0, 8, 0),
        "c1": ("processors", 0, 0, 1),
        "o1": ("homemade", 0, 0, 2),
    }
    assert found.levels == ("node", "rack")
    assert [row.name for row in node_map(found).rows["rack"]] == ["elsewhere", "r1", "r2"]
    assert "GPU 3 fell off" in str(node_map(found).whole.notes)


def test_a_real_slurm_tells_what_is_taken(slurm: SlurmCluster) -> None:
    slurm.run("sbatch", "-o", "/dev/null", "-w", "gpu1", "-p", "gpu", "--gpus-per-node=h100:6", "--wrap", "sleep 60")
    slurm.wait_for("the job", lambda: "RUNNING" in slurm.run("squeue", "-h", "-o", "%T"))
    found = slurm_occupancy(CATALOG)
    assert found is not None
    told = {node.name: (node.hardware, node.devices, node.busy, node.free) for node in found.nodes}
    assert told["gpu1"] == ("h100-sxm-80gb", 8, 6, 2)
    assert told["gpu2"] == ("h100-sxm-80gb", 8, 0, 8)
    assert told["cpu1"] == ("processors", 1, 0, 1)
    assert found.levels == ("node", "rack")


def test_nodes_that_were_kept_stand_with_what_is_missing_or_odd() -> None:
    nodes = [*sixteen(), node("g16", "rack5", devices=7, driver="535.1", troubles=("device 2 is held back: thermal",))]
    found = kept_occupancy(inventory(*nodes, silent={"g17": "no answer within 60 s"}))
    assert found.levels == ("node", "rack")
    assert "big as seen on 2026-11-20" in found.source and not found.is_live
    states = {each.name: each for each in found.nodes}
    assert (states["g00"].devices, states["g00"].available, states["g00"].holders) == (8, 8, ("rack1",))
    assert (states["g16"].down, states["g16"].available) == (1, 7)
    assert "device 2 is held back: thermal" in states["g16"].note and "535.1, others 550" in states["g16"].note
    assert (states["g17"].down, states["g17"].available, states["g17"].note) == (8, 0, "no answer within 60 s")
    laid = planned(found, 100, {"h100-sxm-80gb"})
    assert sum(each.planned for each in laid.nodes) == 100
