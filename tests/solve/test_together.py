"""Variants estimated together say what each says by itself."""

from __future__ import annotations

from contextlib import suppress

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import ResolvedPlan, estimate_resolved, figure, resolve_plan
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.solve.changes import estimate_changes, estimate_stacked
from capacity_tui.engine.solve.steps import is_lever, one_step_away

TRAINED = {
    "model": {"name": "llama-3.1-70b"},
    "training": {"framework": "megatron", "tokens": 1e9},
    "parallelism": {"tp": 8, "pp": 4},
    "hardware": {"name": "h100-sxm-80gb", "devices": 64},
}
ADAPTED = {
    "model": {"name": "mixtral-8x7b"},
    "task": "finetune",
    "training": {"method": "qlora", "tokens": 1e7},
    "hardware": {"name": "a100-sxm-80gb", "devices": 8},
}
SERVED = {
    "model": {"name": "llama-3.1-8b"},
    "task": "infer",
    "inference": {"batch": 8},
    "hardware": {"name": "h100-sxm-80gb", "devices": 2},
}
NETWORK = {"model": {"name": "resnet-50"}, "training": {"samples": 1e6}, "hardware": {"name": "rtx-4090"}}
KEYS = ("memory.reserved_bytes", "computation.step_seconds", "computation.tokens_per_second", "cost.usd", "energy.kwh")


def variants_of(data: dict[str, object], *, of_hardware: bool = True) -> list[ResolvedPlan]:
    """Return a plan with each of its knobs one step away, as far as there are such plans."""
    catalog, plan = load_catalog(), Plan.model_validate(data)
    found = []
    for field, value in one_step_away(resolve_plan(plan, catalog), catalog, is_lever):
        if of_hardware or "hardware" not in field.path:
            with suppress(CapacityError):
                found.append(resolve_plan(edited(plan, {field.path: value}, catalog).plan, catalog))
    return found


@pytest.mark.parametrize("data", [TRAINED, ADAPTED, SERVED, NETWORK], ids=["trained", "adapted", "served", "network"])
def test_variants_together_say_what_each_says_alone(data: dict[str, object]) -> None:
    catalog, variants = load_catalog(), variants_of(data)
    groups = estimate_stacked(variants, catalog)
    assert len({place for group in groups for place in group.indices}) == sum(len(group.indices) for group in groups)
    for group in groups:
        for key in KEYS:
            numbers = group.numbers(key)
            for at, place in list(enumerate(group.indices))[::3]:
                alone = figure(estimate_resolved(variants[place], catalog), key).number
                if numbers is None or alone is None:
                    assert numbers is None
                    assert alone is None
                else:
                    assert numbers[at] == pytest.approx(alone, rel=1e-9)


def test_sequences_on_one_device_launch_no_merging_beside_ones_that_are_shared() -> None:
    catalog = load_catalog()
    # So little work that launches set the pace.
    small = {**TRAINED, "model": {"name": "gpt2"}, "training": {"seq_len": 512}, "parallelism": {}}
    shared = {**small, "parallelism": {"cp": 2}}
    alone, other = (resolve_plan(Plan.model_validate(data), catalog) for data in (small, shared))
    (group,) = estimate_stacked([alone, other], catalog)
    numbers = group.numbers("computation.step_seconds")
    assert numbers is not None
    assert numbers[0] == pytest.approx(float(estimate_resolved(alone, catalog).computation.step_seconds.value))


def test_all_steps_of_a_transformers_settings_are_one_call() -> None:
    variants = variants_of(TRAINED, of_hardware=False)
    assert len(estimate_stacked(variants, load_catalog())) == 1


def test_plans_with_and_without_loader_processes_go_together() -> None:
    plan = Plan.model_validate({**TRAINED, "data": {"format": "jsonl", "workers": 2}})
    changes = [{"data.workers": count} for count in (0, 4)]
    for change, together in zip(changes, estimate_changes(plan, changes), strict=True):
        (alone,) = estimate_changes(plan, [change])
        assert not isinstance(together, CapacityError) and not isinstance(alone, CapacityError)
        for key in KEYS:
            assert figure(together, key).number == pytest.approx(figure(alone, key).number, rel=1e-12), key
