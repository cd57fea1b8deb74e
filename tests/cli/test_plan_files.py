"""Files of plans on the command line: what is wrong with them, at which line, and the examples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capacity_tui.engine.plan.files import plan_from_text
from tests.cli.outcome import PLAN

pytestmark = pytest.mark.usefixtures("place")


def test_validate_names_every_fault_in_reading_order(run, place: Path) -> None:
    (place / "bad.yaml").write_text("""\
task: train
model: {name: llama-3.1-80b}
training:
  micro_batch: 0
  optimzer: adamw
  optimizer: adamm
  precision: fp61
hardware: {name: h1000, devices: 8, interconnect: ib-xyz}
parallelism: {tp: 3}
scalability: {device_counts: [0, 2]}
""")
    outcome = run("validate", "bad.yaml")
    lines = outcome.err.splitlines()
    places = [line.removeprefix("capacity-tui: bad.yaml:").split(": ")[:2] for line in lines]
    assert places == [
        ["2", "model.name"],
        ["4", "training.micro_batch"],
        ["5", "training.optimzer"],
        ["6", "training.optimizer"],
        ["7", "training.precision"],
        ["8", "hardware.name"],
        ["8", "hardware.interconnect"],
        ["9", "parallelism"],
        ["10", "scalability.device_counts"],
    ]
    assert (outcome.code, outcome.out) == (2, "")
    assert "nearest known: llama-3.1-8b" in lines[0]
    assert "did you mean adamw?" in lines[3]


def test_plan_tells_of_further_faults(run, place: Path) -> None:
    (place / "bad.yaml").write_text(PLAN.replace("seq_len: 1024", "seq_len: 0").replace("gpt2-small", "gpt2-smal"))
    assert run("plan", "bad.yaml").refusal.endswith("; and 1 more: capacity-tui validate bad.yaml")


def test_a_model_that_is_open_is_valid(run, place: Path) -> None:
    (place / "auto.yaml").write_text(PLAN.replace("gpt2-small", "auto"))
    assert run("validate", "auto.yaml").code == 0


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (("name: rtx-3060-12gb", "name: rtx-3061-12gb"), 4, "hardware.name: no hardware"),
        (("gpt2-small", "gpt2-smal"), 1, "model.name: no model"),
        (("steps: 1000", "steps: 0"), 2, "training.steps: not allowed: 0"),
        (("steps: 1000", "stpes: 10"), 2, "did you mean training.steps?"),
    ],
)
def test_validate_says_where(run, place: Path, change: tuple[str, str], line: int, says: str) -> None:
    (place / "plan.yaml").write_text(PLAN.replace(*change))
    refusal = run("validate", "plan.yaml").refusal
    assert refusal.startswith(f"capacity-tui: plan.yaml:{line}: ")
    assert says in refusal


def test_validate_says_yes(run) -> None:
    assert run("validate", "plan.yaml").out == "plan.yaml: valid\n"


def test_plan_with_open_fields_is_valid(run, place: Path) -> None:
    (place / "open.yaml").write_text(PLAN.replace("micro_batch: 8", "micro_batch: auto"))
    assert run("validate", "open.yaml").code == 0
    result = json.loads(run("plan", "open.yaml", "--format", "json").out)
    micro_batch = result["plan"]["training"]["micro_batch"]
    assert isinstance(micro_batch, int)
    why = result["basis"]["chosen"]["training.micro_batch"]
    assert why
    for form in ("table", "markdown", "html"):
        text = run("plan", "open.yaml", "--format", form).out.replace("\\_", "_")
        assert f"training.micro_batch={micro_batch}: {why}"[:40] in text, form


def test_examples(run, place: Path) -> None:
    titles = json.loads(run("examples", "--format", "json").out)
    assert len(titles) >= 10
    assert plan_from_text(run("examples", "--show", "transformer").out, "transformer").model.name
    outcome = run("examples", "--write", "examples")
    assert outcome.code == 0
    assert sorted(path.stem for path in (place / "examples").iterdir()) == sorted(titles)


def test_written_examples_are_not_overwritten(run, place: Path) -> None:
    run("examples", "--write", "examples")
    mine = place / "examples" / "transformer.yaml"
    mine.write_text("mine")
    assert "kept examples/transformer.yaml" in run("examples", "--write", "examples").err
    assert mine.read_text() == "mine"
    run("examples", "--write", "examples", "--force")
    assert mine.read_text() != "mine"
