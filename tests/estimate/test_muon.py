"""Muon: products of whole matrices, momentum for them, AdamW for the rest; factored and small states of others."""

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
from capacity_tui.engine.plan import Plan


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
