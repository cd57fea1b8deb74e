"""The sequences of a step where nobody says: the same whatever the layout, and no more than people use."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import figures_of, resolve_plan
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.plan import Plan, edited, with_values
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import open_plan, plan_of_line
from capacity_tui.engine.solve.modes import compare, fill
from capacity_tui.engine.solve.modes.modes import MODES, with_placeholders
from capacity_tui.engine.solve.space.axes import (
    OpenBatch,
    open_axes,
    open_batch,
    open_fields_of_training,
    published_tokens,
)
from capacity_tui.engine.solve.space.configurations import training_space
from capacity_tui.engine.solve.space.space import over

MEMORY, SECONDS = "memory.reserved_bytes", "computation.step_seconds"


def line(text: str) -> Plan:
    return plan_of_line(read_line(text)).plan


def shape_of(model: str) -> TransformerShape:
    resolved = resolve_plan(
        Plan.model_validate({"model": {"name": model}, "hardware": {"name": "h100"}}), load_catalog()
    )
    assert resolved.shape is not None
    return resolved.shape


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 20_000),
    st.sampled_from((512, 2048, 8192)),
    st.sampled_from(("gpt2", "llama-3.1-70b", "deepseek-v3")),
)
def test_a_step_is_never_larger_than_published_unless_the_devices_leave_no_other(
    devices: int, length: int, model: str
) -> None:
    shape, catalog = shape_of(model), load_catalog()
    batch = open_batch(shape, float(devices), float(length), 16.0, catalog)
    assert batch.usual <= 16 * devices
    assert batch.usual * length <= published_tokens(shape, catalog) or batch.usual <= devices
    assert batch.holds(1.0, 1.0)


def test_a_micro_batch_that_asks_for_more_gets_it_while_people_use_as_much() -> None:
    batch = OpenBatch(16.0, 64.0)
    assert batch.of(1.0, 4.0) == 16 and batch.of(1.0, 32.0) == 32
    assert batch.holds(1.0, 64.0) and not batch.holds(1.0, 128.0)
    assert not batch.holds(3.0, 1.0), "16 sequences are no whole number for each of 3 replicas"


@pytest.mark.parametrize(
    ("text", "most_tokens"),
    [
        ("llama-3.1-405b 16384 h100 15.6T 8k", 18.9e6),
        ("deepseek-v3 2048 h800 14.8T 4k fp8", 63e6),
        ("llama-3.1-8b 2048 h100 15T 8k", 9.5e6),
    ],
)
def test_large_clusters_take_no_batch_that_nobody_uses(text: str, most_tokens: float) -> None:
    found = fill(line(text), "balanced")
    training = found.plan.training
    assert int(str(training.global_batch)) * int(training.seq_len) <= most_tokens
    assert "published" in found.reasons["training.global_batch"]


def test_more_than_people_use_is_said() -> None:
    catalog = load_catalog()
    pinned = {"parallelism.tp": 1, "parallelism.pp": 1, "parallelism.cp": 1}
    found = fill(edited(line("llama-3.2-1b 16384 h100 1T 2k"), pinned, catalog).plan, "balanced")
    assert found.plan.training.global_batch == 16384
    assert "more than published" in found.reasons["training.global_batch"]


@pytest.mark.parametrize("devices", [1, 3, 5, 6, 7])
@pytest.mark.parametrize("batch", [1, 2, 24])
def test_any_number_of_devices_and_any_batch_has_a_layout_or_a_reason(devices: int, batch: int) -> None:
    change = {
        "model.name": "llama-3-8b",
        "training.global_batch": batch,
        "training.tokens": 1e8,
        "hardware.name": "a100-sxm-80gb",
        "hardware.devices": devices,
    }
    plan = edited(open_plan("train"), change, load_catalog()).plan
    for column in compare(plan).columns:
        sizes = column.plan.parallelism
        assert int(sizes.dp or 0) * int(sizes.tp or 0) * int(sizes.pp or 0) * int(sizes.cp) == devices
        assert int(sizes.dp or 0) <= batch


def test_sizes_that_no_layout_can_use_are_refused_with_what_divides() -> None:
    pinned = {"parallelism.pp": 1, "parallelism.cp": 1, "training.global_batch": 2}
    plan = edited(line("llama-3-8b lora 7xa100-sxm-80gb"), pinned, load_catalog()).plan
    for mode in MODES:
        with pytest.raises(PlanError, match=r"2 < 7.*32 heads, TP 7"):
            fill(plan, mode)


def test_where_nothing_fits_the_fastest_of_what_needs_least_is_taken() -> None:
    catalog = load_catalog()
    plan = edited(line("llama-3.1-405b 8xrtx-4090 1B 4k"), {"parallelism.zero": "auto"}, catalog).plan
    found = fill(plan, "conservative")
    assert found.estimate.fits is False
    resolved = resolve_plan(with_placeholders(plan, catalog), catalog)
    assert resolved.shape is not None
    settled = {"training.precision": found.plan.training.precision, "training.global_batch": None}
    resolved = resolve_plan(with_values(resolved.plan, settled), catalog, like=resolved)
    axes = open_axes(plan, resolved, open_fields_of_training(), 16, catalog)
    space = training_space(plan, resolved, resolved.shape, catalog, axes, replica_batch=16)
    (block,) = [piece() for piece in space.lazy_blocks()]
    possible = over(block.feasible, block.grid) > 0
    memory, seconds = (over(block.value(key), block.grid)[possible] for key in (MEMORY, SECONDS))
    least = memory.min()
    chosen = figures_of(found.estimate)
    assert chosen[MEMORY].value <= 1.02 * least
    assert chosen[SECONDS].value <= 1.12 * seconds[memory <= 1.005 * least].min()
