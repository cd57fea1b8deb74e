"""What stages of a pipeline hold, how often it fills and empties, and what communication hides behind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Collective, Estimate, HidingPass, Operator, Phase, estimate_plan, resolve_plan
from capacity_tui.engine.estimate.timing import phase_time
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
from capacity_tui.engine.estimate.work import Schedule
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data

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


def operator(phase: str, seconds: float) -> Operator:
    direction = "forward" if phase == "forward" else "backward"
    return Operator(phase, "compute", direction, "layer", seconds, 0.0, 1.0, 1.0, launches=0.0)


def exposed(*collectives: Collective, micro_batches: float = 1.0) -> list[float]:
    """Return what is seen of each collective beside one second of forward and two of backward pass."""
    work = (operator("forward", 1.0), operator("backward", 2.0))
    phase = Phase("step", work, collectives, Schedule(micro_batches))
    return [float(seconds) for seconds in phase_time(phase).exposed]


def once(seconds: float, beside: HidingPass = "backward", overlap: float = 1.0) -> Collective:
    return Collective("a", "data_parallel", seconds, overlap=overlap, per_step=True, hides_behind=beside)


def each(seconds: float, beside: HidingPass = "both") -> Collective:
    return Collective("b", "tensor_parallel", seconds, overlap=1.0, hides_behind=beside)


@pytest.mark.parametrize(("beside", "room"), [("forward", 1.0), ("backward", 2.0), ("both", 3.0)])
def test_what_is_done_once_a_step_hides_behind_one_micro_batch(beside: HidingPass, room: float) -> None:
    for micro_batches in (1.0, 8.0):
        assert exposed(once(room, beside), micro_batches=micro_batches) == pytest.approx([0.0])
        assert exposed(once(room + 5.0, beside), micro_batches=micro_batches) == pytest.approx([5.0])


def test_collectives_share_the_time_there_is() -> None:
    alone = exposed(once(2.0))
    beside = exposed(each(1.5), once(2.0))
    assert alone == pytest.approx([0.0])
    assert beside == pytest.approx([0.0, 1.0])
    assert sum(exposed(each(2.0, "backward"), each(2.0, "backward"))) == pytest.approx(2.0)


def test_passes_do_not_lend_each_other_time() -> None:
    assert exposed(each(2.0, "forward")) == pytest.approx([1.0])
    assert exposed(each(1.0, "forward"), each(2.0, "backward")) == pytest.approx([0.0, 0.0])


def test_more_work_never_makes_a_step_shorter() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        sizes = rng.uniform(0.0, 4.0, 5)

        def seconds(forward: float, sizes: np.ndarray = sizes) -> float:
            work = (operator("forward", forward), operator("backward", sizes[0]))
            collectives = (
                each(sizes[1]),
                each(sizes[2], "forward"),
                once(sizes[3], "backward", 0.7),
                once(sizes[4], "forward"),
            )
            return float(phase_time(Phase("step", work, collectives, Schedule(2.0))).seconds)

        assert seconds(1.0) <= seconds(1.1) + 1e-9


def step_seconds(zero: int, **software: object) -> float:
    data = {
        "model": {"name": "llama-3-8b"},
        "training": {"framework": "megatron", "global_batch": 256, "seq_len": 4096},
        "parallelism": {"zero": zero, "tp": 2},
        "hardware": {"name": "a100-sxm-80gb", "devices": 64, "per_node": 8, "interconnect": "eth-25"},
    }
    row = CATALOG.frameworks["megatron"].model_copy(update=software)
    catalog = CATALOG.with_tables({"frameworks": CATALOG.frameworks.with_rows({"megatron": row})})
    return float(estimate_plan(plan_from_data(data), None, catalog).estimate.computation.step_seconds.value)


def test_updated_parameters_are_gathered_in_full_view_unless_prefetched() -> None:
    hidden, exposed_ = step_seconds(1, prefetches_parameters=1), step_seconds(1, prefetches_parameters=0)
    assert exposed_ > hidden * 1.01
    nothing = step_seconds(0, prefetches_parameters=0)
    assert nothing == pytest.approx(step_seconds(0, prefetches_parameters=1))


def test_sharded_gradients_are_reduced_with_every_micro_batch() -> None:
    states, gradients = (step_seconds(zero, dp_overlap=0.0) for zero in (1, 2))
    assert gradients > states * 1.05


def test_a_wider_collective_never_hides_more() -> None:
    wide = exposed(replace(once(4.0), overlap=0.5))
    assert wide == pytest.approx([2.0])
