"""Training on a processor, and what number types and generations of devices cost."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate, estimate_plan, figures_of
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer

PROCESSOR = "epyc-7763"  # AVX2, no 16-bit units


def estimated(model: str = "gpt2", hardware: str = PROCESSOR, **training: object) -> Estimate:
    settings = {"seq_len": 512, "micro_batch": 4, "global_batch": 4, "steps": 10, "precision": "fp32", **training}
    plan = {"task": "train", "model": {"name": model}, "training": settings, "hardware": {"name": hardware}}
    return answer(plan_from_data(plan), None, load_catalog()).estimate


def step(estimate: Estimate) -> float:
    return float(estimate.computation.step_seconds.value)


def memory(estimate: Estimate) -> float:
    return float(estimate.memory.reserved_bytes.value)


def test_sixteen_bits_without_units_are_slower_than_thirty_two_and_less_sure() -> None:
    narrow, wide = estimated(precision="bf16"), estimated()
    assert step(narrow) > 2.5 * step(wide)
    ends = [figures_of(one)["computation.step_seconds"] for one in (narrow, wide)]
    spans = [float(end.high) / float(end.low) for end in ends]
    assert spans[0] > 1.5 * spans[1]


def test_vectors_of_512_bits_convert_faster() -> None:
    # Two generations: one with AVX2 alone, one with AVX-512 and no bf16 units.
    ratios = [
        step(estimated(hardware=name, precision="bf16")) / step(estimated(hardware=name))
        for name in (PROCESSOR, "xeon-8275cl")
    ]
    assert ratios[1] < ratios[0] / 2.0
    assert ratios[1] > 2.0


def test_processors_of_which_nothing_is_known_are_left_alone() -> None:
    assert step(estimated(hardware="graviton3", precision="bf16")) <= step(estimated(hardware="graviton3"))


def test_dropout_stores_the_scores_of_attention() -> None:
    assert memory(estimated()) > memory(estimated(dropout=0.0)) + 2**30
    # Llama is trained without dropout: nothing is dropped out unless a plan says so.
    assert memory(estimated("smollm2-135m")) == memory(estimated("smollm2-135m", dropout=0.0))


def test_dropout_waits_for_its_random_numbers() -> None:
    def drawn(**training: object) -> float:
        phases = estimated(**training).work.phases
        return sum(
            float(operator.bytes / operator.bandwidth * operator.count)
            for phase in phases
            for operator in phase.operators
            if operator.name == "random numbers of dropout"
        )

    # Two residuals of 768 and 12 x 512 scores for each of 4 x 512 tokens in 12 layers, 5 ns each on 64 cores.
    assert drawn() == pytest.approx(4 * 512 * 12 * (2 * 768 + 12 * 512) * 5e-9 / 64)
    assert drawn(dropout=0.0) == drawn(model="smollm2-135m") == 0.0


def test_scores_beyond_what_the_allocator_keeps_wait_for_new_pages() -> None:
    def waited(**training: object) -> float:
        phases = estimated(**training).work.phases
        return sum(
            float(operator.bytes / operator.bandwidth * operator.count)
            for phase in phases
            for operator in phase.operators
            if operator.name.startswith("new pages of scores")
        )

    # 12 x 512 x 512 scores in fp32 are 12 MiB of a sequence: two are kept, four are not. Seven tensors in 12 layers.
    scores = 4 * 12 * 512 * 512 * 4
    assert waited(micro_batch=2) == 0.0
    assert waited() == waited(precision="bf16") == pytest.approx(12 * 7 * scores / 2.7e9 / 64)
    assert waited(dropout=0.0) == waited(model="smollm2-135m") == 0.0


def test_an_activation_in_steps_moves_more_than_one_kernel_does() -> None:
    def moved(model: str) -> float:
        phases = estimated(model, framework="transformers", dropout=0.0).work.phases
        names = ("norms, residuals and activations", "norms, residuals and activations, backward")
        chosen = [one for phase in phases for one in phase.operators if one.name in names]
        return sum(float(one.bytes) for one in chosen)

    # GPT-2's own code takes 41 widths of 3,072 more than one kernel, forward and backward, of which 83 % reach memory.
    passes = load_catalog().frameworks["transformers"].elementwise_passes
    assert moved("gpt2") - moved("opt-125m") == pytest.approx(passes * 0.83 * 41 * 3072 * 4 * 512 * 4, rel=0.02)


def test_the_trainer_updates_parameters_in_one_kernel_on_a_processor() -> None:
    shortest = {"seq_len": 64, "micro_batch": 1, "global_batch": 1}
    assert step(estimated(framework="transformers", **shortest)) < 0.8 * step(
        estimated(framework="lightning", **shortest)
    )


def test_a_process_takes_what_its_libraries_take() -> None:
    bare, trainer = (estimated("smollm2-135m", framework=name).work.context_bytes for name in ("fsdp", "transformers"))
    assert float(trainer) > float(bare) + 200 * 2**20
    on_gpus = [
        float(estimated("smollm2-135m", hardware="rtx-4090", framework=name).work.context_bytes)
        for name in ("ddp", "transformers")
    ]
    assert on_gpus[0] == pytest.approx(on_gpus[1])


def token(batch: int, prompt: int, model: str = "gpt2", hardware: str = PROCESSOR) -> float:
    section = {"prompt_tokens": prompt, "output_tokens": 32, "batch": batch, "weights": "fp32", "kv_cache": "fp32"}
    plan = {"task": "infer", "model": {"name": model}, "inference": {**section, "engine": "transformers"}}
    estimate = answer(plan_from_data({**plan, "hardware": {"name": hardware}}), None, load_catalog()).estimate
    assert estimate.computation.infer is not None
    seconds = estimate.computation.infer.time_per_output_token_seconds
    assert seconds is not None
    return float(seconds.value)


def test_a_long_cache_is_read_as_fast_as_weights() -> None:
    # 498 MB of weights; 150 tokens of 4 sequences, 512 more of one, and their copies, take less than as much again.
    assert token(1, 64) < token(1, 576) < 1.3 * token(1, 64)


def test_a_few_rows_take_longer_than_one_as_weights_are_copied_into_blocks() -> None:
    one, two, four = (token(batch, 16, hardware="cpu-4c-2.5ghz-basic") for batch in (1, 2, 4))
    assert two > 1.1 * one
    assert four < 1.5 * two


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
