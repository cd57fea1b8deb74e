"""Kernels on one node of each kind of a kept cluster: plans that name the cluster rest on what they say."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.estimate.estimate import Estimate
from capacity_tui.engine.nodes import Inventory, NodeKernels, keep_cluster, keep_measured_kind
from capacity_tui.engine.nodes.launcher import NodeAnswer, Order, read_hosts
from capacity_tui.engine.runs.sampling.kernels import kernel_grid, scales
from tests.nodes.inventories import GIB, H100, inventory, node
from tests.plans import TRAINING, plan_of

EPYC = "epyc-9654"


def on_processors(**other: object) -> Inventory:
    """Hosts without accelerators, one kind with one processor and one with two."""
    values: dict[str, object] = {"device": "", "devices": 0, "processor": EPYC, "ports": None, "sockets": 1, **other}
    ones = [node(name, **values) for name in ("gone", "n1", "n2")]
    return inventory(*ones, *(node(f"m{n}", **{**values, "sockets": 2, "memory_bytes": 64 * GIB}) for n in range(3)))


def estimate(name: str, **hardware: object) -> Estimate:
    changes = {"hardware.name": name, **{f"hardware.{field}": value for field, value in hardware.items()}}
    return estimate_plan(plan_of(TRAINING, changes), None, load_catalog()).estimate


SMALL_GRID = """#!{python}
import dataclasses, json, os, sys

os.environ["OMP_NUM_THREADS"] = "1"  # threads that wait for one another take a hundred times longer beside other work
from capacity_tui.engine.runs.sampling import kernel_samples

small = {{"rows": (64, 512), "widths": (256, 1024), "elements": (2**20, 2**24)}}
quick = dataclasses.replace(kernel_samples.scales()["cpu_quick"], **small)
kernel_samples.scales = lambda: {{"cpu_quick": quick}}
kernel_samples.main(json.loads(sys.argv[3]))
"""


@pytest.fixture
def small_grid(tmp_path: Path) -> str:
    """A Python of the nodes that times small kernels alone, which take a second."""
    program = tmp_path / "python"
    program.write_text(SMALL_GRID.format(python=sys.executable))
    program.chmod(0o755)
    return str(program)


def test_one_node_of_each_kind_is_timed_and_others_say_why_not(
    ssh_hosts: Path, own_folders: Path, small_grid: str
) -> None:
    cluster = on_processors()
    keep_cluster(cluster, load_catalog())
    timed = NodeKernels(read_hosts(ssh_hosts), cluster, small_grid, load_catalog(), True, ("gemm", "copy"))
    one, two = sorted(timed.sample_kinds(), key=lambda kind: kind.failure)
    assert (one.device, one.node, one.nodes, one.failure) == (EPYC, "n1", 3, "")
    assert one.measured is not None
    assert {"gemm.fp32", "stream"} <= {error.name for error in one.measured.errors}
    assert "all 2 processors" in two.failure
    before = estimate("big", devices=1)
    assert keep_measured_kind("big", two) is None
    assert keep_measured_kind("big", one) is not None
    after = estimate("big", devices=1)
    assert "measured on big" in str(after.basis)
    assert after.computation.step_seconds.value > 5 * before.computation.step_seconds.value, "two cores are no EPYC"
    assert estimate(EPYC, devices=1).computation.step_seconds.value == before.computation.step_seconds.value


class Recorded:
    """Nodes that print what they would have timed."""

    name = "recorded"

    def __init__(self, **answers: NodeAnswer) -> None:
        self.answers = answers
        self.orders: list[Order] = []

    def nodes(self) -> tuple[str, ...]:
        return tuple(self.answers)

    def run(self, order: Order, nodes: Sequence[str]) -> Iterator[NodeAnswer]:
        self.orders.append(order)
        yield from (self.answers[name] for name in nodes)


def samples_at(share: float) -> str:
    """Return what an H100 prints whose products reach a share of its peak."""
    lines = [json.dumps({"software": {"torch": "2.13.0"}, "context_bytes": 5e8})]
    for case in kernel_grid(scales()["gpu_quick"], ("bf16",), frozenset({"gemm"})):
        seconds = 2 * math.prod(case.shape[side] for side in "mnk") / (share * 989.4e12)
        timing = {"seconds": seconds, "best": seconds, "spread": 0.0, "runs": 9, "date": "2026-11-20"}
        told = {"name": case.kernel, "step": case.step, "dtype": case.dtype, "shape": dict(case.shape), **timing}
        lines.append(json.dumps(told))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (NodeAnswer("g00", failure="exit code 3: No module named torch"), "No module named torch"),
        (NodeAnswer("g00", output="Segmentation fault\n"), "too few samples"),
    ],
)
def test_a_node_that_cannot_is_named_and_nothing_is_kept(own_folders: Path, answer: NodeAnswer, failure: str) -> None:
    (kind,) = NodeKernels(Recorded(g00=answer), inventory(node("g00")), "python3", load_catalog()).sample_kinds()
    assert failure in kind.failure
    assert keep_measured_kind("big", kind) is None
    (kind,) = NodeKernels(Recorded(other=answer), inventory(node("g00")), "python3", load_catalog()).sample_kinds()
    assert kind.failure == "recorded reaches none of its nodes"


def test_a_row_whose_curve_makes_no_sense_is_told_and_left_out(own_folders: Path) -> None:
    nodes = inventory(node("g0"))
    keep_cluster(nodes, load_catalog())
    (kind,) = NodeKernels(
        Recorded(g0=NodeAnswer("g0", output=samples_at(0.4))), nodes, "python3", load_catalog()
    ).sample_kinds()
    path = keep_measured_kind("big", kind)
    assert path is not None
    row = yaml.safe_load(path.read_text())
    row[f"big-{H100}"]["curves"] = [{"name": "gemm.bf16", "sizes": [2.0, 1.0], "ratios": [0.5]}]
    path.write_text(yaml.safe_dump(row))
    catalog = load_catalog(path.parents[1])
    assert not catalog.measured_devices.values()
    assert "sizes ascend" in str(catalog.problems[0])


def test_plans_that_name_the_cluster_rest_on_it_and_are_surer(own_folders: Path) -> None:
    nodes = inventory(*(node(f"g{number}") for number in range(4)))
    keep_cluster(nodes, load_catalog())
    asked = Recorded(g0=NodeAnswer("g0", output=samples_at(0.4)))
    before = estimate("big", devices=8)
    (kind,) = NodeKernels(asked, nodes, "python3", load_catalog(), quick=True).sample_kinds()
    assert '"where": "gpu"' in asked.orders[0].words[-1]
    keep_measured_kind("big", kind)
    after = estimate("big", devices=8)
    assert after.computation.step_seconds.value > 1.2 * before.computation.step_seconds.value
    assert "measured on big, 2026-11-20" in str(after.basis)
    elsewhere = estimate(H100, devices=8, per_node=8)
    assert "measured on big" not in str(elsewhere.basis)

    def width(found: Estimate) -> float:
        return float(found.ranges["step"].high / found.ranges["step"].low)

    assert width(after) < width(before)
