"""Help on the command line: of the program, of commands, and of groups that were given none."""

from __future__ import annotations

import pytest

from capacity_tui.tui.cli import main
from capacity_tui.tui.cli.program import ENTRIES, TOPICS


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "Commands:" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("capacity-tui")
    for command in ("plan", "validate", "examples", "models", "hardware", "instances", "detect", "configs"):
        assert main([command, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"Usage: capacity-tui {command}")


@pytest.mark.parametrize("group", ["cluster", "fleet", "history", "sample", "scaling", "storage"])
def test_a_group_without_a_command_lists_its_commands(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([group]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"Usage: capacity-tui {group} [OPTIONS] COMMAND [ARGS]..."
    assert "Commands:" in lines


@pytest.mark.parametrize("topic", TOPICS)
def test_the_page_of_a_group_has_its_commands(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", topic]) == 0
    lines = capsys.readouterr().out.splitlines()
    for entry in ENTRIES:
        listed = any(line.split("  ")[1:2] == [entry.path] for line in lines)
        assert listed == (entry.topic == topic), entry.path


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.path)
def test_a_command_says_what_group_it_belongs_to(entry, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*entry.path.split(), "--help"]) == 0
    assert f"capacity-tui help {entry.topic}" in capsys.readouterr().out
    assert main(["help", *entry.path.split()]) == 0


def test_help_of_what_is_no_command_lists_the_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "chose"]) == 2
    error = capsys.readouterr().err
    assert all(topic in error for topic in TOPICS)


def test_the_page_of_imports_lists_the_tools_that_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "import"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert all(name in page for name in ("Axolotl", "DeepSpeed", "EasyR1", "vLLM", "XTuner"))
