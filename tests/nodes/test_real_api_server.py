"""A real API server takes what is exported and submitted, and what it answers is understood, refused, hung or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.nodes import detect_cluster
from capacity_tui.engine.nodes.jobs import queue_of
from capacity_tui.engine.nodes.kubectl import Kubectl
from capacity_tui.engine.nodes.kubernetes import Kubernetes
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.tui.cli import main
from tests.nodes.api_server import ApiServer
from tests.nodes.slurm_cluster import NotStartedError
from tests.nodes.test_kubernetes import recording
from tests.present.test_export_targets import LINES, WISHES, answered, files_of

TRAINED = "llama-3.1-8b full finetune 8xh100 2k 50M"


@pytest.fixture(scope="module")
def _started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    server = ApiServer(tmp_path_factory.mktemp("api-server"))
    try:
        try:
            server.start()
        except NotStartedError as reason:
            pytest.skip(f"no API server of our own: {reason}")
        for node in json.loads(recording("kubernetes_cluster.json"))["nodes"]:
            given = {key: value for key, value in node["metadata"].items() if key in ("name", "labels")}
            server.create({**node, "metadata": given})
        yield server
    finally:
        server.stop()


@pytest.fixture
def server(_started: ApiServer, monkeypatch: pytest.MonkeyPatch, own_folders: Path) -> ApiServer:
    monkeypatch.setenv("KUBECONFIG", str(_started.configuration))
    return _started


def test_its_nodes_are_those_that_were_recorded(server: ApiServer) -> None:
    found = detect_cluster(Kubernetes(Kubectl("admin")), "mine")
    assert {facts.node: facts.devices for facts in found.nodes} == {
        **dict.fromkeys(("a", "b", "cut", "drained"), 8), "odd": 7, "sliced": 0, "l4": 4,
    }  # fmt: skip
    assert set(found.silent) == {"lost"}
    assert not found.queues
    assert not found.notes, "a cluster without Kueue is no trouble"


def test_what_it_has_definitions_of_is_taken_as_it_is_exported(server: ApiServer) -> None:
    texts = [files_of(line, "kubernetes", WISHES) for line in LINES]
    own = [text for files in texts for name, text in files.items() if name in ("job.yaml", "deployment.yaml")]
    jobs = [text for text in own if "kind: JobSet" not in text]
    assert len(jobs) >= 6
    server.kubectl("create", "--dry-run=server", "--validate=strict", "--filename=-", given="\n---\n".join(jobs))


def test_a_job_is_rehearsed_created_listed_and_ended(
    server: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(dump_plan(answered(TRAINED).plan))
    asked = ["cluster", "submit", "--kubernetes", "--force", "--format", "json", str(plan), "--name", "run"]
    command = ["--", "train.py", "--resume", "{run.checkpoint}"]
    kept = ["--claim", "disk", "--checkpoints", "/kept"]
    assert main([*asked, *kept, *command]) == 0
    assert "2 nodes are free for it now, 1 needed" in json.loads(capsys.readouterr().out)["remarks"]
    assert not json.loads(server.kubectl("get", "jobs", "--output=json"))["items"]
    assert main([*asked, *kept, "--submit", *command]) == 0
    assert main([*asked, "--submit", *command]) != 0, "there is one of this name"
    job = queue_of(Kubernetes()).job_now("run")
    assert job is not None
    assert (job.state, job.gpus, job.reason) == ("PENDING", 8, "no pod yet"), "nothing here starts pods"
    assert main(["cluster", "stop", "--kubernetes", "run"]) == 0
    assert queue_of(Kubernetes()).job_now("run") is None


def test_who_may_do_nothing_is_told_so(server: ApiServer, tmp_path: Path) -> None:
    for context, words in (("guest", "forbidden"), ("stranger", "Unauthorized")):
        with pytest.raises(LauncherError, match=words) as refused:
            detect_cluster(Kubernetes(Kubectl(context)), "mine")
        assert "auth can-i get nodes" in str(refused.value.hint)
    with pytest.raises(LauncherError, match="context"):
        detect_cluster(Kubernetes(Kubectl("elsewhere")), "mine")


def test_one_that_hangs_is_given_up(server: ApiServer) -> None:
    server.hang()
    try:
        with pytest.raises(LauncherError, match="no answer within 1 s"):
            detect_cluster(Kubernetes(), "mine", seconds=1.0)
    finally:
        server.go_on()
