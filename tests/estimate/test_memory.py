"""Training memory against what can be counted by hand."""

from __future__ import annotations

import pytest

from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.plan import Plan, with_values
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.solve import explain

GIB = 2**30


def fine_tuning(model: str, hardware: str = "rtx-a6000", **training: object) -> Plan:
    """Return a plan that fine-tunes a model with 4-bit adapters on one device."""
    return Plan.model_validate(
        {
            "task": "finetune",
            "model": {"name": model},
            "hardware": {"name": hardware},
            "training": {
                "adapter": {"kind": "qlora", "rank": 8},
                "seq_len": 512,
                "checkpointing": "full",
                "framework": "transformers",
                **training,
            },
        }
    )


@pytest.mark.parametrize(("model", "gib"), [("llama-1-65b", 32.4), ("qwen2.5-32b", 17.8), ("llama-3-8b", 5.3)])
def test_a_frozen_base_in_four_bits_counts_its_layers_once(model: str, gib: float) -> None:
    weights = float(estimate_plan(fine_tuning(model)).estimate.memory.parts["weights"]) / GIB
    assert weights == pytest.approx(gib, rel=0.02)


def test_the_largest_published_four_bit_fine_tunings_fit() -> None:
    assert estimate_plan(fine_tuning("llama-1-65b", "rtx-a6000")).estimate.fits
    assert estimate_plan(fine_tuning("qwen2.5-32b", "rtx-4090")).estimate.fits


def test_the_bits_of_a_frozen_weight_are_taken_apart() -> None:
    found = explain(fine_tuning("llama-3-8b"), "memory.parts.weights").explanation
    assert any("4 + 8/64 + 32/(64 × 256), 4.127 bits" in remark for remark in found.remarks)
    layers = next(each for each in found.derivations[0].inputs if each.name == "layers").derivation
    assert layers is not None
    each = next(given for given in layers.inputs if given.name == "parameter_bytes").derivation
    assert each is not None
    assert each.formula == "each = bits / 8"
    assert [given.value for given in each.inputs] == [4.127]


def test_a_model_that_writes_nothing_says_so() -> None:
    plan = Plan.model_validate({"task": "infer", "model": {"name": "bert-base"}, "hardware": {"name": "a100-sxm-80gb"}})
    found = explain(plan, "computation.infer.decode_tokens_per_second").explanation
    assert found.figure.value is None
    assert found.remarks == ("the model generates no tokens",)


def pipeline(**parallelism: object) -> Plan:
    """Return a plan that trains Llama 3 70B on 64 devices."""
    return Plan.model_validate(
        {
            "task": "train",
            "model": {"name": "llama-3-70b"},
            "hardware": {"name": "h100-sxm-80gb", "devices": 64},
            "training": {"framework": "megatron", "global_batch": 64, "checkpointing": "full"},
            "parallelism": {"tp": 4, **parallelism},
        }
    )


def test_each_end_of_a_pipeline_is_told() -> None:
    plan = pipeline(pp=4)
    memory = estimate_plan(plan).estimate.memory
    result = result_as_dict(plan, estimate_plan(plan).estimate)["memory"]
    assert isinstance(result, dict)
    stages = result["stages"]
    assert stages["fullest"] == {
        "per_device_bytes": round(float(memory.per_device_bytes.value)),
        "reserved_bytes": round(float(memory.reserved_bytes.value)),
    }
    # The first stage holds the activations of four micro-batches, the last those of one.
    assert stages["last"]["per_device_bytes"] < stages["first"]["per_device_bytes"]
    assert max(stages[name]["reserved_bytes"] for name in ("first", "last")) <= stages["fullest"]["reserved_bytes"]


def test_without_a_pipeline_all_stages_are_one() -> None:
    plan = pipeline(zero=3)
    memory = result_as_dict(plan, estimate_plan(plan).estimate)["memory"]
    assert isinstance(memory, dict)
    whole = {name: memory[name]["value"] for name in ("per_device_bytes", "reserved_bytes")}
    assert memory["stages"] == {"first": whole, "last": whole, "fullest": whole}


