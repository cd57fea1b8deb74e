"""The recipes for continuous integration: every command of theirs runs, and fails where a plan is no good."""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from document_pages import ROOT, read_page

from capacity_tui.tui.cli import main

PAGE = ROOT / "docs" / "continuous-integration.md"
FILES = read_page(PAGE).files
GITHUB, GITLAB = ".github/workflows/capacity.yaml", ".gitlab-ci.yml"
TOO_LARGE = "model: {name: llama-3.1-70b}\ntask: infer\nhardware: {name: l4, devices: 1}\n"


def commands(name: str) -> Iterator[list[str]]:
    """Yield the arguments of this program's commands in a recipe, without where a shell leads their output."""
    read = yaml.safe_load(FILES[name])
    steps = [step.get("run", "") for step in read["jobs"]["plans"]["steps"]] if name == GITHUB else []
    for line in steps or read["capacity"]["script"]:
        if line.startswith("capacity-tui "):
            yield shlex.split(line.partition(" >> ")[0])[1:]


def expanded(words: list[str]) -> list[str]:
    """Return the words as a shell gives them, files in place of patterns."""
    return [name for word in words for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_every_command_of_the_recipes_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [tuple(words) for name in (GITHUB, GITLAB) for words in commands(name)]
    assert len(asked) == 6
    for words in dict.fromkeys(asked):
        assert main(expanded(list(words))) == 0, words
    assert "assistant, finetune side by side" in capsys.readouterr().out
    assert len((folder / "capacity.json").read_text().splitlines()) == 2
    runpy.run_path("budget.py")
    cheap = FILES["budget.py"].replace("20.0", "0.01")
    (folder / "cheap.py").write_text(cheap)
    with pytest.raises(SystemExit, match="llama-3-8b: \\$"):
        runpy.run_path("cheap.py")


def test_a_plan_that_is_no_good_fails_the_check(folder: Path) -> None:
    (folder / "plans" / "large.yaml").write_text(TOO_LARGE)
    validate, check, *_ = commands(GITHUB)
    assert main(expanded(validate)) == 0
    assert main(expanded(check)) == 1
    (folder / "plans" / "large.yaml").write_text("model: {nam: llama}\n")
    assert main(expanded(validate)) == 2


def test_what_the_page_says_beside_its_recipes_is_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = re.findall(r"`(capacity-tui need [^`]+)`", PAGE.read_text("utf-8"))
    assert main(shlex.split(line)[1:]) == 0
    impossible = line.replace("1h", "1s")
    assert main(shlex.split(f"{impossible} --limit 'usd<=1'")[1:]) == 1
    late = Path("plans/assistant.yaml").read_text().replace("tpot_seconds: 0.2", "tpot_seconds: 0.001")
    Path("late.yaml").write_text(late)
    assert main(["plan", "late.yaml", "--check"]) == 1
    assert "misses limit" in capsys.readouterr().out
