"""Examples of the documentation: commands in blocks of bash run as they stand there, all others are read."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_lines import parsed
from page_answers import expectations, faults

from capacity_tui.tui.cli import main

ROOT = Path(__file__).resolve().parents[1]
GENERATED = "commands.md"
PAGES = (ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != GENERATED))
SAMPLES = ROOT / "tests" / "imports" / "samples"
# Tests of their own run these, with what they need.
ELSEWHERE = {"fleet.md", "growth.md", "learning.md", "storage.md", "training-data.md"}
# What a reader has at hand, in place of which samples of the tools stand here.
AT_HAND = {
    "axolotl.yml": "axolotl_qlora.yml",
    "training_args.yaml": "training_args.yaml",
    "vllm_serve.sh": "vllm_serve.sh",
    "ds_config.json": "ds_zero3_offload.json",
    "accelerate.yaml": "accelerate_fsdp.yaml",
}
A_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# A line that ends with ":", with the name of a file in it, and a block below it.
A_FILE = re.compile(r"^`([\w.-]+)`[^\n]*:\n+```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Words behind a command that are not set off by a mark.
EXPLAINED = re.compile(r" {3,}\S.*")
NO_FILE = "does not exist"
MEANT_TO_FAIL = {"plan run.yaml --check": (0, 1), "audit": (0, 1), "need": (0, 1)}


def commands(page: Path, run: bool) -> Iterator[str]:
    """Yield the commands of a page that are run, or those that are not."""
    for language, block in A_BLOCK.findall(page.read_text("utf-8")):
        if (language == "bash" and page.name not in ELSEWHERE) == run:
            lines = block.replace("\\\n", " ").splitlines()
            yield from (line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?capacity-tui( |$)", line))


def words(line: str) -> list[str]:
    return shlex.split(line, comments=True)


RUN = [page for page in PAGES if any(commands(page, run=True))]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_catalog: None, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith(("XDG_", "CAPACITY_TUI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name, sample in AT_HAND.items():
        shutil.copy(SAMPLES / sample, tmp_path / name)
    for name, text in A_FILE.findall(page.read_text("utf-8")):
        (tmp_path / name).write_text(text)
    answers = {tuple(shlex.split(command)): entry for command, entry in expectations(page.name).items()}
    for line in commands(page, run=True):
        given = words(line)[1:]
        expected = answers.pop(tuple(given), {})
        asked = [*given, "--format", "json"] if "json" in expected and "--format" not in given else given
        allowed = next((codes for begin, codes in MEANT_TO_FAIL.items() if " ".join(given).startswith(begin)), (0,))
        capsys.readouterr()
        assert main(asked) in allowed, line
        told = capsys.readouterr()
        assert list(faults(expected, told.out if "json" in expected else told.out + told.err)) == [], line
    assert not answers, "answers to commands that the page does not have"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_that_are_not_run_are_commands_with_these_options(page: Path) -> None:
    faults = [(line, parsed(shlex.join(words(EXPLAINED.sub("", line))))) for line in commands(page, run=False)]
    assert [(line, fault) for line, fault in faults if fault and NO_FILE not in fault] == []


def test_the_readme_shows_each_question_by_commands_that_run() -> None:
    assert len(list(commands(ROOT / "README.md", run=True))) >= 5


A_QUESTION = re.compile(r"^\| [^|]+ \| `(\"[^`]+)` \| [^|]+ \|$", re.MULTILINE)


@pytest.mark.parametrize("question", A_QUESTION.findall((ROOT / "docs" / "searching.md").read_text("utf-8")))
def test_a_question_of_the_table_has_the_answer_that_stands_beside_it(
    question: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = shlex.split(f"need {question}")
    answers = {tuple(shlex.split(line)): entry for line, entry in expectations("searching.md").items()}
    assert main([*command, "--format", "json"]) == 0
    assert list(faults(answers[tuple(command)], capsys.readouterr().out)) == []
