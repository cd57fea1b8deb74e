"""Real Ray clusters: nodes are detected and their network sampled, one is lost, a killed search goes on."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from capacity_tui.engine.errors import HardwareError, MissingPartError
from capacity_tui.engine.nodes import detect_cluster, sample_network, search_on_ray
from capacity_tui.engine.nodes.chunks import Cutting
from capacity_tui.engine.nodes.launcher import Order
from capacity_tui.engine.nodes.ray_nodes import RayNodes, load_ray
from capacity_tui.engine.runs.sampling import COLLECTIVES
from capacity_tui.engine.solve.search import search
from tests.nodes.questions import questions

try:
    load_ray()  # as the program does, which turns off what Ray does of its own accord
except MissingPartError:
    pytest.skip("the extra ray is not installed", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray leaves files open


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Ray cluster of two nodes on this machine, each with one worker; all of it is killed at the end."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    from ray.cluster_utils import Cluster

    before = {*psutil.Process().children(recursive=True)}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        yield cluster
    finally:
        load_ray().shutdown()
        cluster.shutdown()
        for left in {*psutil.Process().children(recursive=True)} - before:
            left.kill()


def workers_at_work() -> list[psutil.Process]:
    return workers("ray::Worker.evaluate")


def workers(name: str = "ray::Worker") -> list[psutil.Process]:
    return [each for each in psutil.Process().children(recursive=True) if name_of(each).startswith(name)]


def name_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()[:1])
    except psutil.Error:  # it ended meanwhile
        return ""


def test_a_search_outlives_its_workers_and_a_node(two_nodes: Any) -> None:
    question = questions()["unlike settings, a front of three"]

    def lose_a_node() -> bool:
        if two_nodes.worker_nodes and (at_work := workers_at_work()):
            for each in at_work:
                each.kill()
            two_nodes.remove_node(next(iter(two_nodes.worker_nodes)), allow_graceful=False)
        return False

    found = search_on_ray(two_nodes.address, question, stopped=lose_a_node, cutting=Cutting(1, 1, 1))
    assert not two_nodes.worker_nodes
    assert found.lost > 0
    assert replace(found.answer, seconds=0.0) == replace(search(question), seconds=0.0)


def test_workers_wait_for_the_next_search_and_end_after_a_while(
    two_nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity_tui.engine.nodes.ray_workers.WARM_SECONDS", 5.0)
    asked = list(questions().values())[:2]
    first = search_on_ray(two_nodes.address, asked[0]).answer
    left = {worker.pid for worker in workers()}
    assert len(left) == 2
    second = search_on_ray(two_nodes.address, asked[1]).answer
    assert {worker.pid for worker in workers()} == left
    for question, answer in zip(asked, (first, second), strict=True):
        assert replace(answer, seconds=0.0) == replace(search(question), seconds=0.0)
    until = time.monotonic() + 30.0
    while workers() and time.monotonic() < until:
        time.sleep(0.1)
    assert not workers()


def test_workers_that_never_start_end_the_search_with_what_ray_says(
    two_nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def __init__(self, *_: object) -> None:
            raise OSError("no space left on the disk")

        def lacking(self) -> str:
            return ""

    monkeypatch.setattr("capacity_tui.engine.nodes.ray_workers._worker_class", lambda: Broken)
    with pytest.raises(HardwareError, match=r"no worker starts, after 3 tries: .*no space left on the disk"):
        search_on_ray(two_nodes.address, next(iter(questions().values())))


def test_nodes_of_a_ray_cluster_are_detected_and_one_that_dies_is_named(two_nodes: Any, tmp_path: Path) -> None:
    found = detect_cluster(RayNodes(two_nodes.address), "mine", 60)
    assert len(found.nodes) == 2
    assert not found.silent
    assert {node.memory_bytes for node in found.nodes} == {found.nodes[0].memory_bytes}

    reach, begun = RayNodes(two_nodes.address), tmp_path / "begun"
    lost = next(iter(two_nodes.worker_nodes))

    def lose_it() -> None:
        while not begun.exists() or len(begun.read_text()) < 2:
            time.sleep(0.05)
        two_nodes.remove_node(lost, allow_graceful=False)

    losing = threading.Thread(target=lose_it)
    losing.start()
    order = Order(("sh", "-c", f"printf x >> {begun}; sleep 4; echo here"), seconds=60)
    answers = list(reach.run(order, reach.nodes()))
    losing.join()
    assert sorted(answer.output for answer in answers) == ["", "here\n"]
    (failed,) = (answer for answer in answers if answer.failure)
    assert "the task was lost" in failed.failure


def test_collectives_run_through_ray(two_nodes: Any) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    found = sample_network(RayNodes(two_nodes.address), sys.executable, (2**13, 2**20), lambda _: None)
    assert [group.failure for group in found.groups] == [""]
    assert {sample.name for sample in found.groups[0].samples} == set(COLLECTIVES)
    assert found.link is not None


def test_a_search_that_is_killed_goes_on_from_there(
    two_nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STATE", "DATA", "CONFIG"):
        monkeypatch.setenv(f"CAPACITY_TUI_{name}", str(tmp_path))
    question, cutting = questions()["unlike settings, a front of three"], Cutting(1, 1, 1)

    def chunks_done() -> int:
        return sum(file.read_bytes().count(b"\n") for file in tmp_path.rglob("searches/*.jsonl"))

    def die_half_way() -> bool:
        if chunks_done():
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        search_on_ray(two_nodes.address, question, stopped=die_half_way, cutting=cutting)
    assert chunks_done(), "what was done is kept"
    found = search_on_ray(two_nodes.address, question, cutting=cutting)
    assert found.resumed > 0
    assert not chunks_done(), "nothing is left of a search that is done"
    assert replace(found.answer, seconds=0.0) == replace(search(question), seconds=0.0)
