"""Pages and files made of the program: they are as it is, and shells and readers of manuals take them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.reference.commands import all_commands, paragraphs
from tools.reference.generated import COMMANDS_PAGE, COMPLETIONS, MANUAL_PAGE, PLAN_PAGE, generated

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(r'"(CAPACITY_TUI_[A-Z]+(?:_[A-Z]+)*)"')
# Of the guard, which sets them for the command it runs: docs/guarding.md tells them.
SET_BY_THE_PROGRAM = {"CAPACITY_TUI_RUN_ID", "CAPACITY_TUI_RUN_ATTEMPT"}
BASH = (
    "source {file}; COMP_WORDS=(capacity-tui sche); COMP_CWORD=1; _capacity_tui_completion capacity-tui; "
    'echo "${{COMPREPLY[@]}}"'
)
ZSH = (
    "fpath=({folder} $fpath); autoload -Uz _capacity-tui; _describe() {{ print -l -- ${{(P)3}} }}; "
    "compadd() {{ print -l -- $@ }}; words=(capacity-tui sche); CURRENT=2; _capacity-tui"
)
FISH = 'source {file}; complete -C "capacity-tui sche"'


def needed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def test_what_is_generated_is_as_the_program_is() -> None:
    """`uv run python -m tools.reference` writes them anew."""
    stale = [
        name for name, text in generated() if not (ROOT / name).exists() or (ROOT / name).read_text("utf-8") != text
    ]
    # Scripts of completion are the command-line library's own: another release may say them otherwise.
    assert [name for name in stale if "completions" not in name] == []


def test_every_command_and_every_section_of_a_plan_has_its_place() -> None:
    commands, plan = ((ROOT / page).read_text("utf-8") for page in (COMMANDS_PAGE, PLAN_PAGE))
    assert [each.path for each in all_commands() if f"\n{each.path} {each.usage}\n" not in commands] == []
    assert "\n## training\n" in plan
    assert "\n### training.micro_batch\n" in plan
    assert "- `adamw`: " in plan


def test_paragraphs_keep_their_kind() -> None:
    first, second = paragraphs("One\n    line.\n\n    \b\n    kept  as\n      it is")
    assert (first.text, first.is_verbatim) == ("One line.", False)
    assert (second.text, second.is_verbatim) == ("kept  as\n  it is", True)


def test_the_manual_tells_every_variable_of_the_environment() -> None:
    page = (ROOT / MANUAL_PAGE).read_text("utf-8").replace("\\-", "-")
    files = (file for folder in ("engine", "tui") for file in (ROOT / folder).rglob("*.py"))
    known = {name for file in files for name in VARIABLE.findall(file.read_text("utf-8"))}
    assert known >= {"CAPACITY_TUI_CONFIG", "CAPACITY_TUI_DEBUG"}
    assert [name for name in sorted(known - SET_BY_THE_PROGRAM) if name not in page] == []


def test_the_manual_has_no_fault_that_a_reader_of_manuals_finds() -> None:
    done = subprocess.run(
        [needed("mandoc"), "-T", "lint", "-W", "warning", MANUAL_PAGE],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []


@pytest.mark.parametrize(("shell", "words"), [("bash", BASH), ("zsh", ZSH), ("fish", FISH)])
def test_a_shell_completes_the_word_of_a_command(shell: str, words: str, tmp_path: Path) -> None:
    script = ROOT / "docs" / "completions" / COMPLETIONS[shell]
    quiet = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        [needed(shell), *quiet, "-c", words.format(file=script, folder=script.parent)],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        timeout=60,
        check=False,
    )
    assert "schema" in done.stdout, done.stderr
