"""The space of configurations: arrays say what each plan says by itself."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.choose.space.grid import Axis, Grid
from capacity_tui.engine.choose.space.ranking import top
from capacity_tui.engine.choose.space.stacking import UnlikeError, picked, stacked
from capacity_tui.engine.choose.space.training import TrainingSpace, training_space
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.estimate import estimate_plan
from capacity_tui.engine.estimate.resolve import ResolvedPlan, resolve_plan
from capacity_tui.engine.plan.edit import with_values
from capacity_tui.engine.plan.plan import Plan

DENSE = {
    "model": {"name": "llama-3.1-8b"},
    "training": {"seq_len": 4096, "framework": "megatron"},
    "hardware": {"name": "h100-sxm-80gb", "devices": 32},
}
MIXTURE = {
    "model": {"name": "mixtral-8x7b"},
    "training": {"seq_len": 2048, "global_batch": 256},
    "parallelism": {"ep": 4},
    "hardware": {"name": "a100-sxm-80gb", "devices": 32},
}
# Every kind of field that may vary: sizes of the layout, numbers, and settings that change several numbers.
VALUES: dict[str, tuple[object, ...]] = {
    "training.checkpointing": ("none", "selective", "selective-ops", "every-2", "full"),
    "training.precision": ("bf16", "fp8"),
    "training.optimizer": ("adamw", "adamw8bit", "muon"),
    "training.compile": (False, True),
    "parallelism.offload": ("none", "optimizer", "activations"),
    "parallelism.zero": (0, 1, 2, 3),
    "parallelism.interleave": (1, 2),
    "training.seq_len": (1024, 8192),
    "training.micro_batch": (1, 2, 8),
    "parallelism.cp": (1, 2, 3),
    "parallelism.tp": (1, 2, 4, 8, 16),
    "parallelism.pp": (1, 2, 5, 8),
}


@cache
def resolved_of(mixture: bool) -> ResolvedPlan:
    return resolve_plan(Plan.model_validate(MIXTURE if mixture else DENSE), load_catalog())


def space_of(paths: tuple[str, ...], *, mixture: bool = False) -> TrainingSpace:
    plan, resolved = Plan.model_validate(MIXTURE if mixture else DENSE), resolved_of(mixture)
    assert resolved.shape is not None
    axes = (Axis(path, VALUES[path]) for path in paths)
    return training_space(plan, resolved, resolved.shape, load_catalog(), axes)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5, unique=True).map(tuple),
    st.booleans(),
    st.data(),
)
def test_a_grid_says_what_each_plan_says_by_itself(paths: tuple[str, ...], mixture: bool, data: st.DataObject) -> None:
    space = space_of(paths, mixture=mixture)
    found = space.evaluated(space.grid)
    for position in data.draw(st.lists(st.integers(0, space.grid.size - 1), min_size=1, max_size=3)):
        place = tuple(int(at) for at in np.unravel_index(position, space.grid.shape))
        one = picked(found, place, space.grid.shape)
        plan = with_values(space.plan, space.grid.at(position))
        if not one.possible:
            with pytest.raises(CapacityError):
                estimate_plan(plan)
            continue
        alone = estimate_plan(plan).estimate
        assert one.reserved_bytes == pytest.approx(float(alone.memory.reserved_bytes.value), rel=1e-9)
        assert one.allocated_bytes == pytest.approx(float(alone.memory.per_device_bytes.value), rel=1e-9)
        assert one.host_bytes == pytest.approx(float(alone.memory.host_bytes), rel=1e-9)
        assert one.step_seconds == pytest.approx(float(alone.computation.step_seconds.value), rel=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True).map(tuple), st.integers(1, 40))
def test_blocks_do_not_change_answers(paths: tuple[str, ...], most: int) -> None:
    space = space_of(paths)
    whole = space.evaluated(space.grid)
    seconds = np.broadcast_to(whole.step_seconds, space.grid.shape)
    blocks = list(space.grid.blocks(most))
    assert sum(space.grid.part(block).size for block in blocks) == space.grid.size
    for block in blocks[:: max(1, len(blocks) // 5)]:
        part = space.evaluated(space.grid.part(block))
        assert part.grid.size <= max(most, 1)
        assert np.allclose(np.broadcast_to(part.step_seconds, part.grid.shape), seconds[block], rtol=1e-9, atol=0)
        assert np.array_equal(
            np.broadcast_to(part.possible, part.grid.shape), np.broadcast_to(whole.possible, space.grid.shape)[block]
        )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=6, unique=True).map(tuple), st.booleans())
def test_what_rules_exclude_and_what_is_left_are_the_whole_grid(paths: tuple[str, ...], mixture: bool) -> None:
    space = space_of(paths, mixture=mixture)
    whole = Grid(tuple(Axis(path, VALUES[path]) for path in paths))
    assert space.count + sum(each.count for each in space.excluded) == whole.size == space.size
    assert all(axis.values for axis in space.grid.axes) or not space.count


def test_excluded_layouts_are_told_with_an_example() -> None:
    told = {each.rule.id: each for each in space_of(("parallelism.tp", "parallelism.pp")).excluded}
    assert told["devices"].words == "tp x pp x cp does not divide the devices: 1 x 5 x 1 = 5, devices 32"
    assert told["devices"].example == {"parallelism.tp": 1, "parallelism.pp": 5}
    assert told["devices"].count == 7  # five stages with any tensor parallelism, and more devices than there are


def test_the_best_are_those_of_the_whole_grid_whatever_the_blocks() -> None:
    space = space_of(("training.checkpointing", "training.micro_batch", "parallelism.tp", "parallelism.pp"))
    found = space.evaluated(space.grid)
    speeds = np.where(found.possible & (found.reserved_bytes < 70e9), found.units_per_second, -np.inf)
    wanted = sorted(np.broadcast_to(speeds, space.grid.shape).ravel().tolist(), reverse=True)[:5]
    for most in (7, 10**6):
        best = top(space.blocks(most), lambda b: np.where(b.reserved_bytes < 70e9, b.units_per_second, -np.inf), 5)
        assert [candidate.score for candidate in best] == pytest.approx(wanted)
        assert best[0].values in list(space.grid.combinations())


def test_runs_that_differ_in_words_are_not_stacked() -> None:
    plan = Plan.model_validate(DENSE)
    clusters = [
        resolve_plan(with_values(plan, {"hardware.name": name}), load_catalog()).cluster
        for name in ("h100-sxm-80gb", "a100-sxm-80gb")
    ]
    with pytest.raises(UnlikeError):
        stacked(clusters, (2,))
