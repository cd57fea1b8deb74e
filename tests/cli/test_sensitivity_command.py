"""``sensitivity``: tables with bars, Markdown and JSON of what moves a figure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from capacity_tui.tui.cli import main

Run = Callable[..., tuple[int, str, str]]
PLAN = """\
model: {name: gpt2-small}
training: {seq_len: 1024, micro_batch: 8, global_batch: 8, steps: 1000}
hardware: {name: rtx-3060-12gb}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(PLAN)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["sensitivity", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def test_json_has_every_row_and_what_to_measure_next(run: Run) -> None:
    code, out, _ = run("plan.yaml", "--of", "computation.step_seconds", "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert found["of"] == "computation.step_seconds"
    assert {row["kind"] for row in found["rows"]} == {"knob", "unknown"}
    for row in found["rows"]:
        assert row["swing"] == pytest.approx(row["high"] - row["low"])
        assert row["low"] <= found["value"] <= row["high"]
        assert {"key", "from", "to"} <= set(row)
    assert "plan.yaml" in found["measure_next"]["command"]
    assert 0 < found["measure_next"]["narrower_percent"] < 100


def test_tables_name_both_kinds_and_draw_bars(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # bars are the first to give way on narrow terminals
    code, out, _ = run("plan.yaml", "--of", "memory.reserved_bytes", "--top", "3", "--ascii")
    assert code == 0
    assert "Fields, one step" in out
    assert "Unknowns, end to end" in out
    assert "|#" in out
    assert "more with less effect" in out
    assert "Measure next: " in out


def test_markdown(run: Run) -> None:
    code, out, _ = run("plan.yaml", "--of", "computation.step_seconds", "-o", "page.md")
    assert (code, out) == (0, "")
    page = Path("page.md").read_text("utf-8")
    assert page.startswith("# Step time of plan.yaml: ")
    assert "| Sequence |" in page


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("time", "computation.estimated_train_time_seconds"),
        ("mfu", "computation.mfu"),
        ("memory", "memory.utilization_percent"),
    ],
)
def test_a_short_word_names_a_figure(run: Run, word: str, key: str) -> None:
    code, out, _ = run("plan.yaml", "--of", word, "--format", "json")
    assert code == 0
    assert json.loads(out)["of"] == key


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan.yaml", "--of", "memory.reservd"), "did you mean"),
        (("plan.yaml", "--of", "computation.infer.requests_per_second"), "only serving has it"),
        (("plan.yaml", "plan.yaml"), "one plan at a time"),
        ((), "Missing argument"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err
