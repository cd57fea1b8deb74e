"""What number types and generations cost: casts of mixed precision, products that TF32 speeds up, experts on TPUs."""

from __future__ import annotations

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.plan.files import plan_from_data


def step_seconds(**training: object) -> float:
    plan = plan_from_data(
        {
            "model": {"name": "gpt2-small"},
            "training": {"seq_len": 1024, "micro_batch": 8, "global_batch": 8, "attention": "eager", **training},
            "hardware": {"name": "a100-sxm-80gb", "devices": 1},
        }
    )
    return float(estimate_plan(plan, None, load_catalog()).estimate.computation.step_seconds.value)


def time_to_first_token(weights: str) -> float:
    plan = plan_from_data(
        {
            "task": "infer",
            "model": {"name": "llama-3-8b"},
            "inference": {"prompt_tokens": 2048, "weights": weights, "engine": "transformers"},
            "hardware": {"name": "a100-sxm-80gb", "devices": 1},
        }
    )
    infer = estimate_plan(plan, None, load_catalog()).estimate.computation.infer
    assert infer is not None
    return float(infer.time_to_first_token_seconds.value)


def test_tf32_speeds_up_every_product_the_output_head_too():
    fp32, tf32, bf16 = (step_seconds(precision=name) for name in ("fp32", "tf32", "bf16"))
    assert bf16 < tf32 < 0.55 * fp32


def test_automatic_mixed_precision_casts_what_pure_bf16_does_not():
    mixed = step_seconds(precision="bf16", framework="ddp")
    pure = step_seconds(precision="bf16", framework="ddp", master_weights="none")
    assert mixed > 1.05 * pure


def test_tf32_serves_in_the_memory_of_fp32_and_faster():
    assert time_to_first_token("bf16") < time_to_first_token("tf32") < 0.5 * time_to_first_token("fp32")


def test_experts_of_a_mixture_reach_less_side_by_side_where_that_was_seen():
    def utilization(hardware: str, model: str) -> float:
        plan = plan_from_data(
            {
                "model": {"name": model},
                "training": {"seq_len": 4096, "micro_batch": 4, "global_batch": 1024, "framework": "maxtext"},
                "hardware": {"name": hardware, "devices": 256, "per_node": 256},
                "parallelism": {"zero": 3},
            }
        )
        found = estimate_plan(plan, None, load_catalog()).estimate.computation
        return float(found.mfu)

    dense, mixture = (utilization("tpu-v6e", name) for name in ("llama-2-70b", "mixtral-8x7b"))
    assert mixture < 0.9 * dense
    assert dense < utilization("tpu-v5p", "llama-2-70b")
