"""A folder with a plan, and a way to run a command in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.tui.cli import main
from tests.cli.outcome import PLAN, Outcome


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def command(*arguments: str) -> Outcome:
        code = main(arguments)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return command
