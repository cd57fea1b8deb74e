"""Attention by kernel, hardware, length and heads; over cached prompts; and layers with a state in its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import estimate_plan, resolve_plan
from capacity_tui.engine.estimate.serving import decode_pass
from capacity_tui.engine.estimate.serving.operators import prefill_pass
from capacity_tui.engine.estimate.timing import attention_in_place_of, attention_rate
from capacity_tui.engine.estimate.timing.roofline import attention_kernel, attention_rates
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer
from tests.estimate.test_serving import run_of


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def plan(hardware: str = "h100-sxm-80gb", seq_len: int = 8192, **training: object) -> Plan:
    return plan_from_data(
        {
            "model": {"name": "llama-3-8b"},
            "training": {"seq_len": seq_len, "global_batch": 8, "checkpointing": "full", **training},
            "hardware": {"name": hardware, "devices": 8},
            "parallelism": {"zero": 3},
        }
    )


def attention_seconds(catalog: Catalog, **changes: object) -> float:
    return float(estimate_plan(plan(**changes), None, catalog).estimate.computation.parts["attention"])


def chosen(catalog: Catalog, hardware: str, kernel: str = "flash", framework: str | None = None) -> str:
    resolved = resolve_plan(plan(hardware, framework=framework), catalog)
    software = catalog.frameworks[catalog.frameworks.find_id(framework or "plain")]
    return attention_kernel(kernel, resolved.cluster.device, software, catalog).id


@pytest.mark.parametrize(
    ("hardware", "framework", "kernel"),
    [
        ("h100-sxm-80gb", "megatron", "cudnn"),
        ("h100-sxm-80gb", None, "flash2"),
        ("a100-sxm-80gb", "deepspeed", "flash2"),
        ("v100-sxm2-32gb", "deepspeed", "sdpa"),
        ("tpu-v5p", "maxtext", "splash"),
        ("tpu-v5p", None, "splash"),
        ("trainium1", "neuron", "nki"),
        ("gaudi2", None, "fusedsdpa"),
        ("mi300x", None, "flash2"),
    ],
)
def test_flash_is_the_best_that_device_and_framework_have(catalog, hardware, framework, kernel):
    assert chosen(catalog, hardware, framework=framework) == kernel


def test_a_kernel_that_a_device_lacks_is_replaced_with_the_reason(catalog):
    device = resolve_plan(plan("a100-sxm-80gb"), catalog).cluster.device
    instead = attention_in_place_of("flash3", device, catalog)
    assert instead is not None
    assert "FlashAttention 3 is for" in instead.reason and "Hopper" in instead.reason
    assert attention_in_place_of("flash2", device, catalog) is None
    assert attention_in_place_of("flash", device, catalog) is None
    found = answer(plan("a100-sxm-80gb", attention="flash3"), catalog)
    assert found.estimate.computation.step_seconds.value > 0
    assert attention_seconds(catalog, hardware="a100-sxm-80gb", attention="flash3") == pytest.approx(
        attention_seconds(catalog, hardware="a100-sxm-80gb"), rel=0.05
    )


def test_a_kernel_nobody_knows_is_refused_with_the_nearest(catalog):
    with pytest.raises(PlanError, match="flash33") as refused:
        estimate_plan(plan(attention="flash33"), None, catalog)
    assert "did you mean flash3" in str(refused.value.hint)


def test_newer_kernels_are_faster_and_stored_scores_slowest(catalog):
    seconds = [attention_seconds(catalog, attention=kernel) for kernel in ("flash3", "flash2", "triton", "eager")]
    assert seconds == sorted(seconds)
    assert seconds[1] > 1.5 * seconds[0]


def test_the_power_limit_of_matrix_products_does_not_slow_attention(catalog):
    run = resolve_plan(plan(), catalog)
    device = run.cluster.device
    slower = replace(device, efficiency=replace(device.efficiency, sustained=0.5))
    kernel = catalog.attention_kernels["cudnn"]
    assert attention_rates(kernel, slower, catalog) == attention_rates(kernel, device, catalog)


def test_published_rates_of_flash_attention_3_are_met(catalog):
    device = resolve_plan(plan(), catalog).cluster.device
    found = attention_rates(catalog.attention_kernels["flash3"], device, catalog)
    peak = device.peak("bf16")

    def tera(span: int, head: int, half: float) -> float:
        return float(attention_rate(span, head, peak, found.reach, half, found.width)) / 1e12

    for span, published in ((1024, 423), (4096, 579), (16384, 616)):
        assert tera(span, 128, found.half) == pytest.approx(published, rel=0.06)
    for head, published in ((64, 497), (128, 648), (256, 756)):
        assert tera(16384, head, found.half * found.unmasked) == pytest.approx(published, rel=0.04)


def test_twice_the_special_function_units_bring_more_than_the_peak(catalog):
    b200 = resolve_plan(plan("b200-sxm"), catalog).cluster.device
    b300 = resolve_plan(plan("b300-sxm"), catalog).cluster.device
    kernel = catalog.attention_kernels["flash4"]
    rates = [attention_rates(kernel, device, catalog) for device in (b200, b300)]
    assert rates[0].reach == rates[1].reach
    assert rates[1].width == pytest.approx(rates[0].width / 2)
    assert rates[0].backward_half > rates[0].half


def test_an_encoder_reaches_its_rate_sooner_than_a_masked_decoder(catalog):
    device = resolve_plan(plan(), catalog).cluster.device
    found = attention_rates(catalog.attention_kernels["flash2"], device, catalog)
    assert found.unmasked < 0.5


LAYERS, HEADS, WIDTH = 32, 32, 128  # llama-3-8b: layers, query heads, and the width of one


def test_what_is_new_of_a_prompt_attends_to_all_before_it() -> None:
    """Tokens 769 to 1024 attend to as many tokens as they have before them: scores and values, 2 FLOPs each."""
    run = run_of("llama-3-8b", prompt_tokens=1024, prefix_cache_hit_rate=0.75, concurrency=4)
    assert (run.prompt, run.fresh) == (1024, 256)
    attended = sum(range(769, 1025))
    flops = 2 * 2 * LAYERS * HEADS * WIDTH * attended
    assert prefill_pass(run, 256.0).attention_flops == pytest.approx(flops, rel=1e-6)
    assert prefill_pass(run, 512.0).attention_flops == pytest.approx(2 * flops, rel=1e-6)


def test_a_prompt_without_a_cached_part_is_attended_to_as_a_whole() -> None:
    run = run_of("llama-3-8b", prompt_tokens=1024)
    flops = 2 * 2 * LAYERS * HEADS * WIDTH * sum(range(1, 1025))
    assert prefill_pass(run, 1024.0).attention_flops == pytest.approx(flops, rel=1e-6)


def test_scores_are_stored_in_four_bytes_for_every_head_and_token_attended_to() -> None:
    run = run_of("llama-3-8b", prompt_tokens=1024, output_tokens=128)
    assert prefill_pass(run, 1024.0).scores == pytest.approx(4 * LAYERS * HEADS * sum(range(1, 1025)))
    assert decode_pass(run, 8.0).scores == pytest.approx(4 * 8 * LAYERS * HEADS * float(run.decode_context))


def test_only_windowed_layers_store_no_more_scores_than_their_window() -> None:
    """gemma-2-9b: 21 of 42 layers attend to the 4,096 tokens before a token, the others to all 32,768."""
    layers, heads, window, prompt = 21, 16, 4096, 32_768
    run = run_of("gemma-2-9b", prompt_tokens=prompt, output_tokens=128)
    full, windowed = prompt * (prompt + 1) / 2, window * prompt - window * (window - 1) / 2
    scores = prefill_pass(run, float(prompt)).scores
    assert scores == pytest.approx(4 * layers * heads * (full + windowed))
    context = float(run.decode_context)
    assert decode_pass(run, 8.0).scores == pytest.approx(4 * 8 * layers * heads * (context + window))


CATALOG = load_catalog()


def step_seconds(model: str, seq_len: int, **training: object) -> float:
    """Seconds of a step over 64k tokens on one device."""
    data = {
        "task": "train",
        "model": {"name": model},
        "training": {"seq_len": seq_len, "micro_batch": 65536 // seq_len, "checkpointing": "full", **training},
        "hardware": {"name": "a100-sxm-80gb", "devices": 1},
    }
    return mean(estimate_plan(plan_from_data(data), None, CATALOG).estimate.computation.step_seconds.value)


@pytest.mark.parametrize(("model", "like"), [("mamba2-2.7b", "llama-3.2-3b"), ("rwkv-7-1.5b", "llama-3.2-1b")])
def test_models_without_attention_train_about_as_fast_as_transformers_of_their_size(model: str, like: str) -> None:
    """As Dao and Gu 2024 and Peng et al. 2025 report of 2k tokens; none takes several times as long."""
    sizes = [CATALOG.architectures[name].params_total or 0 for name in (model, like)]
    a_parameter, of_other = (step_seconds(name, 2048) / size for name, size in zip((model, like), sizes, strict=True))
    assert 0.7 < a_parameter / of_other < 2.0


@pytest.mark.parametrize("model", ["mamba2-2.7b", "rwkv-7-1.5b"])
def test_their_time_does_not_grow_with_the_sequence(model: str) -> None:
    assert step_seconds(model, 16384) == pytest.approx(step_seconds(model, 2048), rel=0.05)


def test_stored_scores_are_of_layers_that_attend_alone() -> None:
    """Nothing of a model without attention waits for scores, whatever the kernel is called."""
    assert step_seconds("mamba2-2.7b", 2048, attention="eager") < 3 * step_seconds("mamba2-2.7b", 2048)


def test_a_layer_that_attends_stores_its_scores_whole_while_it_is_computed_again() -> None:
    """Of Zamba2's layers a sixth attends: the mean of all has a sixth of the scores, that layer all of them."""

    def peak(attention: str) -> float:
        data = {
            "task": "finetune",
            "model": {"name": "zamba2-2.7b"},
            "training": {
                "method": "lora",
                "attention": attention,
                "checkpointing": "full",
                "seq_len": 4096,
                "micro_batch": 4,
            },
            "hardware": {"name": "h200-sxm", "devices": 1},
        }
        return mean(estimate_plan(plan_from_data(data), None, CATALOG).estimate.memory.per_device_bytes.value)

    heads = CATALOG.architectures["zamba2-2.7b"].heads or 0
    one_copy = 2.0 * 4 * heads * 4096**2
    assert peak("eager") - peak("flash") > 2.0 * one_copy
