"""Help on the command line: of the program, of commands, and of groups that were given none."""

from __future__ import annotations

import pytest

from capacity_tui.tui.cli import main


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
