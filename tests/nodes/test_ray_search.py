"""A search on a real Ray cluster of two nodes, one of which is lost half way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psutil
import pytest

from capacity_tui.engine.choose.search.search import search
from capacity_tui.engine.errors import MissingPartError
from capacity_tui.engine.nodes.launchers.ray_session import load_ray
from capacity_tui.engine.nodes.search.chunks import Cutting
from capacity_tui.engine.nodes.search.searching import search_on_ray
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
        cluster.shutdown()
        for left in {*psutil.Process().children(recursive=True)} - before:
            left.kill()


def workers_at_work() -> list[psutil.Process]:
    return [each for each in psutil.Process().children(recursive=True) if "ray::task" in " ".join(each.cmdline()[:1])]


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
