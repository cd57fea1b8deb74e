"""Serving: mixtures of experts beyond their FLOPs and bytes, and weights that nobody gave a format for."""

from __future__ import annotations

from typing import Any

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.estimate.memory_estimate import kept_reserve
from capacity_tui.engine.estimate.serving.speed import passes_in_step
from capacity_tui.engine.estimate.timing.roofline import grouped_share, tiled_rows
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import plan_of_line
from capacity_tui.engine.solve.modes import fill

CATALOG = load_catalog()


def served(model: str, devices: int = 1, parallelism: dict[str, int] | None = None, **inference: Any) -> Estimate:
    data = {
        "task": "infer",
        "model": {"name": model},
        "inference": {"engine": "sglang", "prompt_tokens": 1024, "output_tokens": 256, "weights": "bf16", **inference},
        "parallelism": parallelism or {},
        "hardware": {"name": "h200-sxm", "devices": devices, "per_node": 8},
    }
    return estimate_plan(plan_from_data(data), None, CATALOG).estimate


def token_seconds(estimate: Estimate) -> float:
    speed = estimate.computation.infer
    assert speed is not None
    assert speed.time_per_output_token_seconds is not None
    return float(speed.time_per_output_token_seconds.value)


def overhead(estimate: Estimate) -> float:
    return float(next(each for each in estimate.work.phases if each.name == "decode").schedule.kernels)


def test_a_mixture_launches_more_kernels_a_layer() -> None:
    dense, mixture = served("qwen3-32b", batch=1), served("qwen3-30b-a3b", batch=1)
    assert overhead(mixture) / 48 == pytest.approx(overhead(dense) / 64 + 5)


def test_a_few_tokens_of_a_mixture_take_longer_than_its_bytes() -> None:
    """One token reads 3.3 B parameters; on 4.8 TB/s that is 1.4 ms."""
    assert token_seconds(served("qwen3-30b-a3b", batch=1)) > 3 * 1.4e-3


def test_replicas_that_share_experts_wait_for_those_that_read() -> None:
    apart = served("qwen3-30b-a3b", 8, {"dp": 8, "tp": 1, "ep": 1}, concurrency=512)
    shared = served("qwen3-30b-a3b", 8, {"dp": 8, "tp": 1, "ep": 8}, concurrency=512)
    waits = [each for phase in shared.work.phases for each in phase.collectives if "replicas" in each.name]
    assert [float(each.seconds) > 0 for each in waits] == [True]
    assert not any("replicas" in each.name for phase in apart.work.phases for each in phase.collectives)


@pytest.mark.parametrize(("reading", "expected"), [(0.0, 0.0), (8.0, 0.0)])
def test_nobody_waits_where_all_read_or_none_does(reading: float, expected: float) -> None:
    assert float(passes_in_step(reading, 8.0, 8.0, 0.05, 1.0)) == pytest.approx(expected)


@pytest.mark.parametrize(("allocated", "kept"), [(40.0, 10.0), (73.0, 6.0), (76.0, 3.8), (90.0, 4.5)])
def test_an_allocator_gives_back_what_it_keeps_where_a_device_is_full(allocated: float, kept: float) -> None:
    assert float(kept_reserve(10.0, 80.0, allocated, 1.0, 0.05)) == pytest.approx(kept)


def test_memory_is_counted_in_three_ways_each_with_its_range() -> None:
    data = {
        "task": "finetune",
        "model": {"name": "llama-3-8b"},
        "training": {"seq_len": 4096, "global_batch": 8, "framework": "transformers", "method": "lora"},
        "hardware": {"name": "h100-sxm-80gb", "devices": 1},
    }
    memory = estimate_plan(plan_from_data(data), None, CATALOG).estimate.memory
    counts = memory.per_device_bytes, memory.allocator_bytes, memory.reserved_bytes
    assert counts[0].value < counts[1].value < counts[2].value
    assert counts[2].value - counts[1].value == pytest.approx(memory.parts["context"])
    assert counts[0].high / counts[0].value >= 1.12
    assert counts[2].high / counts[2].value >= 1.12


def test_a_longer_grouped_product_is_never_faster() -> None:
    seconds = [token_seconds(served("qwen3-30b-a3b", batch=batch)) for batch in (1, 2, 4, 8, 64, 128, 256)]
    assert seconds == sorted(seconds)


def test_narrow_tiles_leave_less_of_a_grouped_product_empty() -> None:
    wide, narrow = (float(grouped_share(1.0, 64.0, 8.0, tile)) for tile in (128.0, 16.0))
    assert wide == pytest.approx(2 / 3)
    assert narrow == pytest.approx(8 / 9)
    assert float(tiled_rows(64.0, 8.0, 16.0)) == pytest.approx(72 * 8)


