"""Kernels of attention: which one runs, and how its speed follows from hardware, length and heads."""

from dataclasses import replace

import pytest

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import estimate_plan, resolve_plan
from capacity_tui.engine.estimate.timing import attention_in_place_of, attention_rate
from capacity_tui.engine.estimate.timing.attention import attention_kernel, attention_rates
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer


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
