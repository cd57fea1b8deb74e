"""What several nodes write of a checkpoint, and what of a training lies in the main memory of one, by hand."""

from __future__ import annotations

import pytest

from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer
from capacity_tui.engine.storage import StoragePlan, storage_plan


def stored(nodes: int, **parallelism: object) -> StoragePlan:
    plan = {
        "model": {"name": "llama-3.2-1b"},
        "training": {"tokens": 8e9, "micro_batch": 1, "global_batch": 64, "seq_len": 2048},
        "parallelism": parallelism,
        "hardware": {"name": "h100-sxm-80gb", "devices": 8 * nodes},
    }
    return storage_plan(answer(plan_from_data(plan)))


@pytest.mark.parametrize(
    ("parallelism", "writers"),
    [
        ({"zero": 0, "tp": 1, "pp": 1}, 1),  # one replica holds all of it on one node
        ({"zero": 0, "tp": 8, "pp": 2}, 2),  # 16 devices hold one replica: two nodes of eight
        ({"zero": 1, "tp": 1, "pp": 1}, 4),  # each rank has its own shard
    ],
)
def test_a_checkpoint_is_written_by_the_nodes_that_hold_parts_of_it(
    parallelism: dict[str, object], writers: int
) -> None:
    saved = stored(4, **parallelism).checkpoints
    assert saved.writers == writers
    alone = saved.bytes / ((saved.tier.write_gbs or saved.tier.read_gbs) * 1e9)
    assert saved.save_seconds == pytest.approx(alone / writers)


def test_what_is_offloaded_lies_in_the_memory_of_the_node_for_all_of_its_devices() -> None:
    """ZeRO 1 over 8 devices of one node: each keeps an eighth of 4 + 4 + 4 bytes a parameter, the node all of it."""
    found = stored(1, zero=1, tp=1, pp=1, offload="optimizer")
    parameters = float(found.answer.estimate.model.parameters)
    assert found.memory.offloaded == pytest.approx(12 * parameters, rel=0.02)
    assert stored(1, zero=1, tp=1, pp=1, offload="none").memory.offloaded == 0