def test_the_timeline_peaks_at_the_total() -> None:
    plan = pipeline(pp=4)
    memory = result_as_dict(plan, estimate_plan(plan).estimate)["memory"]
    assert isinstance(memory, dict)
    moments = {entry["moment"]: entry["bytes"] for entry in memory["timeline"]}
    assert list(moments) == ["load", "forward peak", "backward peak", "optimizer", "checkpoint"]
    assert max(moments.values()) == memory["per_device_bytes"]["value"]
    assert moments["load"] < moments["checkpoint"] < moments["forward peak"]


def test_no_range_goes_below_the_weights() -> None:
    served = Plan.model_validate(
        {
            "task": "infer",
            "model": {"name": "llama-3-70b"},
            "hardware": {"name": "b200-sxm"},
            "inference": {"engine": "vllm", "prompt_tokens": 128, "output_tokens": 128},
        }
    )
    for plan in (served, pipeline()):
        memory = estimate_plan(plan).estimate.memory
        low, value, high = (float(getattr(memory.reserved_bytes, end)) for end in ("low", "value", "high"))
        assert float(memory.parts["weights"]) <= low < value < high


def test_a_pipeline_of_sharded_stages_gathers_layers_and_fsdp_says_that_it_keeps_them() -> None:
    base = {"pp": 4, "tp": 1}
    for zero in (0, 1, 2):
        less = estimate_plan(pipeline(zero=zero + 1, **base)).estimate.memory.per_device_bytes.value
        assert float(less) < float(estimate_plan(pipeline(zero=zero, **base)).estimate.memory.per_device_bytes.value)
    kept = estimate_plan(with_values(pipeline(zero=3, **base), {"training.framework": "torchtitan"})).estimate
    layered = estimate_plan(pipeline(zero=3, **base)).estimate
    assert float(kept.memory.parts["buffers"]) > 5 * float(layered.memory.parts["buffers"])


def sharded(framework: str, batch: int, **others: object) -> dict[str, float]:
    """Return GiB of the gradients, and all, of Llama 3 8B trained on 8 devices, a sequence at a time."""
    plan = Plan.model_validate(
        {
            "task": "train",
            "model": {"name": "llama-3-8b"},
            "hardware": {"name": "h100-sxm-80gb", "devices": 8},
            "training": {"framework": framework, "global_batch": batch, "micro_batch": 1, "checkpointing": "full"},
            "parallelism": {"zero": 3},
        }
    )
    memory = estimate_plan(with_values(plan, others)).estimate.memory
    return {"gradients": float(memory.parts["gradients"]) / GIB, "all": float(memory.per_device_bytes.value) / GIB}


@pytest.mark.parametrize("framework", ["transformers", "litgpt"])
def test_gradients_of_sharded_models_stay_whole_where_micro_batches_before_the_last_are_not_reduced(
    framework: str,
) -> None:
    once, twice, often = (sharded(framework, batch) for batch in (8, 16, 128))
    # 8.03e9 gradients in bf16, instead of an eighth of them or none at the peak.
    assert twice["gradients"] == pytest.approx(8.03e9 * 2 / GIB, rel=0.01)
    assert twice["all"] > once["all"] + 0.6 * twice["gradients"]
    assert often == twice
    # Alone, or whole on each device, there is nothing to reduce late.
    assert sharded(framework, 16, **{"parallelism.zero": 0})["gradients"] >= twice["gradients"]


@pytest.mark.parametrize("framework", ["fsdp", "torchtitan", "deepspeed", "torchtune"])
def test_software_that_reduces_with_every_micro_batch_holds_shards(framework: str) -> None:
    assert sharded(framework, 16)["gradients"] < 0.3 * 8.03e9 * 2 / GIB
