"""What stages of a pipeline hold, how often it is filled and emptied, and who waits for whom."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate, estimate_plan, resolve_plan
from capacity_tui.engine.estimate.timing.schedule import straggling
from capacity_tui.engine.estimate.transformer import TransformerRun, transformer_run
from capacity_tui.engine.estimate.transformer.software import (
    Stages,
    balanced_last_layers,
    balanced_layers,
    even_end_layers,
    even_layers,
    head_in_layers,
)
from capacity_tui.engine.plan import Plan

CATALOG = load_catalog()


def plan(framework: str = "nanotron", **training: object) -> Plan:
    return Plan.model_validate(
        {
            "task": "train",
            "model": {"name": "llama-3.2-1b"},
            "training": {"framework": framework, "seq_len": 4096, "micro_batch": 4, "global_batch": 256, **training},
            "parallelism": {"pp": 8, "zero": 1},
            "hardware": {"name": "h100-sxm-80gb", "devices": 8},
        }
    )


def run(framework: str) -> TransformerRun:
    resolved = resolve_plan(plan(framework), CATALOG)
    assert resolved.shape is not None
    return transformer_run(resolved.plan, resolved.shape, resolved.cluster, CATALOG)


def estimate(framework: str = "nanotron", **training: object) -> Estimate:
    return estimate_plan(plan(framework, **training), None, CATALOG).estimate


def test_the_head_counts_as_layers_where_work_is_balanced() -> None:
    even, balanced = run("megatron").stages, run("nanotron").stages
    assert even == Stages(2.0, 2.0, 2.0)
    assert balanced == Stages(3.0, 3.0, 0.0)


def test_a_head_of_many_layers_slows_even_stages_most() -> None:
    even, balanced = (estimate(name).computation for name in ("megatron", "nanotron"))
    waits = [float(each.parts["pipeline_bubble"] / each.parts["compute"]) for each in (even, balanced)]
    assert waits[0] > waits[1]
    firsts = [float(estimate(name).memory.stages["first"].per_device_bytes) for name in ("megatron", "nanotron")]
    assert firsts[1] > firsts[0] * 1.2


@given(layers=st.integers(1, 128), stages=st.integers(1, 32), interleave=st.integers(1, 4), head=st.floats(0.0, 12.0))
def test_stages_hold_all_layers(layers: int, stages: int, interleave: int, head: float) -> None:
    assume(layers >= stages * interleave)
    chunks = float(stages * interleave)
    even = float(even_layers(float(layers), chunks, float(interleave)))
    assert even * stages >= layers - 1e-9
    assert 1.0 <= float(even_end_layers(float(layers), float(stages), max(even, 1.0))) <= max(even, 1.0)
    fullest = float(balanced_layers(float(layers), head, chunks, float(interleave)))
    last = float(balanced_last_layers(float(layers), head, chunks, float(interleave), fullest))
    assert fullest * stages >= layers - 1e-9 or fullest == layers
    assert 0.0 <= last <= max(fullest, float(layers))
    if fullest < layers:
        assert fullest * (stages - 1) + last >= layers - 1e-9


def test_the_head_in_layers() -> None:
    assert head_in_layers(128.0, 2.0, 64.0) == 4.0


def test_every_local_batch_costs_a_bubble() -> None:
    once, often = (estimate(local_batches=number) for number in (1, 4))
    bubbles = [float(each.computation.parts["pipeline_bubble"]) for each in (once, often)]
    assert bubbles[1] > bubbles[0]
    assert often.memory.per_device_bytes.value <= once.memory.per_device_bytes.value
    most = estimate(local_batches=64).computation.step_seconds.value
    assert most == pytest.approx(estimate(local_batches=1000).computation.step_seconds.value)


def test_nobody_waits_on_one_node_and_everybody_on_many() -> None:
    assert straggling(10.0, 0.01, 1.0) == 0.0
    waits = np.asarray(straggling(10.0, 0.01, np.array([2.0, 8.0, 128.0, 1024.0])))
    assert (np.diff(waits) > 0.0).all()
    assert waits[-1] < 0.5


def test_messages_that_block_are_paid_by_every_micro_batch() -> None:
    few, many = (float(estimate(micro_batch=size).computation.parts["pipeline_bubble"]) for size in (4, 1))
    row = CATALOG.frameworks["nanotron"]
    quiet = CATALOG.with_tables({"frameworks": CATALOG.frameworks.with_rows({
        "nanotron": row.model_copy(update={"stage_stall_us": 0.0})})})  # fmt: skip
    silent = [
        float(estimate_plan(plan(micro_batch=size), None, quiet).estimate.computation.parts["pipeline_bubble"])
        for size in (4, 1)
    ]
    assert many - silent[1] == pytest.approx(4.0 * (few - silent[0]), rel=0.2)


def test_owners_of_whole_tensors_broadcast_one_after_another() -> None:
    def seconds(broadcasts: int, devices: int) -> float:
        row = CATALOG.frameworks["internevo"].model_copy(update={"broadcasts_parameters": broadcasts})
        catalog = CATALOG.with_tables({"frameworks": CATALOG.frameworks.with_rows({"internevo": row})})
        data = {
            "task": "train",
            "model": {"name": "llama-3.2-1b"},
            "training": {"framework": "internevo", "global_batch": devices},
            "parallelism": {"zero": 1},
            "hardware": {"name": "h100-sxm-80gb", "devices": devices, "per_node": 8, "interconnect": "ib-ndr"},
        }
        return float(estimate_plan(Plan.model_validate(data), None, catalog).estimate.computation.step_seconds.value)

    small, large = (seconds(1, devices) - seconds(0, devices) for devices in (16, 512))
    assert 0.0 < small < large
