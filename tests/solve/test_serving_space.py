"""The space of serving: arrays say what each plan says by itself, in every figure and at both ends of its range."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import METRICS, Estimate, ResolvedPlan, estimate_plan, resolve_plan
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import REPLICAS_FILL_DEVICES, Plan, with_values
from capacity_tui.engine.solve.modes.modes import with_placeholders
from capacity_tui.engine.solve.space import Axis
from capacity_tui.engine.solve.space.axes import Grid
from capacity_tui.engine.solve.space.configurations import ServingSpace, serving_space
from capacity_tui.engine.solve.space.space import Block
from capacity_tui.engine.uncertainty import Interval

MODELS = ("llama-3.1-70b", "qwen3-30b-a3b")
# Every kind of field that may vary: sizes of the layout, numbers of requests, and settings that change several numbers.
VALUES: dict[str, tuple[object, ...]] = {
    "parallelism.tp": (1, 2, 3, 8),
    "parallelism.pp": (1, 2, 8),
    "parallelism.ep": (1, 4),
    "parallelism.dp": (1, 2),
    "inference.batch": (1, 7, 512),
    "inference.prompt_tokens": (128, 30000),
    "inference.output_tokens": (1, 900),
    "inference.engine": ("vllm", "sglang", "llama.cpp", "transformers"),
    "inference.weights": ("bf16", "fp8", "q4_k_m"),
    "inference.kv_cache": ("fp16", "fp8"),
    "inference.gpu_memory_utilization": (0.5, 0.95),
    "inference.max_num_batched_tokens": (None, 2048),
    "inference.gpu_layers": (None, 20),
    "inference.host_expert_layers": (None, 20),
    "inference.num_speculative_tokens": (0, 3),
    "inference.prefix_cache_hit_rate": (0.0, 0.6),
    "inference.output_tokens_stddev": (0.0, 200.0),
    "inference.request_rate": (None, 0.5, 40.0),
    "inference.concurrency": (None, 16, 300),
}


def plan_of(model: str) -> Plan:
    return Plan.model_validate(
        {
            "task": "infer",
            "model": {"name": model},
            "inference": {"engine": "vllm"},
            "hardware": {"name": "h100-sxm-80gb", "devices": 8},
        }
    )


@cache
def resolved_of(model: str) -> ResolvedPlan:
    return resolve_plan(with_placeholders(plan_of(model), load_catalog()), load_catalog())


def space_of(paths: tuple[str, ...], model: str) -> ServingSpace:
    resolved, axes = resolved_of(model), (Axis(path, VALUES[path]) for path in paths)
    assert resolved.shape is not None
    return serving_space(plan_of(model), resolved, resolved.shape, load_catalog(), axes)


def at(value: Number, place: tuple[int, ...], grid: Grid) -> float:
    return float(np.broadcast_to(np.asarray(value, dtype=np.float64), grid.shape)[place])


def assert_same(block: Block, place: tuple[int, ...], alone: Estimate) -> None:
    for key, metric in METRICS.items():
        value, several, one = block.value(key), block.interval(key), metric.read(alone)
        if several is None or one is None or value is None:
            # What one plan of several lacks, such as the waiting of more requests than can be answered, is without end.
            assert one is None, key
            assert value is None or not np.isfinite(at(value, place, block.grid)), key
            continue
        wanted = one if isinstance(one, Interval) else Interval(one, one, one)
        assert at(value, place, block.grid) == pytest.approx(float(wanted.value), rel=1e-9), key
        for end in ("value", "low", "high"):
            found = at(getattr(several, end), place, block.grid)
            assert found == pytest.approx(float(getattr(wanted, end)), rel=1e-9), (key, end)


PATHS = st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True).map(tuple)


@settings(max_examples=20, deadline=None)
@given(PATHS, st.sampled_from(MODELS), st.data())
def test_a_grid_of_serving_says_what_each_plan_says_by_itself(
    paths: tuple[str, ...], model: str, data: st.DataObject
) -> None:
    several = [piece() for piece in space_of(paths, model).lazy_blocks(50)]
    for number in data.draw(st.lists(st.integers(0, 10**6), max_size=3)) if several else ():
        block = several[number % len(several)]
        position = data.draw(st.integers(0, block.grid.size - 1))
        place = tuple(int(where) for where in np.unravel_index(position, block.grid.shape))
        plan = with_values(plan_of(model), block.grid.at(position))
        if np.broadcast_to(block.feasible, block.grid.shape)[place]:
            assert_same(block, place, estimate_plan(plan).estimate)
        else:
            with pytest.raises(CapacityError):
                estimate_plan(plan)


@settings(max_examples=8, deadline=None)
@given(PATHS, st.sampled_from(MODELS))
def test_every_setting_of_serving_is_evaluated_or_excluded_with_a_reason(paths: tuple[str, ...], model: str) -> None:
    space = space_of(paths, model)
    assert space.size == Grid(tuple(Axis(path, VALUES[path]) for path in paths)).size
    assert (
        sum(block.grid.count(block.feasible) for block in (piece() for piece in space.lazy_blocks(50))) == space.count
    )
    for each in space.excluded:
        # A number of replicas that the plan gives is refused first where it does not fill the devices.
        broken = f"{each.rule.broken}|{REPLICAS_FILL_DEVICES.broken}"
        with pytest.raises(CapacityError, match=broken):
            estimate_plan(with_values(space.plan, each.example))
