"""Training memory against what can be counted by hand, and what follows from the weights and states kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate, estimate_plan, resolve_plan
from capacity_tui.engine.estimate.timing.schedule import step_time
from capacity_tui.engine.estimate.transformer import TransformerRun, transformer_run
from capacity_tui.engine.estimate.transformer.operators import training_operators
from capacity_tui.engine.estimate.transformer.training import training_work
from capacity_tui.engine.models.transformer import layer_matrices
from capacity_tui.engine.numeric import Number
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


def plan_of(optimizer: str, zero: int = 1, model: str = "llama-3-8b", **training: object) -> Plan:
    return Plan.model_validate(
        {
            "task": "train",
            "model": {"name": model},
            "hardware": {"name": "h100-sxm-80gb", "devices": 8},
            "training": {"seq_len": 4096, "micro_batch": 1, "global_batch": 8, "optimizer": optimizer, **training},
            "parallelism": {"zero": zero},
        }
    )


def estimated(optimizer: str, zero: int = 1) -> Estimate:
    return estimate_plan(plan_of(optimizer, zero)).estimate


def run_of(optimizer: str, zero: int = 1, model: str = "llama-3-8b", **training: object) -> TransformerRun:
    resolved = resolve_plan(plan_of(optimizer, zero, model, **training), load_catalog())
    assert resolved.shape is not None
    return transformer_run(resolved.plan, resolved.shape, resolved.cluster, load_catalog())


def product_flops(run: TransformerRun) -> float:
    operators = [each for each in training_operators(run) if each.name.startswith("Newton-Schulz")]
    return sum(float(each.flops * each.count) for each in operators)


def test_the_products_of_llama_by_hand() -> None:
    """Five iterations in 32 layers: two matrices of 4096 x 4096, two of 1024 x 4096, three of 4096 x 14336."""
    square = 6 * 4096**3
    narrow = 4 * 1024**2 * 4096 + 2 * 1024**3
    wide = 4 * 4096**2 * 14336 + 2 * 4096**3
    whole = 5 * 32 * (2 * square + 2 * narrow + 3 * wide)
    assert whole == pytest.approx(6.7e14, rel=0.01)
    # Ranks that split a weight share the matrices out; replicas that do not split it all do the same.
    assert product_flops(run_of("muon", zero=1)) == pytest.approx(whole / 8)
    assert product_flops(run_of("muon", zero=0)) == pytest.approx(whole)


def test_muon_takes_longer_than_adamw_and_keeps_less() -> None:
    muon, adamw = estimated("muon"), estimated("adamw")
    longer = float(muon.computation.step_seconds.value) - float(adamw.computation.step_seconds.value)
    assert longer > 6.7e14 / 8 / 989e12
    assert any("Newton-Schulz" in text for text in muon.basis.assumed)
    assert float(muon.memory.parts["optimizer"]) < float(adamw.memory.parts["optimizer"])


def test_embedding_and_head_keep_the_states_of_adamw() -> None:
    run = run_of("muon")
    assert (
        float(run.numerics.optimizer.outer_state_bytes) == float(run_of("adamw").numerics.optimizer.state_bytes) == 8.0
    )
    # Momentum alone, but for the norms.
    assert 4.0 < float(run.numerics.optimizer.state_bytes) < 4.001


def test_factored_states_are_rows_and_columns() -> None:
    """Of 6,979,584 weights of a GPT-2 layer some 33,000 rows and columns are kept, and 13,824 of vectors."""
    run = run_of("adafactor", model="gpt2")
    edges = 4 * (768 + 768) + 2 * (768 + 3072)
    vectors = 7_087_872 - (4 * 768**2 + 2 * 768 * 3072)
    assert float(run.numerics.optimizer.state_bytes) == pytest.approx(4 * (edges + vectors) / 7_087_872)


@pytest.mark.parametrize(("optimizer", "projections"), [("galore", 1), ("apollo", 0)])
def test_states_of_low_rank_are_of_its_size(optimizer: str, projections: int) -> None:
    """Two states of the rank times the longer side, and a projection of the rank times the shorter one."""
    layer = [(4096, 4096)] * 2 + [(4096, 1024)] * 2 + [(14336, 4096)] * 3
    states = 4 * sum(16 * (2 * long + projections * short) for long, short in layer) + 8 * 2 * 4096
    weights = sum(long * short for long, short in layer) + 2 * 4096
    run = run_of(optimizer, model="llama-3-8b", optimizer_rank=16)
    assert float(run.numerics.optimizer.state_bytes) == pytest.approx(states / weights, rel=0.001)
    assert float(run.numerics.optimizer.outer_state_bytes) == 8


@pytest.mark.parametrize(("rank", "is_shown"), [(None, True), (64, False)])
def test_a_rank_of_states_that_nobody_gives_is_shown(rank: int | None, is_shown: bool) -> None:
    training = {"optimizer": "galore", "optimizer_rank": rank, "tokens": 1e9}
    plan = {"task": "train", "model": {"name": "gpt2"}, "hardware": {"name": "l4"}, "training": training}
    assumed = estimate_plan(Plan.model_validate(plan)).estimate.basis.assumed
    assert any("rank 128" in note for note in assumed) == is_shown


@pytest.mark.parametrize("model", ["llama-3-8b", "gpt2", "t5-11b", "mixtral-8x7b", "deepseek-v3", "gemma-3-27b"])
def test_matrices_are_the_weights_of_the_layers(model: str) -> None:
    run = run_of("adamw", model=model)
    weights = sum(float(m.number * m.rows * m.columns) for m in layer_matrices(run.shape))
    # The rest are norms and biases.
    assert weights == pytest.approx(float(run.counts.inside_layers / run.counts.layers), rel=0.002)


def test_a_network_orthogonalizes_its_matrices_too() -> None:
    def step(optimizer: str) -> float:
        sections = {"model": {"name": "resnet50"}, "hardware": {"name": "a100-sxm-80gb"}}
        plan = Plan.model_validate({"task": "train", **sections, "training": {"optimizer": optimizer}})
        return float(estimate_plan(plan).estimate.computation.parts["optimizer"])

    assert step("muon") > 2.0 * step("adamw")


def varied(run: TransformerRun, length: Number, batch: Number, zero: Number) -> TransformerRun:
    data = replace(run.data, seq_len=length, micro_batch=batch)
    return replace(run, data=data, layout=replace(run.layout, zero=zero))


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "adafactor"])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_arrays_of_runs_agree_with_single_runs(optimizer: str, precision: str) -> None:
    """Short sequences, on which casts to fp8 do not pay, stand beside long ones."""
    run = run_of(optimizer, precision=precision)
    lengths, batches, zero = np.array([[[64.0]], [[8192.0]]]), np.array([[1.0], [4.0]]), np.array([0.0, 1.0, 3.0])
    together = training_work(varied(run, lengths, batches, zero), None)
    seconds = np.broadcast_to(step_time(together).seconds, (2, 2, 3))
    memory = np.broadcast_to(sum(together.memory.values()), (2, 2, 3))
    for place in np.ndindex(2, 2, 3):
        length, batch, stage = lengths[place[0], 0, 0], batches[place[1], 0], zero[place[2]]
        one = training_work(varied(run, float(length), float(batch), float(stage)), None)
        assert seconds[place] == pytest.approx(float(step_time(one).seconds), rel=1e-9)
        assert memory[place] == pytest.approx(float(sum(one.memory.values())), rel=1e-9)
