"""Collectives over nodes that ssh reaches: what they say becomes a link, and a plan that names it rests on it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import estimate_plan, figures_of, resolve_plan
from capacity_tui.engine.nodes import keep_link, sample_network
from capacity_tui.engine.nodes.launcher import Ssh, read_hosts
from capacity_tui.engine.nodes.sampling import LinkFacts, link_facts, node_counts, sample_group
from capacity_tui.engine.nodes.slurm import Slurm
from capacity_tui.engine.runs.sampling import COLLECTIVES, Group, Timing, sample_of
from tests.nodes.slurm_cluster import SlurmCluster
from tests.plans import TRAINING, plan_of

STEP = "computation.step_seconds"
FACTS = LinkFacts(5e9, 2e-5, 0.1, 8, "2026-11-22", "nccl")


def samples_of(bandwidth: float, hop: float, nodes: int) -> list:
    group = Group(nodes, "gloo", nodes)
    found = []
    for name, passes in (("all_gather", 1), ("reduce_scatter", 1), ("all_reduce", 2)):
        for size in (2**10, 2**20, 2**28):
            seconds = passes * (hop * (nodes - 1) + size * (nodes - 1) / nodes / bandwidth)
            found.append(sample_of(name, size, group, Timing(seconds, seconds, 0.0, 5)))
    return found


def test_timings_say_bandwidth_and_step() -> None:
    facts = link_facts([each for nodes in (2, 4, 8) for each in samples_of(2e9, 1e-4, nodes)], "gloo")
    assert facts is not None
    assert facts.bandwidth == pytest.approx(2e9, rel=0.05)
    assert facts.hop_seconds == pytest.approx(1e-4, rel=0.05)
    assert (facts.nodes, facts.error < 0.05) == (8, True)
    assert link_facts([], "gloo") is None


def test_a_plan_that_names_the_link_rests_on_what_was_measured(tmp_path: Path) -> None:
    keep_link("our-network", FACTS, tmp_path)
    catalog = load_catalog(tmp_path)
    assert catalog.problems == ()
    plan = plan_of(TRAINING, {"hardware.interconnect": "our-network"})
    outermost = resolve_plan(plan, catalog).cluster.levels[-1]
    assert outermost.known.origin == "measured"
    assert outermost.sustained(0.5) * 8 == pytest.approx(FACTS.bandwidth)  # eight devices share what a node reaches
    assert outermost.hop_seconds == pytest.approx(FACTS.hop_seconds)
    plans = plan, plan_of(TRAINING)
    slow, fast = (figures_of(estimate_plan(each, None, catalog).estimate)[STEP].value for each in plans)
    assert slow > fast


def test_the_wait_for_other_nodes_is_surer_once_their_network_was_measured(tmp_path: Path) -> None:
    def width(error: float | None, tensor_parallel: int) -> float:
        folder = tmp_path / f"{error} {tensor_parallel}"
        link = keep_link("our-network", replace(FACTS, error=error or 0.0), folder)
        if error is None:  # as it was before anybody told the error
            link.write_text("".join(line for line in link.read_text().splitlines(True) if "error:" not in line))
        catalog = load_catalog(folder)
        assert catalog.problems == ()
        changes = {"hardware.interconnect": "our-network", "parallelism.tp": tensor_parallel}
        found = estimate_plan(plan_of(TRAINING, changes), None, catalog).estimate.ranges["step"]
        return float(found.high / found.low)

    assert width(0.05, 16) < width(0.1, 16) < width(None, 16)
    assert width(5.0, 16) == width(None, 16), "timings that say little widen nothing"
    assert width(0.05, 8) == width(None, 8), "links inside a node were not measured"


def test_collectives_run_between_hosts_and_say_why_where_they_cannot(ssh_hosts: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    assert node_counts(9) == (2, 4, 8)
    told = []
    found = sample_network(read_hosts(ssh_hosts), sys.executable, (2**13, 2**20), told.append)
    assert [group.failure for group in told] == [""]
    assert {sample.shape["nodes"] for group in found.groups for sample in group.samples} == {2}
    assert found.link is not None
    assert found.link.bandwidth > 1e6
    elsewhere = sample_group(Ssh(("gone", "n1")), ("gone", "n1"), (2**13,), sys.executable)
    assert elsewhere.failure.startswith("gone: ")
    without = sample_group(read_hosts(ssh_hosts), ("n1", "n2"), (2**13,), "/no/such/python")
    assert "n1: exit code 127" in without.failure


def test_collectives_run_through_slurm(slurm: SlurmCluster) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    found = sample_network(Slurm(), sys.executable, (2**13, 2**20), lambda _: None)
    assert [group.failure for group in found.groups] == ["", ""]
    assert {sample.shape["nodes"] for group in found.groups for sample in group.samples} == {2, 4}
    assert {sample.name for sample in found.groups[1].samples} == set(COLLECTIVES)
    assert found.link is not None
