"""Models of several parts: towers of pictures and sound, and models that read a source before they answer."""

from __future__ import annotations

from typing import Any

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Answer, Estimate, estimate_plan, resolve_plan
from capacity_tui.engine.estimate.resolve import unsaid
from capacity_tui.engine.estimate.transformer.finetuning import adapter_parameters
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


def trained(name: str, method: str = "full", **training: Any) -> Estimate:
    settings = {"micro_batch": 8, "global_batch": 8, "precision": "fp16", "method": method, **training}
    data = {"task": "finetune", "model": {"name": name}, "training": settings, "hardware": {"name": "a100-sxm-80gb"}}
    return estimate_plan(plan_from_data(data), None, CATALOG).estimate


def part(estimate: Estimate, name: str) -> float:
    return float(estimate.memory.parts[name])


@pytest.mark.parametrize("written", [448, 100])
def test_a_step_on_sound_does_what_is_counted_by_hand(written: int) -> None:
    """Whisper small: 12 + 12 layers of width 768, 51 865 entries; two operations a multiply-add, three passes."""
    width, layers, heads = 768, 12, 12
    block, cross = 12 * width**2, 4 * width**2
    # Queries and outputs of the attention to the encoder are made of the transcript, keys and values of the sound.
    source = layers * block + layers * cross / 2
    target = layers * (block + cross / 2) + 51865 * width
    scores = SOURCE * SOURCE + written * written + written * SOURCE
    attention = layers * 2 * 2 * heads * 64 * scores
    by_hand = 3 * (2 * (SOURCE * source + written * target) + attention)
    estimate = trained("whisper-small", predicted_tokens=written)
    assert float(estimate.computation.model_flops_per_step) == pytest.approx(8 * by_hand, rel=0.001)


def test_a_model_that_listens_is_trained_on_all_of_its_sound_and_usually_100_tokens() -> None:
    usual = float(trained("whisper-small").computation.model_flops_per_step)
    assert usual == float(trained("whisper-small", seq_len=512).computation.model_flops_per_step)
    assert usual == float(trained("whisper-small", predicted_tokens=100).computation.model_flops_per_step)


def test_activations_of_encoder_and_decoder_wait_for_the_backward_pass() -> None:
    """T5's encoder has as many layers as its decoder, whose attention to it keeps more than nothing."""
    both, alone = (part(trained(name, seq_len=512), "activations") for name in ("bart-large", "roberta-large"))
    # 12 + 12 layers beside 24 of the same width and feed-forward, and 12 further attentions.
    assert alone < both < 1.5 * alone


def test_memory_of_training_on_sound_grows_with_the_pieces_and_with_the_model() -> None:
    small, medium, large = (trained(f"whisper-{size}") for size in ("small", "medium", "large-v3"))
    for name in ("weights", "optimizer", "activations"):
        assert part(small, name) < part(medium, name) < part(large, name)
    twice = trained("whisper-small", micro_batch=16, global_batch=16)
    assert part(twice, "activations") == pytest.approx(2 * part(small, "activations"), rel=0.01)
    # A decoder of 4 layers in place of 32, beside the same encoder.
    assert part(trained("whisper-large-v3-turbo"), "activations") < part(large, "activations")


def test_adapters_stand_in_encoder_decoder_and_between_them() -> None:
    """PEFT counts 15 728 640 parameters of rank 32 on queries and values of large-v2 (its guide to int8)."""
    adapter = {"kind": "lora", "rank": 32, "targets": "query+value"}
    data = {"task": "finetune", "model": {"name": "whisper-large-v2"}, "hardware": {"name": "t4"}}
    settings = {"method": "lora", "precision": "fp16", "adapter": adapter}
    resolved = resolve_plan(plan_from_data({**data, "training": settings}), CATALOG)
    assert resolved.shape is not None
    assert resolved.plan.training.adapter is not None
    assert adapter_parameters(resolved.shape, resolved.plan.training.adapter) == (15_728_640, 0)


def test_a_quantized_base_packs_the_encoder_too() -> None:
    packed, whole = (trained("whisper-large-v3", method) for method in ("qlora", "lora"))
    assert part(packed, "weights") < 0.4 * part(whole, "weights")


def test_what_a_transcript_is_taken_for_is_said() -> None:
    data = {"task": "finetune", "model": {"name": "whisper-small"}, "hardware": {"name": "t4"}}
    said = [entry.key for entry in unsaid(resolve_plan(plan_from_data(data), CATALOG), {})]
    assert "training.predicted_tokens" in said
    data["training"] = {"predicted_tokens": 60}
    said = [entry.key for entry in unsaid(resolve_plan(plan_from_data(data), CATALOG), {})]
    assert "training.predicted_tokens" not in said


def test_what_is_published_of_training_whisper_is_met() -> None:
    """32 GB of an A100 at a batch of 2, none that fits in 24 GB, and 8 bits below 8 GB: sources.csv, whisper-*."""
    large = trained("whisper-large-v3", micro_batch=2, global_batch=2, checkpointing="full").memory
    assert large.reserved_bytes.low < 32e9 < large.reserved_bytes.high
    alone = trained("whisper-large-v2", micro_batch=1, global_batch=1, checkpointing="full", attention="eager").memory
    assert alone.reserved_bytes.low > 24 * 2**30
    adapter = {"kind": "lora", "rank": 32, "targets": "query+value"}
    packed = trained("whisper-large-v2", "lora", adapter=adapter, quantization="int8", checkpointing="full").memory
    assert packed.reserved_bytes.value < 8e9


def test_the_range_of_training_on_sound_holds_what_stands_beside_its_steps() -> None:
    """8 h for 5000 steps on a V100, five evaluations in them: sources.csv, transformers-speech."""
    batch = {"micro_batch": 16, "global_batch": 32, "checkpointing": "full"}
    settings = {**batch, "precision": "fp16", "method": "full", "attention": "eager", "framework": "transformers"}
    data = {"task": "finetune", "model": {"name": "whisper-small"}, "hardware": {"name": "v100-sxm2-16gb"}}
    heard = estimate_plan(plan_from_data({**data, "training": settings}), None, CATALOG).estimate
    step = heard.computation.step_seconds
    assert step.value < step.low * 1.5
    assert step.value < 28_800 / 5000 < step.high
    assert any("evaluations write transcripts" in sentence for sentence in heard.basis.ranges)
    # A reader of texts is as sure as before.
    text = {**data, "model": {"name": "bart-large"}, "training": {**settings, "seq_len": 512}}
    read = estimate_plan(plan_from_data(text), None, CATALOG).estimate
    assert read.computation.step_seconds.high < 2 * read.computation.step_seconds.value
