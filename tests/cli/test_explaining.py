"""``plan --explain``: where a figure comes from, and what was put into it."""

from __future__ import annotations

import json

import pytest

from capacity_tui.tui.cli import main

PLAN = "gpt2_rtx_3060"


def explained(path: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["plan", PLAN, "--explain", path]) == 0
    return capsys.readouterr().out


def test_explaining_a_figure(capsys: pytest.CaptureFixture[str]) -> None:
    shown = explained("memory.parts.activations", capsys)
    assert shown.startswith("Activations: ")
    assert "et al." in shown


def test_what_was_put_into_a_formula_is_followed(capsys: pytest.CaptureFixture[str]) -> None:
    assert explained("computation.total_flops/model_flops/forward", capsys).startswith("forward: ")
    assert explained("computation.step_seconds/compute", capsys).startswith("Compute: ")


def test_a_name_that_was_not_put_in_is_refused_with_those_that_were(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", PLAN, "--explain", "computation.total_flops/model_flop"]) == 2
    told = capsys.readouterr().err
    assert "nothing is called 'model_flop'" in told
    assert "known: model_flops" in told


def test_placement_is_drawn_from_the_fabric_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "llama-3-8b full 16xh100 4k 1B", "--explain", "placement"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Placement on 16 x h100-sxm-80gb\n")
    assert shown.index("fabric") < shown.index("  node")
    assert "hottest link: " in shown
    assert main(["plan", "llama-3-8b full 16xh100 4k 1B", "--explain", "placement", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [level["level"] for level in told["levels"]] == ["node", "fabric"]
    assert told["crossing"]["crosses"] is False
