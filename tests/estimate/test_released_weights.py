"""Weights nobody gave a format for are those that are published, whichever door a plan comes through."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import plan_of_line
from capacity_tui.engine.solve.modes import fill

GIB = 2**30
CATALOG = load_catalog()


def said(line: str) -> tuple[Plan, Estimate]:
    filled = fill(plan_of_line(read_line(line)).plan, "balanced")
    return filled.plan, filled.estimate


@pytest.mark.parametrize(
    ("line", "weights", "gib"),
    [
        # Published weights over the devices: 671e9 bytes and two embeddings of 16 bits, 60.8 GiB, 12.8 GiB.
        ("serve deepseek-r1 8xh200", "fp8", 78.4),
        ("serve gpt-oss-120b 1xh100", "mxfp4", 60.8),
        ("serve gpt-oss-20b 1xh100", "mxfp4", 12.8),
        ("llama-3.3-70b-instruct-awq vllm 2xl40s", "awq-4", 18.6),
    ],
)
def test_published_weights_fit_where_people_run_them(line: str, weights: str, gib: float) -> None:
    plan, estimate = said(line)
    assert plan.inference.weights == weights
    assert estimate.fits
    assert float(estimate.memory.parts["weights"]) / GIB == pytest.approx(gib, rel=0.02)
    assert any(note.startswith("weights in") for note in estimate.basis.assumed)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("deepseek-v3", "fp8"),
        ("moonshotai/Kimi-K2-Instruct", "fp8"),
        ("llama-3.1-8b", "bf16"),
        ("Qwen/Qwen3-8B-FP8", "fp8"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "gptq-4"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "gptq-8"),
        ("Llama-3.3-70B-Instruct-INT8", "int8"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "nf4"),
        ("bartowski/gemma-2-9b-it-GGUF:Q5_K_M", "q5_k_m"),
        ("bartowski/gemma-2-9b-it-GGUF", "q4_k_m"),
    ],
)
def test_every_door_reads_the_format_of_a_name(name: str, weights: str) -> None:
    data = {"task": "infer", "model": {"name": name}, "hardware": {"name": "h200-sxm", "devices": 8}}
    lines = plan_of_line(read_line(f"serve {name} 8xh200")).plan
    changed = edited(plan_of_line(read_line("serve llama-2-7b 8xh200")).plan, {"model.name": name}).plan
    for plan in (plan_from_data({**data, "inference": {"engine": lines.inference.engine}}), lines, changed):
        assert plan.inference.weights is None
        assert fill(plan, "balanced").plan.inference.weights == weights
    named = edited(lines, {"inference.weights": "bf16"}).plan
    assert fill(named, "balanced").plan.inference.weights == "bf16"


def test_what_the_engine_cannot_read_is_taken_as_converted() -> None:
    plan, estimate = said("serve deepseek-r1 32xv100 vllm")
    assert plan.inference.weights == "bf16"
    assert any("capability" in note for note in estimate.basis.assumed)


def test_training_keeps_its_precision() -> None:
    plan, _ = said("train deepseek-v3 2048xh800 14.8T 4k")
    assert plan.training.precision != "fp8"
    assert plan.inference.weights is None


def test_rows_name_formats_that_are_known() -> None:
    named = [row.weights for row in CATALOG.architectures.values() if row.weights]
    assert len(named) >= 6
    assert all(name in CATALOG.quantizations for name in named)
