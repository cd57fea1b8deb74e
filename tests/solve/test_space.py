"""The space of configurations: arrays say what each plan says by itself."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import ResolvedPlan, estimate_plan, figures_of, resolve_plan
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import Plan, with_values
from capacity_tui.engine.solve.space import Axis
from capacity_tui.engine.solve.space.axes import Grid
from capacity_tui.engine.solve.space.configurations import TrainingSpace, training_space
from capacity_tui.engine.solve.space.space import Block, best, over

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

STEP, MEMORY = "computation.step_seconds", "memory.reserved_bytes"
COMPARED = (MEMORY, "memory.per_device_bytes", "memory.host_bytes", STEP)


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
    st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5, unique=True).map(tuple), st.booleans(), st.data()
)
def test_a_grid_says_what_each_plan_says_by_itself(paths: tuple[str, ...], mixture: bool, data: st.DataObject) -> None:
    space = space_of(paths, mixture=mixture)
    found = space.block(space.grid)
    for position in data.draw(st.lists(st.integers(0, space.grid.size - 1), min_size=1, max_size=3)):
        plan = with_values(space.plan, space.grid.at(position))
        if not over(found.feasible, space.grid)[position]:
            with pytest.raises(CapacityError):
                estimate_plan(plan)
            continue
        alone = figures_of(estimate_plan(plan).estimate)
        for key in COMPARED:
            value = found.value(key)
            assert value is not None
            assert over(value, space.grid)[position] == pytest.approx(float(alone[key].value), rel=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True).map(tuple), st.integers(1, 40))
def test_blocks_do_not_change_answers(paths: tuple[str, ...], most: int) -> None:
    space = space_of(paths)
    whole = space.block(space.grid)
    seconds = over(whole.value(STEP), space.grid).reshape(space.grid.shape)
    blocks = list(space.grid.blocks(most))
    assert sum(space.grid.part(block).size for block in blocks) == space.grid.size
    for block in blocks[:: max(1, len(blocks) // 5)]:
        part = space.block(space.grid.part(block))
        assert part.grid.size <= max(most, 1)
        assert np.allclose(over(part.value(STEP), part.grid), seconds[block].ravel(), rtol=1e-9, atol=0)
        assert np.array_equal(
            np.broadcast_to(part.feasible, part.grid.shape), np.broadcast_to(whole.feasible, space.grid.shape)[block]
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


def test_the_best_is_that_of_the_whole_grid_whatever_the_blocks() -> None:
    space = space_of(("training.checkpointing", "training.micro_batch", "parallelism.tp", "parallelism.pp"))

    def columns(block: Block) -> tuple[Number, ...]:
        memory, seconds = block.value(MEMORY), block.value(STEP)
        assert memory is not None and seconds is not None
        return np.where(np.less(memory, 70e9), 0.0, np.inf), seconds

    whole = space.block(space.grid)
    usable = (over(whole.feasible, space.grid) > 0) & np.isfinite(over(columns(whole)[0], space.grid))
    fastest = over(columns(whole)[1], space.grid)[usable].min()
    for most in (7, 10**6):
        found = best((piece() for piece in space.lazy_blocks(most)), columns)
        assert found is not None
        assert found.number(STEP) == pytest.approx(fastest)
        assert found.values in list(space.grid.innermost(tuple(found.values)).combinations())


def test_nothing_is_best_where_nothing_can_be() -> None:
    space = space_of(("parallelism.tp",))
    assert best((block().where(np.asarray(False)) for block in space.lazy_blocks()), lambda _: (0.0,)) is None
