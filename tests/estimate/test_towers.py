"""Towers of pictures and sound beside a language model: trained with it, or only read."""

from __future__ import annotations

from typing import Any

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Answer, estimate_plan
from capacity_tui.engine.models.transformer import shape_of
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.files import plan_from_data

CATALOG = load_catalog()
VISION, SOUND, TEXT = "qwen2.5-vl-7b", "voxtral-mini-3b", "qwen2.5-7b"


def answer(model: str, **training: Any) -> Answer:
    """Return the answer to a fine-tuning on one device."""
    data = {
        "task": "finetune",
        "model": {"name": model},
        "training": {"seq_len": 512, "micro_batch": 1, "framework": "ddp", **training},
        "hardware": {"name": "h200-sxm", "devices": 1},
    }
    return estimate_plan(plan_from_data(data), None, CATALOG)


def parts(model: str, **training: Any) -> dict[str, float]:
    return {name: mean(value) for name, value in answer(model, **training).estimate.memory.parts.items()}


@pytest.mark.parametrize("model", [VISION, SOUND])
@pytest.mark.parametrize("method", ["full", "lora"])
@pytest.mark.parametrize(("master", "states"), [("none", 4), ("fp32", 8)])
def test_frozen_towers_keep_weights_but_no_states(model: str, method: str, master: str, states: int) -> None:
    """AdamW keeps two moments as wide as the weights that it updates."""
    trained, frozen = (
        parts(model, method=method, towers=word, master_weights=master) for word in ("trained", "frozen")
    )
    towers = float(shape_of(CATALOG.architectures[model]).tower_weights)
    assert towers > 6e8
    assert trained["weights"] == frozen["weights"]
    assert trained["optimizer"] - frozen["optimizer"] == pytest.approx(states * towers)


def test_frozen_towers_have_no_gradients() -> None:
    trained, frozen = (parts(VISION, towers=word, master_weights="none") for word in ("trained", "frozen"))
    towers = float(shape_of(CATALOG.architectures[VISION]).tower_weights)
    assert trained["gradients"] - frozen["gradients"] == pytest.approx(2 * towers)


def test_pipeline_stages_without_towers_are_as_they_were() -> None:
    """Towers lie on the first stage, whose peak alone they move."""
    data = {
        "task": "finetune",
        "model": {"name": VISION},
        "training": {"seq_len": 512, "global_batch": 8, "framework": "megatron"},
        "hardware": {"name": "h200-sxm", "devices": 4},
        "parallelism": {"pp": 4},
    }
    plans = (
        plan_from_data(data | {"training": {**data["training"], "towers": word}}) for word in ("trained", "frozen")
    )
    first = [estimate_plan(plan, None, CATALOG).estimate for plan in plans]
    assert mean(first[0].memory.per_device_bytes.value) > mean(first[1].memory.per_device_bytes.value)


@pytest.mark.parametrize(("method", "usual"), [("full", "trained"), ("lora", "frozen"), ("qlora", "frozen")])
def test_towers_are_trained_with_all_weights_unless_it_is_said(method: str, usual: str) -> None:
    assert parts(VISION, method=method) == parts(VISION, method=method, towers=usual)
    assert answer(VISION, method=method).resolved.plan.training.towers == usual


def test_a_model_of_text_alone_has_no_towers_to_freeze() -> None:
    assert parts(TEXT, towers="frozen") == parts(TEXT)
    assert answer(TEXT, towers="frozen").resolved.plan.training.towers is None


def test_buffers_of_shared_parameters_hold_no_tower_whole() -> None:
    """Towers are gathered block by block, so that buffers hold as much of frozen ones as of none."""
    data = {
        "task": "finetune",
        "model": {"name": "qwen2.5-vl-3b"},
        "training": {"seq_len": 512, "global_batch": 8, "framework": "fsdp", "checkpointing": "full"},
        "hardware": {"name": "h200-sxm", "devices": 8},
        "parallelism": {"zero": 3},
    }
    tied = float(shape_of(CATALOG.architectures["qwen2.5-vl-3b"]).vocab) * 2048
    buffers = mean(estimate_plan(plan_from_data(data), None, CATALOG).estimate.memory.parts["buffers"])
    assert buffers < 8 * tied + 4 * 2**30
