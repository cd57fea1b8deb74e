"""What the modes make of the data of a plan: open parts with reasons, and figures that move only where it is stated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster.levels import NodeHost
from capacity_tui.engine.estimate import estimate_resolved
from capacity_tui.engine.estimate.data import usual_workers
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve.modes import Comparison, compare, fill
from capacity_tui.engine.solve.modes.run_sections import with_data_settings

TEXT: dict[str, object] = {
    "model": {"name": "llama-3.2-1b"},
    "training": {"tokens": 1e9, "micro_batch": 2, "global_batch": 32, "seq_len": 2048},
    "hardware": {"name": "aws-p5-48xlarge"},
}
IMAGES: dict[str, object] = {
    "model": {"name": "resnet-50"},
    "training": {"samples": 1_281_167, "epochs": 90, "micro_batch": 256},
    "hardware": {"name": "aws-p5-48xlarge"},
}


def compared(plan: dict[str, object], **data: object) -> Comparison:
    return compare(plan_from_data({**plan, "data": data}))


@pytest.fixture(scope="module")
def streamed() -> Comparison:
    return compared(TEXT, format="jsonl", source="auto", phases="auto")


def test_a_silent_plan_gets_a_loader_and_keeps_its_figures() -> None:
    for plan in (TEXT, IMAGES):
        found = fill(plan_from_data(plan), "balanced")
        assert "auto" not in (found.plan.data.cache, found.plan.data.workers, found.plan.data.prefetch)
        assert all(found.running[f"data.{name}"] for name in ("format", "cache", "workers", "shuffle_buffer"))
        again = estimate_resolved(found.resolved, load_catalog()).computation.step_seconds.value
        assert again == found.estimate.computation.step_seconds.value


def test_only_the_mode_that_wastes_no_time_streams(streamed: Comparison) -> None:
    assert [each.plan.data.source for each in streamed.columns] == ["local", "local", "streaming"]
    buffers = [each.plan.data.shuffle_buffer for each in streamed.columns]
    assert buffers == sorted(buffers, key=lambda size: -int(size))
    assert "shuffled" in streamed.extreme.running["data.source"]


def test_a_disk_without_room_makes_every_mode_stream() -> None:
    catalog = load_catalog()
    plan = fill(plan_from_data({**TEXT, "data": {"format": "jsonl", "source": "auto"}}), "conservative")
    small = replace(plan.resolved.cluster, host=NodeHost(cores=12, disk_kind="NVMe", disk_free_bytes=1e9))
    wanted = replace(plan.resolved, cluster=small)
    opened = wanted.plan.model_copy(update={"data": plan.plan.data.model_copy(update={"source": "auto"})})
    found, _, reasons = with_data_settings(replace(wanted, plan=opened), plan.mode, plan.estimate, catalog)
    assert found.plan.data.source == "streaming"
    assert "no room" in reasons["data.source"]


def test_open_phases_are_a_short_and_a_long_part_of_one_whole(streamed: Comparison) -> None:
    for each in streamed.columns:
        first, second = each.plan.data.phases
        assert first.share + second.share == pytest.approx(1)
        assert first.changes["training.seq_len"] < 2048
        assert not second.changes


def test_workers_follow_what_is_to_be_decoded_and_stop_at_the_cores() -> None:
    low, middle, high = compared(IMAGES, format="webdataset").columns
    most = usual_workers(low.resolved.cluster.host.cores or 0)
    assert low.plan.data.workers == middle.plan.data.workers == high.plan.data.workers == most
    assert low.plan.data.cache == "ram"
    assert high.estimate.bottleneck.kind == "input"
