"""Jobs of plans on Kubernetes, through a kubectl that answers from files: rehearsed, created, followed, ended.

How jobs go was recorded on 2026-11-27 from kube-apiserver, kube-controller-manager and kube-scheduler 1.36.2 with Kueue
0.13.1 and JobSet 0.11.0, on nodes without a kubelet: what it says of pods was patched. ``job`` waits for its quota and
is evicted, ``preempt`` loses its quota as its queue is drained, ``jobset`` loses one of two pods to an eviction.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capacity_tui.engine.errors import CapacityError, LauncherError, QueueError
from capacity_tui.engine.nodes.jobs import follow_job, list_jobs, queue_of, stop_job
from capacity_tui.engine.nodes.kubectl import Kubectl
from capacity_tui.engine.nodes.kubernetes import Kubernetes
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.present.frameworks.commands import newest_checkpoint, resuming
from capacity_tui.engine.solve import answer, plan_of_line
from capacity_tui.tui.cli import main
from tests.nodes import fake_kubectl
from tests.nodes.test_kubernetes import node, recording

JOBS, JOB_SETS = "jobs.batch", "jobsets.jobset.x-k8s.io"
KINDS = (JOBS, JOB_SETS, "workloads.kueue.x-k8s.io")
TIME = "computation.estimated_train_time_seconds"
LIVES: dict[str, list[dict[str, Any]]] = json.loads(recording("kubernetes_jobs.json"))
MADE = {"app.kubernetes.io/managed-by": "capacity-tui"}
TRAIN = ("--", "python", "train.py", "--resume", "{run.checkpoint}", "--batch", "{training.micro_batch}")


class Cluster:
    """What the API server has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.set("nodes", *(node(name) for name in "abc"))
        self.set("pods")
        self.set(JOBS)

    def set(self, kind: str, *objects: dict[str, Any]) -> None:
        (self.folder / f"{kind}.json").write_text(json.dumps(objects))

    def get(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.folder / f"{kind}.json").read_text())
        return found

    def manifest(self) -> dict[str, Any]:
        made: dict[str, Any] = yaml.safe_load((self.folder / "given").read_text())
        return made

    def verbs(self) -> list[str]:
        lines = (self.folder / "asked").read_text().splitlines()
        return [next(word for word in json.loads(line) if not word.startswith("--")) for line in lines]


