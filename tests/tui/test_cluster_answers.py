"""What the engine tells the view of a cluster: thousands of devices, and a Slurm that does not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.nodes import keep_cluster
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.plan_document import PlanDocument
from tests.nodes.inventories import inventory, sixteen

FABRIC = """\
model: {name: llama-3.1-70b}
training: {seq_len: 8192, micro_batch: 1, global_batch: 4096, framework: megatron}
parallelism: {tp: 8, pp: 8, zero: 1}
hardware: {name: h100-sxm-80gb, devices: 16384, per_node: 8, levels: [{name: rack, devices: 64}, {name: fabric}]}
"""


@pytest.fixture(scope="module")
def document() -> PlanDocument:
    return CapacityEngine().open(FABRIC)


def test_a_plan_on_thousands_of_devices_has_rows_of_racks(
    document: PlanDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    column = document.compare().columns[0]
    assert column.verdict is not Verdict.UNKNOWN
    first, last = document.clustered(column.mode)
    assert first.nodes is None
    assert [row.cells[0].strip() for row in first.placement.rows] == ["fabric", "rack", "node"]
    assert any(remark.startswith("hottest link: ") for remark in first.placement.remarks)
    assert last.nodes is not None
    assert last.nodes.usual == "rack"
    everything, *racks = last.nodes.rows["rack"]
    assert everything.counts == "16 384 planned"
    assert len(racks) == 8
    assert racks[0].change == {"hardware.devices": 2048}
    assert "cluster detect" in last.queue.remarks[0]


def test_a_slurm_that_does_not_answer_is_named_and_the_plans_own_devices_stay(
    document: PlanDocument, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = tmp_path / "scontrol"
    command.write_text("#!/bin/sh\necho 'slurm_load_node error: Unable to contact slurm controller' >&2\nexit 1\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    *_, last = document.clustered(document.compare().columns[0].mode)
    assert "Unable to contact slurm controller" in last.queue.remarks[0]
    assert last.nodes is not None
    assert last.nodes.source == "the plan's own hardware"


def test_a_kept_cluster_stands_where_no_slurm_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"CAPACITY_TUI_{name}", str(tmp_path / name))
    monkeypatch.setenv("PATH", "")
    keep_cluster(inventory(*sixteen(), silent={"g17": "no answer within 60 s"}), load_catalog())
    fits = FABRIC.replace("devices: 16384", "devices: 64")
    for text, source in ((fits, "big as seen on 2026-11-20"), (FABRIC, "the plan's own hardware")):
        opened = CapacityEngine().open(text)
        *_, last = opened.clustered(opened.compare().columns[0].mode)
        assert last.nodes is not None
        assert last.nodes.source.startswith(source), "a plan that the cluster cannot hold is shown by itself"
        if text == fits:
            everything = last.nodes.rows[last.nodes.usual][0]
            assert everything.counts == "64 planned · 64 free · 8 down"
            assert everything.change == {"hardware.devices": 128}
            assert "not known" in last.queue.remarks[0]


def test_an_example_stands_where_no_cluster_is_and_cannot_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    opened = CapacityEngine().open("model: {name: gpt2}\nhardware: {name: rtx-4090}\n")
    *_, last = opened.clustered(opened.compare().columns[0].mode)
    assert last.nodes is not None
    assert last.nodes.is_example
    everything, *rows = last.nodes.rows["node"]
    assert everything.counts.startswith("1 planned")
    assert all(row.refusal.startswith("EXAMPLE") and not row.change for row in (everything, *rows))
    assert last.queue.rows
    assert last.queue.remarks[0].startswith("EXAMPLE")
