"""What launches cost the host, what a frozen base costs in every pass, how often an optimizer reads its states."""

from __future__ import annotations

import pytest

from capacity_tui.engine.estimate import estimate_plan
from tests.plans import plan_of

SMALL = {
    "task": "train",
    "model.name": "qwen-2.5-0.5b",
    "hardware.name": "a100-sxm-80gb",
    "hardware.devices": 1,
    "training.seq_len": 256,
    "training.micro_batch": 1,
    "training.global_batch": 8,
    "training.framework": "transformers",
}
FROZEN = {
    "task": "finetune",
    "model.name": "llama-2-7b",
    "hardware.name": "a100-sxm-80gb",
    "hardware.devices": 1,
    "training.seq_len": 2048,
    "training.micro_batch": 1,
    "training.global_batch": 8,
    "training.checkpointing": "none",
    "training.framework": "transformers",
    "training.method": "qlora",
}


def seconds(base: dict[str, object], **changes: object) -> float:
    changed = {path.replace("__", "."): value for path, value in changes.items()}
    return float(estimate_plan(plan_of(base, changed)).estimate.computation.step_seconds.value)


def part(base: dict[str, object], name: str, **changes: object) -> float:
    changed = {path.replace("__", "."): value for path, value in changes.items()}
    return float(estimate_plan(plan_of(base, changed)).estimate.computation.parts[name])


def test_a_small_eager_model_waits_for_its_launches_and_a_compiled_or_captured_one_hardly() -> None:
    eager = part(SMALL, "overhead")
    compiled = part(SMALL, "overhead", training__compile=True)
    captured = part(SMALL, "overhead", training__cuda_graphs=True)
    assert eager > seconds(SMALL) / 2.0
    assert compiled < eager / 2.0
    assert captured < compiled


def test_short_sequences_cost_an_eager_model_no_less() -> None:
    assert seconds(SMALL, training__seq_len=128) == pytest.approx(seconds(SMALL), rel=0.1)


def test_fused_kernels_launch_less_than_separate_operations() -> None:
    assert part(SMALL, "overhead", training__framework="megatron") < part(SMALL, "overhead") / 2.0


def test_a_large_model_does_not_wait_for_launches() -> None:
    large = {**SMALL, "model.name": "llama-2-7b", "training.seq_len": 4096}
    assert seconds(large, training__cuda_graphs=True) == pytest.approx(seconds(large), rel=0.02)


@pytest.mark.parametrize("packed", ["nf4", "gptq-4", "int8"])
def test_a_quantized_base_is_unpacked_in_every_pass(packed: str) -> None:
    plain = seconds(FROZEN, training__method="lora")
    whole = seconds(FROZEN, training__quantization=packed)
    recomputed = seconds(FROZEN, training__quantization=packed, training__checkpointing="full")
    assert whole > plain
    unpacking = whole - plain
    assert recomputed - seconds(FROZEN, training__method="lora", training__checkpointing="full") > 1.3 * unpacking


def test_list_operations_unpack_more_slowly_than_one_kernel() -> None:
    assert seconds(FROZEN, training__quantization="gptq-4") > seconds(FROZEN, training__quantization="nf4")


def test_unpacking_matters_less_the_longer_the_sequence() -> None:
    def over_plain(length: int) -> float:
        packed = seconds(FROZEN, training__seq_len=length, training__quantization="gptq-4")
        return packed / seconds(FROZEN, training__seq_len=length, training__method="lora")

    assert over_plain(512) > over_plain(2048) > over_plain(8192) > 1.0


def test_more_adapted_matrices_take_longer() -> None:
    few = seconds(FROZEN, training__adapter={"targets": "query+value"})
    assert few < seconds(FROZEN, training__adapter={"targets": "all"})


def test_an_optimizer_of_separate_operations_moves_its_states_several_times() -> None:
    separate = part(SMALL, "optimizer", training__framework="fsdp", parallelism__zero=0)
    fused = part(SMALL, "optimizer", training__framework="torchtitan", parallelism__zero=0)
    assert separate == pytest.approx(3.0 * fused)


def test_eight_bit_states_are_updated_in_one_kernel() -> None:
    narrow = part(SMALL, "optimizer", training__optimizer="adamw8bit")
    assert narrow < part(SMALL, "optimizer", training__optimizer="adamw") / 2.0


def test_sharded_parameters_cost_the_host_for_each_matrix() -> None:
    sharded = part(SMALL, "overhead", training__framework="deepspeed", parallelism__zero=3)
    assert sharded > 2.0 * part(SMALL, "overhead", training__framework="deepspeed", parallelism__zero=2)
