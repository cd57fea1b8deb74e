"""Models that read a source before they answer: what they keep of it, and sound, of which they always read as much."""

from __future__ import annotations

from typing import Any

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.plan.files import plan_from_data

CATALOG = load_catalog()
WIDTH, LAYERS, SOURCE = 1280, 32, 1500


def served(name: str, **inference: Any) -> Estimate:
    settings = {"engine": "transformers", "weights": "fp16", "kv_cache": "fp16", "batch": 4, **inference}
    data = {"task": "infer", "model": {"name": name}, "inference": settings, "hardware": {"name": "a100-sxm-80gb"}}
    return estimate_plan(plan_from_data(data), None, CATALOG).estimate


def cached(estimate: Estimate) -> float:
    return float(estimate.memory.parts["kv_cache"])


def test_a_source_token_is_kept_for_cross_attention_and_an_answered_one_for_its_own() -> None:
    """Keys and values of 16 bits in each layer of the decoder, once a token."""
    by_hand = 4 * (SOURCE + 100) * LAYERS * 2 * WIDTH * 2
    assert cached(served("whisper-large-v3", output_tokens=100)) == pytest.approx(by_hand, rel=0.01)


def test_sound_is_as_long_whatever_the_plan_says() -> None:
    assert cached(served("whisper-small", prompt_tokens=64)) == cached(served("whisper-small", prompt_tokens=4096))


def test_a_shallow_decoder_answers_sooner_and_hears_as_fast() -> None:
    deep, shallow = (served(name, output_tokens=100) for name in ("whisper-large-v3", "whisper-large-v3-turbo"))
    slow, fast = deep.computation.infer, shallow.computation.infer
    assert float(fast.time_per_output_token_seconds.value) < 0.5 * float(slow.time_per_output_token_seconds.value)
    first = float(slow.time_to_first_token_seconds.value)
    assert float(fast.time_to_first_token_seconds.value) == pytest.approx(first, rel=0.2)


def test_training_of_a_model_that_listens_is_refused() -> None:
    data = {"task": "finetune", "model": {"name": "whisper-small"}, "hardware": {"name": "rtx-4090"}}
    with pytest.raises(PlanError, match="listen"):
        estimate_plan(plan_from_data(data), None, CATALOG)
