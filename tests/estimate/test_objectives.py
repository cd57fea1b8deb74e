"""What preferences and rewards run beside the training of a model."""

from __future__ import annotations

from typing import Any

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.plan.files import plan_from_data

CATALOG = load_catalog()
PARAMETERS = 8_030_261_248


def estimated(preference: str = "none", **training: Any) -> Estimate:
    zero = training.pop("zero", 0)
    data = {
        "task": "finetune",
        "model": {"name": "llama-3-8b"},
        "training": {"seq_len": 2048, "global_batch": 64, "framework": "fsdp", "checkpointing": "full",
                     "preference": preference, **training},
        "hardware": {"name": "h200-sxm", "devices": 8},
        "parallelism": {"zero": zero},
    }  # fmt: skip
    return estimate_plan(plan_from_data(data), None, CATALOG).estimate


def seconds(found: Estimate) -> float:
    return float(found.computation.step_seconds.value)


def part(found: Estimate, name: str) -> float:
    return float(found.memory.parts[name])


@pytest.mark.parametrize(("zero", "shard"), [(0, 1), (3, 8)])
def test_a_reference_is_a_second_copy_sharded_as_the_model_is(zero: int, shard: int) -> None:
    plain, pairs = (estimated(name, zero=zero) for name in ("none", "dpo"))
    assert part(pairs, "weights") - part(plain, "weights") == pytest.approx(2 * PARAMETERS / shard, rel=1e-3)


def test_adapters_are_switched_off_for_the_reference() -> None:
    lora = {"adapter": {"kind": "lora"}}
    kept, before = (estimated("dpo", reference=word, **lora) for word in ("kept", "precomputed"))
    assert part(kept, "weights") == part(before, "weights") == part(estimated(**lora), "weights")
    assert seconds(kept) > seconds(before)


def test_a_pair_is_two_sequences() -> None:
    pairs = estimated("dpo", micro_batch=1, reference="precomputed")
    twice = estimated(micro_batch=2, global_batch=128)
    assert float(pairs.memory.per_device_bytes.value) == pytest.approx(float(twice.memory.per_device_bytes.value))
    assert seconds(pairs) == pytest.approx(seconds(twice))


def test_each_objective_runs_more_than_the_one_before() -> None:
    """Forward passes of a reference, of the model that wrote, of rewards and values; values are trained as well."""
    plain, group, values = (estimated(name) for name in ("none", "grpo", "ppo"))
    assert seconds(plain) < seconds(group) < seconds(values)
    least, more, most = (float(found.work.model_flops_per_step) for found in (plain, group, values))
    assert more / least == pytest.approx(5 / 3)
    assert most / least == pytest.approx(10 / 3)
    assert part(values, "optimizer") == pytest.approx(2 * part(plain, "optimizer"))
    assert part(values, "weights") - part(plain, "weights") == pytest.approx((4 + 2 * 2) * PARAMETERS, rel=1e-3)


@pytest.mark.parametrize("zero", [0, 3])
def test_forward_passes_gather_sharded_parameters_once_more_each(zero: int) -> None:
    def gathered(found: Estimate) -> float:
        return sum(float(each.count) for each in found.work.collectives if each.name == "gather sharded parameters")

    assert gathered(estimated("grpo", zero=zero)) == pytest.approx(3 * gathered(estimated(zero=zero)))


def test_what_writes_the_answers_is_said_not_to_be_counted() -> None:
    assert len(estimated("grpo").basis.assumed) == len(estimated("dpo").basis.assumed) + 1


def test_pairs_without_a_reference_cost_as_those_whose_reference_was_computed_before() -> None:
    pairs, before = estimated("orpo"), estimated("dpo", reference="precomputed")
    assert seconds(pairs) == pytest.approx(seconds(before))
    assert part(pairs, "weights") == part(estimated(), "weights")


def test_a_reward_model_has_no_head_over_the_vocabulary() -> None:
    """Llama 3 8B without the 128 256 rows of its output projection."""
    pairs, reward, steps = (estimated(name) for name in ("orpo", "reward", "process_reward"))
    head = 128_256 * 4096
    assert float(reward.model.parameters) == float(pairs.model.parameters) - head
    assert part(pairs, "weights") - part(reward, "weights") == pytest.approx(4 * head, rel=1e-3)  # FSDP keeps fp32
    assert seconds(steps) < seconds(reward) < seconds(pairs)


@pytest.mark.parametrize("size", [1e9, 70e9])
def test_a_teacher_of_another_size_takes_memory_and_work_of_its_own(size: float) -> None:
    alike, other = estimated("distillation", zero=3), estimated("distillation", zero=3, teacher_parameters=size)
    further = 2 * (size - PARAMETERS) / 8
    assert part(other, "weights") - part(alike, "weights") == pytest.approx(further, rel=1e-3)
    work = (float(found.work.model_flops_per_step) for found in (other, alike))
    assert next(work) / next(work) == pytest.approx((3 + size / PARAMETERS) / 4)


def test_a_held_utilization_is_all_that_moves_the_time_of_a_step() -> None:
    """Kaplan's six FLOPs a parameter and token, over the peak: what people reckon on the back of an envelope."""
    held = estimated(mfu=0.4, seq_len=4096)
    reached = held.computation.step_seconds
    assert float(held.computation.mfu) == pytest.approx(0.4)
    assert float(reached.low) == float(reached.value) == float(reached.high)
    assert float(sum(held.computation.parts.values())) == pytest.approx(float(reached.value))
    other = estimated(mfu=0.4, seq_len=4096, checkpointing="none", zero=3, framework="megatron")
    assert seconds(other) == pytest.approx(seconds(held))
    assert seconds(estimated(mfu=0.2, seq_len=4096)) == pytest.approx(2 * seconds(held))