def test_prompts_that_attend_to_compressed_keys_fall_behind_with_their_length() -> None:
    """SGLang pull request 3550: DeepSeek V3 in Triton reads 2,680 tokens a second, in prompts of 15,600 on average."""

    def rate(engine: str, length: int) -> float:
        found = served("deepseek-v3", 8, {"tp": 8}, engine=engine, weights="fp8", prompt_tokens=length, batch=1)
        speed = found.computation.infer
        assert speed is not None
        return float(speed.prefill_tokens_per_second.value)

    assert 2_000 < rate("sglang==0.4.3", 15_600) < 3_600
    assert rate("sglang==0.4.3", 15_600) < 0.6 * rate("sglang==0.4.3", 4_096)
    assert rate("sglang==0.5", 15_600) > 0.8 * rate("sglang==0.5", 4_096)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("qwen3-30b-a3b", "adapters beside every expert of a layer"),
        ("gpt-oss-20b", "no adapters beside experts"),
        ("llama-3.1-8b", ""),
    ],
)
def test_adapters_say_whether_experts_have_some(model: str, words: str) -> None:
    def says(estimate: Estimate) -> str:
        choices = (choice for choice in estimate.basis.assumed if "expert" in choice)
        return next(choices, "").partition(words or ":")[1]

    data = {"model": {"name": model}, "training": {"method": "lora"}, "hardware": {"name": "h200-sxm", "devices": 8}}
    assert says(served(model, adapters=4)) == words
    assert says(estimate_plan(plan_from_data({"task": "finetune", **data}), None, CATALOG).estimate) == words
    assert not says(served(model))


GIB = 2**30


def said(line: str) -> tuple[Plan, Estimate]:
    filled = fill(plan_of_line(read_line(line)).plan, "balanced")
    return filled.plan, filled.estimate


@pytest.mark.parametrize(
    ("line", "weights", "gib"),
    [
        # Published weights over the devices: 671e9 bytes and two embeddings of 16 bits, 60.8 GiB, 12.8 GiB.
        ("serve deepseek-r1 8xh200", "fp8", 78.4),
        ("serve gpt-oss-120b 1xh100", "mxfp4", 60.8),
        ("serve gpt-oss-20b 1xh100", "mxfp4", 12.8),
        ("llama-3.3-70b-instruct-awq vllm 2xl40s", "awq-4", 18.6),
    ],
)
def test_published_weights_fit_where_people_run_them(line: str, weights: str, gib: float) -> None:
    plan, estimate = said(line)
    assert plan.inference.weights == weights
    assert estimate.fits
    assert float(estimate.memory.parts["weights"]) / GIB == pytest.approx(gib, rel=0.02)
    assert any(note.startswith("weights in") for note in estimate.basis.assumed)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("deepseek-v3", "fp8"),
        ("moonshotai/Kimi-K2-Instruct", "fp8"),
        ("llama-3.1-8b", "bf16"),
        ("Qwen/Qwen3-8B-FP8", "fp8"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "gptq-4"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "gptq-8"),
        ("Llama-3.3-70B-Instruct-INT8", "int8"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "nf4"),
        ("bartowski/gemma-2-9b-it-GGUF:Q5_K_M", "q5_k_m"),
        ("bartowski/gemma-2-9b-it-GGUF", "q4_k_m"),
    ],
)
def test_every_door_reads_the_format_of_a_name(name: str, weights: str) -> None:
    data = {"task": "infer", "model": {"name": name}, "hardware": {"name": "h200-sxm", "devices": 8}}
    lines = plan_of_line(read_line(f"serve {name} 8xh200")).plan
    changed = edited(plan_of_line(read_line("serve llama-2-7b 8xh200")).plan, {"model.name": name}).plan
    for plan in (plan_from_data({**data, "inference": {"engine": lines.inference.engine}}), lines, changed):
        assert plan.inference.weights is None
        assert fill(plan, "balanced").plan.inference.weights == weights
    named = edited(lines, {"inference.weights": "bf16"}).plan
    assert fill(named, "balanced").plan.inference.weights == "bf16"


@pytest.mark.parametrize(
    ("name", "weights"), [("Llama-3.2-3B-Instruct-4bit", "mlx-4"), ("Qwen3-30B-A3B-5bit-DWQ", "mlx-5")]
)
def test_names_of_the_hub_of_mlx_say_their_bits(name: str, weights: str) -> None:
    plan = plan_of_line(read_line(f"serve mlx-community/{name} on m3 max 64gb")).plan
    assert fill(plan, "balanced").plan.inference.weights == weights


def test_what_the_engine_cannot_read_is_taken_as_converted() -> None:
    plan, estimate = said("serve deepseek-r1 32xv100 vllm")
    assert plan.inference.weights == "bf16"
    assert any("capability" in note for note in estimate.basis.assumed)


def test_training_keeps_its_precision() -> None:
    plan, _ = said("train deepseek-v3 2048xh800 14.8T 4k")
    assert plan.training.precision != "fp8"
    assert plan.inference.weights is None


def test_rows_name_formats_that_are_known() -> None:
    named = [row.weights for row in CATALOG.architectures.values() if row.weights]
    assert len(named) >= 6
    assert all(name in CATALOG.quantizations for name in named)
