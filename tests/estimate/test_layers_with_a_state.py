"""Layers that keep a state in place of attention: their work is that of chunks, however long the sequence is."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.files import plan_from_data

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
