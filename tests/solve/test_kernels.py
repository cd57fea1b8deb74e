"""What a device or an engine has no kernels for is neither advised nor exported without a word."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import ResolvedPlan, estimate_plan, resolve_plan
from capacity_tui.engine.machine import Setting
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present.frameworks import framework_files
from capacity_tui.engine.solve import answer
from capacity_tui.engine.solve.steps import one_step_away


def trained(hardware: str, model: str = "gpt2", **training: object) -> Plan:
    return Plan.model_validate(
        {"model": {"name": model}, "task": "train", "training": training, "hardware": {"name": hardware}}
    )


def served(hardware: str, devices: int = 1, **inference: object) -> Plan:
    return Plan.model_validate(
        {
            "task": "infer",
            "model": {"name": "qwen2.5-72b"},
            "inference": inference,
            "hardware": {"name": hardware, "devices": devices},
        }
    )


def warned(plan: Plan) -> set[str]:
    return {note.code for note in answer(plan).estimate.warnings}


def weights_one_step_away(resolved: ResolvedPlan) -> set[str]:
    steps = one_step_away(resolved, load_catalog(), lambda field: field.path == "inference.weights")
    return {str(value) for _, value in steps}


@pytest.mark.parametrize("hardware", ["t4", "v100-sxm2-32gb"])
def test_flash_attention_is_not_written_for_a_device_without_it(hardware: str) -> None:
    plan = trained(hardware)
    files = framework_files(resolve_plan(plan, load_catalog()), load_catalog())
    text = files["training_arguments.yaml"]
    assert 'attn_implementation="sdpa"' in text
    assert "flash_attention_2" not in text
    assert "bf16: false" in text and "fp16: true" in text
    assert {"attention_kernel", "precision_not_native"} <= warned(plan)


@pytest.mark.parametrize(
    ("framework", "name", "has", "lacks"),
    [
        ("megatron", "megatron.sh", "--fp16", "--bf16"),
        ("torchtitan", "torchtitan_config.py", 'mixed_precision_param="float32"', 'bfloat16"'),
        ("deepspeed", "ds_config.json", '"fp16": {\n    "enabled": true', '"bf16": {\n    "enabled": true'),
    ],
)
def test_no_framework_multiplies_in_a_type_that_the_device_lacks(
    framework: str, name: str, has: str, lacks: str
) -> None:
    plan = trained("v100-sxm2-32gb", "llama-3.1-8b", framework=framework, precision="bf16")
    text = framework_files(resolve_plan(plan, load_catalog()), load_catalog())[name]
    assert has in text
    assert lacks not in text
    assert "this device has no units for it" in text or name.endswith(".json")


def test_a_network_in_a_type_that_the_device_lacks_is_warned_of() -> None:
    assert "precision_not_native" in warned(trained("rtx-3060-12gb", "mlp", precision="fp8"))
    assert "precision_not_native" not in warned(trained("h100-sxm-80gb", "mlp", precision="fp8"))


def test_no_lever_leaves_the_engine_or_the_device() -> None:
    catalog = load_catalog()
    resolved = resolve_plan(served("h100-sxm-80gb", engine="vllm"), catalog)
    tried = weights_one_step_away(resolved)
    assert tried
    assert not any(name.startswith(("mlx", "q4", "q5", "q6", "q8")) for name in tried)
    volta = resolve_plan(served("v100-sxm2-32gb", engine="vllm"), catalog)
    older = weights_one_step_away(volta)
    assert not older & {"awq-4", "fp8"}


@pytest.mark.parametrize(("engine", "hardware"), [("mlx", "h100-sxm-80gb"), ("neuron", "h100-sxm-80gb")])
def test_an_engine_on_hardware_it_does_not_run_on_is_refused(engine: str, hardware: str) -> None:
    with pytest.raises(PlanError, match="does not run on this hardware"):
        estimate_plan(served(hardware, engine=engine))


def test_a_format_that_the_engine_does_not_read_is_warned_of() -> None:
    assert "no_kernels" in warned(served("h100-sxm-80gb", 8, engine="vllm", weights="q4_k_m"))
    assert "no_kernels" not in warned(served("h100-sxm-80gb", 8, engine="vllm", weights="awq-4"))


def test_environment_says_what_the_plan_says() -> None:
    setting = Setting("compile", "on", "Triton runs here")
    plan = resolve_plan(trained("h100-sxm-80gb", compile=False), load_catalog())
    text = framework_files(plan, load_catalog(), (setting,))["environment.sh"]
    assert "compile: off (as planned; on suits the device: Triton runs here)" in text


def test_what_fits_without_harm_is_the_first_advice_for_serving_and_spot_never() -> None:
    plan = Plan.model_validate(
        {
            "task": "infer",
            "model": {"name": "qwen2.5-72b"},
            "inference": {"engine": "vllm", "batch": 16, "prompt_tokens": 4096},
            "parallelism": {"tp": 1, "pp": 1},
            "hardware": {"name": "aws-p5-48xlarge"},
        }
    )
    advice = answer(plan).estimate.recommendations
    assert advice[0].code == "layout"
    roomy = plan.model_copy(update={"parallelism": plan.parallelism.model_copy(update={"tp": 4})})
    codes = [note.code for note in answer(roomy).estimate.recommendations]
    assert codes[0] != "spot"
