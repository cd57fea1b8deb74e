"""The kernels of a run do the arithmetic of its model, no less: whatever is timed is what is counted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import estimate_plan, resolve_plan
from capacity_tui.engine.estimate.serving import serving_run
from capacity_tui.engine.estimate.serving.speed import decode, prefill
from capacity_tui.engine.estimate.transformer import transformer_run
from capacity_tui.engine.estimate.transformer.operators import training_operators
from capacity_tui.engine.models.transformer import Latent, decode_flops_per_token, forward_flops_per_token, prompt_flops
from capacity_tui.engine.plan import Plan

MODELS = ("llama-3-8b", "gpt2", "t5-11b", "mixtral-8x7b", "deepseek-v3", "gemma-3-27b")
ENGINES = ("transformers", "vllm", "llamacpp")


@pytest.mark.parametrize("name", MODELS)
def test_forward_kernels_of_training_do_what_the_model_needs(name: str) -> None:
    plan = Plan.model_validate({"task": "train", "model": {"name": name}, "hardware": {"name": "a100-sxm-80gb"}})
    resolved = resolve_plan(plan, load_catalog())
    assert resolved.shape is not None
    run = transformer_run(resolved.plan, resolved.shape, resolved.cluster, load_catalog())
    forward = [operator for operator in training_operators(run) if operator.phase == "forward"]
    done = sum(float(operator.flops * operator.count) for operator in forward)
    needed = float(forward_flops_per_token(resolved.shape, run.data.seq_len, run.causal)) * float(run.tokens)
    # The vocabulary is padded.
    assert done == pytest.approx(needed, rel=0.005)


@pytest.mark.parametrize("name", MODELS)
def test_kernels_of_serving_do_what_the_model_needs(name: str) -> None:
    inference = {"prompt_tokens": 1000, "output_tokens": 50, "batch": 3, "engine": "transformers"}
    sections = {"model": {"name": name}, "hardware": {"name": "a100-sxm-80gb"}, "inference": inference}
    resolved = resolve_plan(Plan.model_validate({"task": "infer", **sections}), load_catalog())
    assert resolved.shape is not None
    run = serving_run(resolved.plan, resolved.shape, resolved.cluster, load_catalog())
    read, written = (
        sum(float(operator.flops * operator.count * phase.schedule.repeats) for operator in phase.operators)
        for phase in (prefill(run), decode(run))
    )
    assert read == pytest.approx(3 * float(prompt_flops(resolved.shape, run.prompt, run.prompt_logits)), rel=0.001)
    # Latent attention decodes on the compressed keys and values: more arithmetic, less memory.
    needed = 3 * float(decode_flops_per_token(resolved.shape, run.decode_context))
    assert written >= 0.999 * needed
    assert isinstance(resolved.shape.attention_kind, Latent) or written == pytest.approx(needed, rel=0.001)


def test_an_encoder_takes_its_time() -> None:
    """T5's encoder holds a little less than half of its weights: leaving it out was a step of 423 TFLOP/s."""
    training = {"seq_len": 512, "micro_batch": 8, "global_batch": 8}
    sections = {"model": {"name": "t5-11b"}, "hardware": {"name": "a100-sxm-80gb"}, "training": training}
    found = estimate_plan(Plan.model_validate({"task": "train", **sections})).estimate
    kernels = found.computation.parts["compute"] + found.computation.parts["attention"]
    assert float(found.computation.model_flops_per_step / kernels) < 0.8 * 312e12


@settings(max_examples=100, deadline=None)
@given(
    model=st.sampled_from((*MODELS, "bert-large", "pythia-70m")),
    hardware=st.sampled_from(("h100-sxm-80gb", "a100-sxm-80gb", "rtx-4090", "cpu-8c-3.5ghz-baseline", "mi300x")),
    engine=st.sampled_from(ENGINES),
    weights=st.sampled_from(("bf16", "fp32", "fp8", "int8", "nf4", "q4_k_m")),
    prompt=st.sampled_from((1, 8, 1024, 131_072)),
    output=st.sampled_from((1, 512)),
    batch=st.integers(1, 256),
)
def test_serving_never_uses_more_than_the_peak(model, hardware, engine, weights, prompt, output, batch) -> None:
    inference = {"prompt_tokens": prompt, "output_tokens": output, "batch": batch, "weights": weights, "engine": engine}
    sections = {"model": {"name": model}, "hardware": {"name": hardware}, "inference": inference}
    found = estimate_plan(Plan.model_validate({"task": "infer", **sections})).estimate
    assert 0.0 < float(found.computation.mfu) <= 1.0
