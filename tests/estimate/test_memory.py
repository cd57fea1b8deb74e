"""Training memory against what can be counted by hand."""

from __future__ import annotations

import pytest

from capacity_tui.engine import explain
from capacity_tui.engine.estimate.estimate import estimate_plan
from capacity_tui.engine.workload.plan import Plan

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
    each = next(given for given in layers.inputs if given.name == "each").derivation
    assert each is not None
    assert each.formula == "each = bits / 8"
    assert [given.value for given in each.inputs] == [4.127]


def test_a_model_that_writes_nothing_says_so() -> None:
    plan = Plan.model_validate({"task": "infer", "model": {"name": "bert-base"}, "hardware": {"name": "a100-sxm-80gb"}})
    found = explain(plan, "computation.infer.decode_tokens_per_second").explanation
    assert found.figure.value is None
    assert found.remarks == ("the model generates no tokens",)