@pytest.fixture
def cluster(tmp_path: Path, own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "kubectl"
    program.write_text(f"#!{sys.executable} -SE\n{Path(fake_kubectl.__file__).read_text()}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return Cluster(folder)


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Files of plans in which nothing is open, by their number of devices."""
    folder = tmp_path_factory.mktemp("plans")
    files = {}
    for devices in (8, 16):
        plan = answer(plan_of_line(read_line(f"llama-3.1-8b full {devices}xh100 2k 50M")).plan).plan
        file = folder / f"{devices}.yaml"
        file.write_text(dump_plan(plan))
        files[devices] = str(file)
    return files


def submitted(capsys: pytest.CaptureFixture[str], plan: str, *words: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    asked = ["cluster", "submit", "--kubernetes", "--force", "--format", "json", plan, *words]
    assert main(asked) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_rehearsal_shows_the_manifest_and_creates_nothing(
    cluster: Cluster, plans: dict[int, str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = (
        "--checkpoints",
        "/kept",
        "--claim",
        "disk",
        "--image",
        "own:1",
        "--name",
        "Goes On; rm -rf /",
        "--time",
        "2h",
    )
    found = submitted(capsys, plans[8], *options, *TRAIN)
    job = yaml.safe_load(found["script"])
    assert (found["engine"], found["job"], found["partition"]) == ("kubernetes", None, "default")
    assert job["metadata"] == {"name": "goes-on-rm-rf", "labels": MADE}
    assert job["spec"]["activeDeadlineSeconds"] == 7200
    inside = job["spec"]["template"]["spec"]
    container = inside["containers"][0]
    assert (container["image"], container["resources"]["limits"]) == ("own:1", {"nvidia.com/gpu": 8})
    assert inside["volumes"][1]["persistentVolumeClaim"] == {"claimName": "disk"}
    assert container["volumeMounts"][1]["mountPath"] == "/kept"
    assert "DisruptionTarget" in json.dumps(job["spec"]["podFailurePolicy"])
    assert subprocess.run(["bash", "-n"], input=container["command"][2], text=True, check=True)
    assert "{training.micro_batch}" not in container["command"][2]
    assert "3 nodes are free for it now, 1 needed" in found["remarks"]
    assert not cluster.get(JOBS)


def test_why_no_queue_takes_a_job_is_told(
    cluster: Cluster, plans: dict[int, str], capsys: pytest.CaptureFixture[str]
) -> None:
    def why_not(plan: str, *words: str, code: int = 1) -> list[str]:
        return [each["why_not"] for each in submitted(capsys, plan, *words, *TRAIN[:3], code=code)["partitions"]]

    assert "JobSet, which is not installed" in why_not(plans[16])[0]
    assert why_not(plans[8], "--set", "hardware.name=a100-sxm-80gb")[0].endswith("there are h100-sxm-80gb")
    cluster.set(JOB_SETS)
    cluster.set("nodes", node("a"), node("b", spec={"unschedulable": True}))
    assert why_not(plans[16], code=0) == [None]
    cluster.set("nodes", node("a"), node("b", ready="False"))
    assert why_not(plans[16])[0].startswith("1 nodes with 8 x h100-sxm-80gb, 2 needed")
    cluster.set("nodes", node("a"), node("b"))
    quota = {"name": "nvidia.com/gpu", "nominalQuota": "8", "borrowingLimit": "0"}
    groups = [{"flavors": [{"name": "h100", "resources": [quota]}]}]
    queue = {"metadata": {"name": "team", "namespace": "default"}, "spec": {"clusterQueue": "all"}}
    cluster.set("localqueues.kueue.x-k8s.io", queue)
    cluster.set("clusterqueues.kueue.x-k8s.io", {"metadata": {"name": "all"}, "spec": {"resourceGroups": groups}})
    assert why_not(plans[16]) == ["its quota is 8 devices, 16 are needed"]
    labels = yaml.safe_load(submitted(capsys, plans[8])["script"])["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "team"
    (cluster.folder / "refusal").write_text(
        'Error from server (Forbidden): jobs.batch is forbidden: User "me" cannot create'
    )
    assert "forbidden" in why_not(plans[8])[0]


@pytest.mark.parametrize(
    ("life", "states"),
    [
        (
            "job",
            [
                ("PENDING", 1, "waits for the quota of team: couldn't assign flavors to pod set main: insufficient"),
                ("RUNNING", 1, ""),
                ("PREEMPTED", 1, "EvictionByEvictionAPI"),
                ("PENDING", 2, ""),
                ("RUNNING", 2, ""),
                ("COMPLETED", 2, ""),
            ],
        ),
        (
            "preempt",
            [("RUNNING", 1, ""), ("PENDING", 2, "waits for the quota of team: ClusterQueue"), ("RUNNING", 2, "")],
        ),
        (
            "jobset",
            [("RUNNING", 1, ""), ("PREEMPTED", 1, "EvictionByEvictionAPI"), ("RUNNING", 2, ""), ("COMPLETED", 2, "")],
        ),
    ],
)
def test_a_job_is_followed_over_what_takes_its_nodes_away(
    cluster: Cluster, life: str, states: list[tuple[str, int, str]]
) -> None:
    moments = LIVES[life]

    def happen() -> Iterator[None]:
        for moment in moments:
            for kind in (*KINDS, "pods"):
                cluster.set(kind, *moment[kind])
            yield

    events = happen()
    next(events)
    found = []
    for state, _ in zip(follow_job(queue_of(Kubernetes()), "run", lambda: False, 0.0), moments, strict=False):
        found.append(state)
        next(events, None)
    assert [(each.state, each.turns) for each in found] == [state[:2] for state in states]
    assert all(each.reason.startswith(reason) for each, (_, _, reason) in zip(found, states, strict=True))
    assert {each.on_nodes for each in found if each.state == "RUNNING"} <= {"a", "b", "a,b"}
    assert found[-1].misses_turns, "the pods of the first turn are gone"


def test_what_the_pods_of_a_job_print_is_told_with_what_a_broken_connection_kept_back(
    cluster: Cluster, plans: dict[int, str], capsys: pytest.CaptureFixture[str]
) -> None:
    job = submitted(capsys, plans[8], "--submit", "--name", "run", *TRAIN[:3])["job"]
    with pytest.raises(QueueError, match="exists already"):
        queue_of(Kubernetes()).submit((cluster.folder / "given").read_text())
    (made,) = cluster.get(JOBS)
    runs, _, _, again, complete = LIVES["job"][1:]
    first, second = (moment["pods"][0]["metadata"]["name"] for moment in (runs, again))
    (cluster.folder / f"log-{first}").write_text(
        "2026-01-01T00:00:01.5Z one\n2026-01-01T00:00:01.50001Z two\nBREAK\n2026-01-01T00:00:01.6Z three\n"
    )
    (cluster.folder / f"log-{second}").write_text("2026-01-01T02:00:01Z four\n")
    lines: list[str] = []
    follows = follow_job(queue_of(Kubernetes()), job, lambda: False, 0.0, lines.append)
    for moment in (runs, again, complete):
        cluster.set("pods", *moment["pods"])
        cluster.set(JOBS, *({**each, "metadata": made["metadata"]} for each in moment[JOBS]))
        state = next(follows)
    assert list(follows) == []
    assert lines == ["one", "two", "three", "four"]
    assert state.is_over


def test_the_time_of_a_job_is_measured_where_no_turn_is_forgotten(
    cluster: Cluster, plans: dict[int, str], capsys: pytest.CaptureFixture[str]
) -> None:
    submitted(capsys, plans[8], "--submit", "--name", "run", *TRAIN[:3])
    (made,) = cluster.get(JOBS)
    (complete,), (pod,) = LIVES["job"][-1][JOBS], LIVES["job"][-1]["pods"]
    complete["metadata"]["uid"] = made["metadata"]["uid"]
    cluster.set("pods", pod)
    for start, figures in ((complete["status"]["startTime"], {}), (pod["metadata"]["creationTimestamp"], {TIME: 5.0})):
        cluster.set(JOBS, {**complete, "status": {**complete["status"], "startTime": start}})
        listed = list_jobs(queue_of(Kubernetes()))
        assert bool(listed.notes) is not bool(figures)
        ((kept, entry),) = listed.newly_ended
        assert (kept.job, entry.actual) == ("run", figures)


def test_only_what_was_submitted_from_here_is_ended(
    cluster: Cluster, plans: dict[int, str], capsys: pytest.CaptureFixture[str]
) -> None:
    submitted(capsys, plans[8], "--submit", "--name", "run", *TRAIN[:3])
    (own,) = cluster.get(JOBS)
    other = {**own, "metadata": {**own["metadata"], "name": "other", "uid": "x"}}
    same_name = {**own, "metadata": {**own["metadata"], "uid": "y"}}
    queue = queue_of(Kubernetes())
    for there, name in (([own, other], "other"), ([same_name], "run"), ([], "run"), ([own], "-l a=b"), ([own], "Run")):
        cluster.set(JOBS, *there)
        with pytest.raises(CapacityError):
            stop_job(name, queue)
    assert "delete" not in cluster.verbs()
    cluster.set(JOBS, own, other)
    assert main(["cluster", "stop", "--kubernetes", "run"]) == 0
    assert [each["metadata"]["name"] for each in cluster.get(JOBS)] == ["other"]
    assert cluster.verbs().count("delete") == 1


@pytest.mark.parametrize(
    "script", ["exec sleep 60", "sleep 60 | cat", "echo nonsense", "echo 'error: Unauthorized' >&2; exit 1"],
    ids=["hangs", "hangs in a child", "nonsense", "denied"],
)  # fmt: skip
def test_a_server_that_is_of_no_use_is_told_and_waits_for_nothing(cluster: Cluster, script: str) -> None:
    (cluster.folder / "kubectl").write_text(f"#!/bin/sh\n{script}\n")
    queue = queue_of(Kubernetes(Kubectl("lab", seconds=0.3)))
    with pytest.raises(LauncherError) as refused:
        list(follow_job(queue, "run", lambda: False))
    assert refused.value.hint
    with pytest.raises(CapacityError):
        queue.submit("kind: Job")


@pytest.mark.parametrize(
    ("files", "newest"),
    [
        ((), None),
        (("checkpoint-1/trainer_state.json", "checkpoint-2/weights"), "checkpoint-1"),
        (("checkpoint-9/trainer_state.json", "checkpoint-10/trainer_state.json"), "checkpoint-10"),
        (("iter_0000100/weights", "iter_0000200/weights", "latest_checkpointed_iteration.txt=100"), "iter_0000100"),
        (("step-5/.metadata", "step-6/part"), "step-5"),
    ],
)  # fmt: skip
def test_a_container_goes_on_from_the_newest_complete_checkpoint(
    tmp_path: Path, files: tuple[str, ...], newest: str | None
) -> None:
    folder = tmp_path / "kept"
    for number, entry in enumerate(files):
        name, _, text = entry.partition("=")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.parent != folder:
            shutil.os.utime(path.parent, (number, number))
    words = ["echo", "--resume", "{run.checkpoint}", "--from={run.checkpoint}/a b", "it's"]
    script = newest_checkpoint(str(folder)) + resuming(words)
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert said == (f"--resume {folder}/{newest} --from={folder}/{newest}/a b it's" if newest else "it's")
