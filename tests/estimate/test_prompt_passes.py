"""Attention over prompts of which a part is cached, and stored scores of kernels that do not fuse them, by hand."""

from __future__ import annotations

import pytest

from capacity_tui.engine.estimate.serving import decode_pass
from capacity_tui.engine.estimate.serving.operators import prefill_pass
from tests.estimate.test_serving import run_of

LAYERS, HEADS, WIDTH = 32, 32, 128  # llama-3-8b: layers, query heads, and the width of one


def test_what_is_new_of_a_prompt_attends_to_all_before_it() -> None:
    """Tokens 769 to 1024 attend to as many tokens as they have before them: scores and values, 2 FLOPs each."""
    run = run_of("llama-3-8b", prompt_tokens=1024, prefix_cache_hit_rate=0.75, concurrency=4)
    assert (run.prompt, run.fresh) == (1024, 256)
    attended = sum(range(769, 1025))
    flops = 2 * 2 * LAYERS * HEADS * WIDTH * attended
    assert prefill_pass(run, 256.0).attention_flops == pytest.approx(flops, rel=1e-6)
    assert prefill_pass(run, 512.0).attention_flops == pytest.approx(2 * flops, rel=1e-6)


def test_a_prompt_without_a_cached_part_is_attended_to_as_a_whole() -> None:
    run = run_of("llama-3-8b", prompt_tokens=1024)
    flops = 2 * 2 * LAYERS * HEADS * WIDTH * sum(range(1, 1025))
    assert prefill_pass(run, 1024.0).attention_flops == pytest.approx(flops, rel=1e-6)


def test_scores_are_stored_in_four_bytes_for_every_head_and_token_attended_to() -> None:
    run = run_of("llama-3-8b", prompt_tokens=1024, output_tokens=128)
    assert prefill_pass(run, 1024.0).scores == pytest.approx(4 * LAYERS * HEADS * sum(range(1, 1025)))
    assert decode_pass(run, 8.0).scores == pytest.approx(4 * 8 * LAYERS * HEADS * float(run.decode_context))


def test_only_windowed_layers_store_no_more_scores_than_their_window() -> None:
    """gemma-2-9b: 21 of 42 layers attend to the 4,096 tokens before a token, the others to all 32,768."""
    layers, heads, window, prompt = 21, 16, 4096, 32_768
    run = run_of("gemma-2-9b", prompt_tokens=prompt, output_tokens=128)
    full, windowed = prompt * (prompt + 1) / 2, window * prompt - window * (window - 1) / 2
    scores = prefill_pass(run, float(prompt)).scores
    assert scores == pytest.approx(4 * layers * heads * (full + windowed))
    context = float(run.decode_context)
    assert decode_pass(run, 8.0).scores == pytest.approx(4 * 8 * layers * heads * (context + window))
