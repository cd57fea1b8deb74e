"""What the nodes of a cluster are: equal ones one kind, odd ones and silent ones named, kept for plans."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import HardwareError, LauncherError, StorageError
from capacity_tui.engine.nodes import (
    cluster_changes,
    cluster_hardware,
    detect_cluster,
    keep_cluster,
    kept_cluster,
    machines_of,
)
from capacity_tui.engine.nodes.hardware import drawn_levels, folded_names
from capacity_tui.engine.nodes.inventory import Ports
from capacity_tui.engine.nodes.launcher import NodeAnswer, Order, read_hosts
from capacity_tui.engine.nodes.slurm import Slurm, names_of
from capacity_tui.tui.cli.program import run_command
from tests.machine.recorded import RECORDINGS
from tests.nodes.inventories import GIB, H100, inventory, node, sixteen
from tests.nodes.slurm_cluster import SlurmCluster

A100 = "a100-sxm-80gb"


def test_equal_nodes_are_one_kind_and_odd_ones_are_told_with_both_values() -> None:
    nodes = sixteen()
    nodes[3] = node("g03", "rack1", driver="535.1")
    nodes[5] = node("g05", "rack2", devices=7)
    nodes[7] = node("g07", "rack2", ports=Ports(kind="infiniband", mbps=200_000, count=8))
    nodes[9] = node("g09", "rack3", memory_bytes=2015 * GIB)  # what its firmware keeps
    (kind,) = inventory(*nodes).kinds
    assert set(kind.odd) == {"g03", "g05", "g07"}
    assert str(kind.odd["g03"][0]) == "driver 535.1, others 550.54.15"
    assert "7 x" in str(kind.odd["g05"][0])
    assert "200 Gb/s, others 8 x infiniband 400 Gb/s" in str(kind.odd["g07"][0])


def test_many_nodes_that_differ_alike_are_a_kind_of_their_own() -> None:
    nodes = [*sixteen(), *(node(f"a{number}", device=A100) for number in range(4))]
    nodes += [node(f"h{number}", ports=Ports(kind="roce", mbps=100_000, count=1)) for number in range(5)]
    kinds = inventory(*nodes).kinds
    assert [(len(kind.nodes), kind.typical.device) for kind in kinds] == [(16, H100), (5, H100), (4, A100)]
    assert not any(kind.odd for kind in kinds)


def test_what_is_whole_becomes_hardware_with_levels_and_the_link_of_its_ports() -> None:
    nodes = sixteen()
    nodes[5] = node("g05", "rack2", devices=7)
    found = cluster_hardware(
        inventory(*nodes, node("login", device="", devices=0, processor="", ports=None)), load_catalog()
    )
    assert found.row["groups"] == [{"name": H100, "devices": 120, "per_node": 8}]
    assert (found.row["interconnect"], found.row["ports_per_node"]) == ("ib-ndr", 8)
    assert found.row["levels"] == [{"name": "rack", "devices": 32}, {"name": "fabric"}]
    assert any(words.startswith("g05: it has 7 devices") for words in found.left_out)
    assert any("no accelerators" in words for words in found.left_out)


def test_unlike_networks_of_equal_devices_are_planned_with_the_slowest() -> None:
    slow = [node(f"s{number}", "rack9", ports=Ports(kind="infiniband", mbps=100_000, count=1)) for number in range(4)]
    found = cluster_hardware(inventory(*sixteen(), *slow), load_catalog())
    assert found.row["groups"] == [{"name": H100, "devices": 160, "per_node": 8}]
    assert (found.row["interconnect"], found.row["ports_per_node"]) == ("ib-edr", 1)
    assert found.row["levels"] == [{"name": "rack", "devices": 32}, {"name": "fabric"}]
    (told,) = found.left_out
    assert told == (
        "the network of 16 nodes, 8 x infiniband 400 Gb/s: "
        "plans on all nodes wait for the slowest, 1 x infiniband 100 Gb/s"
    )


def test_nodes_of_no_rack_and_of_partitioned_devices_are_told_and_the_rest_is_planned_for() -> None:
    nodes = sixteen()
    nodes[3] = node("g03")
    traits = {**nodes[5].traits, "partitioned": "yes"}
    nodes = [each.model_copy(update={"traits": {**each.traits, "partitioned": "no"}}) for each in nodes]
    nodes[5] = nodes[5].model_copy(update={"traits": traits})
    found = cluster_hardware(inventory(*nodes), load_catalog())
    assert found.row["groups"] == [{"name": H100, "devices": 120, "per_node": 8}]
    assert found.row["levels"] == [{"name": "rack", "devices": 32}, {"name": "fabric"}]
    assert found.left_out == (
        "g05: its devices are partitioned, those of others are whole",
        "the place of g03: no node reports it; assumed to be like that of others",
    )


def test_a_rack_that_is_misspelt_in_a_file_of_hosts_is_told(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("a rack=r1 slots=8\nb rak=r1\n")
    with pytest.raises(LauncherError, match=r"hosts:2: unknown word 'rak'; did you mean rack\?"):
        read_hosts(tmp_path / "hosts")


def test_what_changed_since_is_told_node_by_node() -> None:
    before = inventory(*sixteen()[:4], silent={"g99": "down"})
    after = inventory(node("g00", "rack1", driver="560"), *sixteen()[1:3], node("new"), silent={"g03": "no answer"})
    changes = [str(change) for change in cluster_changes(before, after)]
    assert changes == [
        "g00: driver 550.54.15 -> 560",
        "g03: node answers -> no answer (no answer)",
        "g99: node no answer (down) -> not there",
        "new: node not there -> answers",
    ]
    assert not cluster_changes(before, before)


def test_names_are_folded_as_slurm_writes_them() -> None:
    names = ("g01", "g02", "g03", "g10", "login", "r1-9", "r1-10")
    assert folded_names(names) == "g[01-03,10],login,r1-9,r1-10"
    assert names_of(folded_names(names)) == names


def test_levels_are_drawn_rack_by_rack_and_many_racks_stay_readable() -> None:
    lines = [*drawn_levels(inventory(*sixteen()))]
    assert lines[0] == "big: 4 racks, 16 nodes, 128 devices"
    assert lines[1].startswith("├─ rack1  g[00-03]: 8 x h100")
    assert lines[-1].startswith("└─ rack4")
    many = inventory(*(node(f"n{number}", f"r{number // 8}") for number in range(2048)))
    drawn = [*drawn_levels(many, ascii_only=True)]
    assert len(drawn) < 30
    assert all(line.isascii() for line in drawn)
    assert "232 more racks" in drawn[-1]


def test_a_cluster_of_processors_alone_has_no_machines_for_a_queue(own_folders: Path) -> None:
    keep_cluster(inventory(*(node(f"n{number}", device="", devices=0) for number in range(2))), load_catalog())
    with pytest.raises(HardwareError, match="the cluster has no accelerators: big as seen"):
        machines_of(None, "big", load_catalog())
    keep_cluster(inventory(*sixteen()), load_catalog())
    assert machines_of(None, "big", load_catalog())[0][0]["count"] == 16


def test_a_kept_cluster_comes_back_and_a_broken_file_is_refused(own_folders: Path) -> None:
    with pytest.raises(HardwareError, match="no cluster is kept"):
        kept_cluster()
    whole = inventory(*sixteen())
    keep_cluster(whole, load_catalog())
    assert kept_cluster() == kept_cluster("big") == whole
    with pytest.raises(HardwareError, match="kept: big"):
        kept_cluster("other")
    with pytest.raises(HardwareError, match="is other hardware"):
        keep_cluster(whole.model_copy(update={"name": H100}), load_catalog())
    with pytest.raises(HardwareError, match="no name"):
        keep_cluster(whole.model_copy(update={"name": "../x"}), load_catalog())
    next(own_folders.rglob("big.json")).write_text("{")
    with pytest.raises(StorageError, match="detect the cluster again"):
        kept_cluster("big")


def test_plans_name_a_cluster_that_was_detected(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = sixteen()
    nodes[5] = node("g05", "rack2", devices=7)
    keep_cluster(inventory(*nodes), load_catalog())
    asked = ["plan", "--model", "llama-3-8b", "--task", "full", "--gpu", "big", "--format", "json"]
    assert run_command(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fits"] is True
    assert run_command([*asked[:-2], "--explain", "placement"]) == 0
    placed = capsys.readouterr().out
    assert "120" in placed


class Answers:
    """Nodes that answer what was written down for them."""

    name = "recorded"

    def __init__(self, answers: dict[str, NodeAnswer]) -> None:
        self.answers = answers

    def nodes(self) -> tuple[str, ...]:
        return tuple(self.answers)

    def run(self, order: Order, nodes: Sequence[str]) -> Iterator[NodeAnswer]:
        yield from (self.answers[name] for name in nodes)


def test_nodes_that_tell_nonsense_or_nothing_are_named_and_the_others_found() -> None:
    recording = (RECORDINGS / "epyc_server.txt").read_text()
    text = recording.partition("\n")[2]
    answers = {
        "n1": NodeAnswer("n1", text),
        "n2": NodeAnswer("n2", failure="no answer within 3 s"),
        "n3": NodeAnswer("n3", "command not found"),
        "n4": NodeAnswer("n4", "=== /../../etc/passwd\nroot\n"),
    }
    found = detect_cluster(Answers(answers), "mine")
    assert [node.node for node in found.nodes] == ["n1"]
    assert found.nodes[0].memory_bytes > GIB
    assert found.silent["n2"].startswith("no answer within 3 s")
    assert "recorded" in found.silent["n3"]
    assert "elsewhere" in found.silent["n4"]
    with pytest.raises(HardwareError, match="no node answers"):
        detect_cluster(Answers({"n2": answers["n2"]}), "mine")


def test_devices_that_are_held_back_or_have_errors_are_told() -> None:
    text = (RECORDINGS / "titan_v_and_ada.txt").read_text().partition("\n")[2]
    errors = (
        "$ nvidia-smi --query-gpu=index,ecc.errors.uncorrected.volatile.total --format=csv,noheader,nounits\n0, 3\n"
    )
    found = detect_cluster(Answers({"n1": NodeAnswer("n1", errors + text)}), "mine")
    assert "device 0 has 3 memory errors that were not corrected" in found.nodes[0].troubles


def test_hosts_by_ssh_are_kept_and_shown_and_compared(
    ssh_hosts: Path, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reach = ["--hosts", str(ssh_hosts), "--seconds", "30"]
    assert run_command(["cluster", "detect", *reach, "--name", "mine", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [kind["nodes"] for kind in data["kinds"]] == [3]
    assert (data["odd"], data["silent"]) == ([], [])
    assert data["racks"] == {"n1": ["r1"], "n2": ["r1"], "n3": ["r2"]}
    assert run_command(["cluster", "show"]) == 0
    shown = capsys.readouterr().out
    assert "mine, seen now through SSH" in shown
    assert "r1  n[1-2]" in shown
    ssh_hosts.with_name("fewer").write_text("n1\ngone\n")
    assert run_command(["cluster", "show", "--check", "--hosts", str(ssh_hosts.with_name("fewer"))]) == 1
    assert "not there" in capsys.readouterr().out


def test_nodes_of_slurm_are_found_with_their_racks(slurm: SlurmCluster, own_folders: Path) -> None:
    found = detect_cluster(Slurm(), "mine", 20)
    assert {node.node: node.holders for node in found.nodes} == {
        "gpu1": ("rack1", "fabric"),
        "gpu2": ("rack1", "fabric"),
        "gpu3": ("rack2", "fabric"),
        "cpu1": ("rack2", "fabric"),
    }
    slurm.run("scontrol", "update", "nodename=gpu2", "state=drain", "reason=fan broken")
    try:
        answers = {each.node: each for each in Slurm().run(Order(("true",)), ("gpu1", "gpu2"))}
    finally:
        slurm.run("scontrol", "update", "nodename=gpu2", "state=resume")
    assert not answers["gpu1"].failure
    assert answers["gpu2"].failure.endswith("fan broken")
