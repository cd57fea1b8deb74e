"""A cluster of Kubernetes is what its API server tells kubectl, here a script that answers from files.

``kubernetes_cluster.json`` was recorded on 2026-11-27 from kube-apiserver 1.36.2 with Kueue 0.13.1; its nodes were made
by hand, with the labels that GPU feature discovery writes. Labels and conditions that are not read are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.nodes import Inventory, chosen_launcher, detect_cluster
from capacity_tui.engine.nodes.kubectl import Kubectl
from capacity_tui.engine.nodes.kubernetes import Kubernetes
from capacity_tui.tui.cli import main

PRODUCT = "NVIDIA-H100-80GB-HBM3"
FakeKubectl = Callable[[str], None]


def recording(name: str) -> str:
    """Return a recorded answer of API servers."""
    return (Path(__file__).parent / "recordings" / name).read_text()


def node(name: str, gpus: int = 8, ready: str = "True", **changes: Any) -> dict[str, Any]:
    labels = {
        "nvidia.com/gpu.product": PRODUCT,
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/cuda.driver-version.full": "570.86.15",
        "cloud.provider.com/topology-rack": "rack-1",
        **changes.pop("labels", {}),
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": changes.pop("spec", {}),
        "status": {
            "capacity": {"cpu": "192", "memory": "2113548Ki", "nvidia.com/gpu": "8", **changes.pop("capacity", {})},
            "allocatable": {"nvidia.com/gpu": str(gpus), **changes.pop("allocatable", {})},
            "conditions": [{"type": "Ready", "status": ready, "reason": "NodeStatusUnknown"}],
        },
    }


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKubectl:
    """Put a script in the place of kubectl."""

    def write(script: str) -> None:
        path = tmp_path / "bin" / "kubectl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")

    return write


def answer(kubectl: FakeKubectl, tmp_path: Path, *nodes: Mapping[str, Any]) -> Inventory:
    recorded = tmp_path / "nodes.json"
    recorded.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    kubectl(f'echo "$@" > {tmp_path}/asked; cat {recorded}')
    return detect_cluster(chosen_launcher(kubernetes="prod"), "mine")


def test_nodes_are_known_by_their_labels(kubectl: FakeKubectl, tmp_path: Path) -> None:
    found = answer(kubectl, tmp_path, node("a"), node("b"), node("c", ready="Unknown"))
    assert [entry.node for entry in found.nodes] == ["a", "b"]
    first = found.nodes[0]
    assert (first.device, first.devices, first.holders) == ("h100-sxm-80gb", 8, ("rack-1",))
    assert first.memory_bytes == 2113548 * 1024
    assert "NodeStatusUnknown" in found.silent["c"]
    assert "--context=prod" in (tmp_path / "asked").read_text()


@pytest.mark.parametrize(
    ("product", "memory", "device"),
    [
        ("NVIDIA-A100-SXM4-80GB", "81920", "a100-sxm-80gb"),
        ("NVIDIA-H200", "143771", "h200-sxm"),
        ("Tesla-T4", "15360", "t4"),
        ("NVIDIA-GeForce-RTX-4090", "24564", "rtx-4090"),
        ("Some-New-Device", "1000", ""),
    ],
)
def test_products_are_devices_of_the_catalogue(
    kubectl: FakeKubectl, tmp_path: Path, product: str, memory: str, device: str
) -> None:
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": memory}
    assert answer(kubectl, tmp_path, node("a", labels=labels)).nodes[0].device == device


def test_cordons_taints_missing_devices_and_parts_are_told(kubectl: FakeKubectl, tmp_path: Path) -> None:
    spec = {"unschedulable": True, "taints": [{"key": "team", "effect": "NoSchedule"}]}
    parts = {"nvidia.com/mig-1g.10gb": "7"}
    odd, cut = answer(
        kubectl,
        tmp_path,
        node("odd", 7, spec=spec),
        node("cut", 0, allocatable=parts, capacity={"nvidia.com/gpu": "0"}),
    ).nodes
    words = " ".join(odd.troubles)
    assert all(word in words for word in ("cordoned", "team", "7 of 8"))
    assert cut.traits["partitioned"] == "7 x 1g.10gb"
    assert cut.devices == 8


def test_a_recorded_cluster_is_told_with_what_pods_have_and_what_queues_may_have(
    kubectl: FakeKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str], own_folders: Path
) -> None:
    for kind, items in json.loads(recording("kubernetes_cluster.json")).items():
        (tmp_path / f"{kind}.json").write_text(json.dumps({"items": items}))
    kubectl(f'while [ "${{1#--}}" != "$1" ]; do shift; done; cat {tmp_path}/$2.json')
    found = detect_cluster(Kubernetes(), "mine")
    used = {"a": 4, "b": 8, "cut": 0, "drained": 0, "l4": 0, "odd": 0, "sliced": None}
    assert {facts.node: facts.used for facts in found.nodes} == used
    assert {facts.node: facts.used_slices for facts in found.nodes if facts.used_slices} == {
        "cut": {"1g.10gb": 3},
        "sliced": {"1g.10gb": 5},
    }
    assert [facts.node for facts in found.nodes if not facts.takes_jobs] == ["drained", "odd"]
    assert {facts.node: facts.devices for facts in found.nodes if facts.devices != 8} == {
        "l4": 4,
        "odd": 7,
        "sliced": 0,
    }
    odd = {node: list(map(str, what)) for kind in found.kinds for node, what in kind.odd.items()}
    assert odd["cut"] == ["partitioned 7 x 1g.10gb, others no"]
    assert "a" not in odd, "it is as most are"
    cold, team = found.queues
    assert (cold.quota, cold.why_held) == (4, "stopped: Hold")
    assert (team.quota, team.used, team.pending, team.why_held) == (8, 8, 1, "")
    assert team.borrows == 0, "it may borrow 8, but nobody in its cohort lends any"
    assert main(["cluster", "detect", "--kubernetes", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert all(words in shown for words in ("used: 12 of", "used: cut: 3 x 1g.10gb", "no answer: lost"))


def test_what_a_queue_may_borrow_is_what_others_of_its_cohort_lend(kubectl: FakeKubectl, tmp_path: Path) -> None:
    def queue(name: str, **quota: int) -> dict[str, Any]:
        groups = [{"flavors": [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", **quota}]}]}]
        return {"metadata": {"name": name}, "spec": {"cohortName": "lab", "resourceGroups": groups}}

    answers = {
        "nodes": [node("a")],
        "pods": [],
        "localqueues.kueue.x-k8s.io": [{"metadata": {"name": "q"}, "spec": {"clusterQueue": "own"}}],
        "clusterqueues.kueue.x-k8s.io": [queue("own", nominalQuota=8), queue("other", nominalQuota=16, lendingLimit=4)],
        "cohorts.kueue.x-k8s.io": [],
    }
    kubectl(f'while [ "${{1#--}}" != "$1" ]; do shift; done; cat {tmp_path}/$2.json')
    for cohorts, borrows in ([], 4), ([{"metadata": {"name": "lab"}}], None):
        for kind, items in {**answers, "cohorts.kueue.x-k8s.io": cohorts}.items():
            (tmp_path / f"{kind}.json").write_text(json.dumps({"items": items}))
        assert detect_cluster(Kubernetes(), "mine").queues[0].borrows == borrows


def test_what_may_not_be_read_leaves_the_rest(kubectl: FakeKubectl, tmp_path: Path) -> None:
    recorded = tmp_path / "nodes.json"
    recorded.write_text(json.dumps({"items": [node("a")]}))
    refusal = "Error from server (Forbidden): it is forbidden"
    kubectl(f'case "$*" in *nodes*) cat {recorded} ;; *) echo "{refusal}" >&2; exit 1 ;; esac')
    found = detect_cluster(Kubernetes(), "mine")
    assert found.nodes[0].used is None
    assert [note.partition(":")[0] for note in found.notes] == [
        "what pods have is not known",
        "queues of Kueue are not known",
    ]


@pytest.mark.parametrize(
    "script",
    [
        "echo 'error: You must be logged in to the server (Unauthorized)' >&2; exit 1",
        "echo nonsense",
        'echo \'{"items": [{"metadata": 5}]}\'',
        "echo '{\"items\": []}'",
    ],
    ids=["denied", "nonsense", "strange", "empty"],
)
def test_what_cannot_be_read_is_an_error_that_says_what_to_do(kubectl: FakeKubectl, script: str) -> None:
    kubectl(script)
    with pytest.raises(LauncherError) as refused:
        detect_cluster(Kubernetes(), "mine")
    assert refused.value.hint


def test_a_server_that_hangs_or_floods_is_given_up(kubectl: FakeKubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl("exec sleep 60")
    with pytest.raises(LauncherError):
        Kubernetes(Kubectl(seconds=0.3)).nodes()
    kubectl("exec cat /dev/zero")
    monkeypatch.setattr("capacity_tui.engine.nodes.kubectl._MOST_BYTES", 2**20)
    with pytest.raises(LauncherError):
        Kubernetes().nodes()


def test_no_kubectl_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LauncherError):
        Kubernetes().nodes()


def test_plans_can_name_a_detected_cluster(
    kubectl: FakeKubectl, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(kubectl, own_folders, node("a"), node("b"))
    assert main(["cluster", "detect", "--kubernetes", "--name", "pool", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["reached_by"] == "Kubernetes"
    assert data["hardware"]
    assert main(["plan", "--model", "llama-3.1-8b", "--gpu", "pool", "--seq", "4k"]) == 0
    assert main(["cluster", "detect", "--context", "prod"]) == 2
