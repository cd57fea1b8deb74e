"""Markdown reports say what people need, and nothing in them breaks the page."""

from __future__ import annotations

from dataclasses import replace

from report_pages import to_markdown

from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.plan import ModelSection, Plan
from capacity_tui.engine.plan.plan import ReportSection


def test_verdict_figures_ranges_and_basis(plan: Plan, training: Estimate) -> None:
    text = to_markdown(plan, training)
    assert text.startswith("# llama-3-8b, train, 64 x h100-sxm-80gb\n\n**Fits.**\n")
    assert "| peak memory allocated | 50.0 GiB | 45.0 GiB to 56.0 GiB |" in text
    assert "| training time | 16 min 40 s | 15 min to 20 min |" in text
    assert "| activations | 30.0 GiB | 50.0 % |" in text
    assert "KV cache" not in text
    assert "| 2 | 2 | 5.20 s | 1.92 | 96 % |" in text
    assert "| Assumed | 8 devices in a node |" in text


def test_texts_cannot_break_the_page(plan: Plan, training: Estimate) -> None:
    named = plan.model_copy(update={"model": ModelSection(name="<b>| x\ny")})
    text = to_markdown(named, training)
    assert text.startswith("# \\<b\\>\\| x y, train")
    assert "faster \\| \\*much\\*" in text


def test_report_can_be_short(plan: Plan, training: Estimate) -> None:
    brief = ReportSection(detailed_breakdown=False, include_recommendations=False)
    text = to_markdown(plan.model_copy(update={"report": brief}), training)
    assert "activations" not in text
    assert "Train in FP8" not in text
    assert "Memory is tight" in text


def test_serving(plan: Plan, inference: Estimate) -> None:
    text = to_markdown(plan.model_copy(update={"task": "infer"}), inference)
    assert "| decode throughput | 100 tok/s | 90 tok/s to 115 tok/s |" in text
    assert "training time" not in text


def test_what_does_not_fit(plan: Plan, training: Estimate) -> None:
    tight = replace(training, memory=replace(training.memory, capacity_bytes=2.0**30))
    assert "**Does not fit: memory 60.0 GiB \\> 1.0 GiB.**" in to_markdown(plan, tight)
