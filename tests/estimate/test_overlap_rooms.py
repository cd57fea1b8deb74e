"""What communication hides behind: the pass that needs it, one micro-batch alone for what is done once a step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Collective, HidingPass, Operator, Phase, estimate_plan
from capacity_tui.engine.estimate.timing import phase_time
from capacity_tui.engine.estimate.work import Schedule
from capacity_tui.engine.plan.files import plan_from_data

CATALOG = load_catalog()


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
