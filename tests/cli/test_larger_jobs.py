"""The commands by which the page looks ahead to larger jobs, from a corpus to machines, run as they stand there."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from capacity_tui.tui.cli.program import run_command

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "growth.md").read_text("utf-8")
SECTION = PAGE.partition("## Look ahead to larger jobs")[2].partition("\n## ")[0]
COMMANDS = [
    shlex.split(line, comments=True)[1:] for line in SECTION.partition("```bash\n")[2].partition("```")[0].splitlines()
]
LEARN = """#!/bin/sh
sleep $(awk "BEGIN {print 0.01 + $3 * 4e-6}")
echo "learned $(($1 * $2 * 10)) patterns $3"
"""
SAYS = {
    "storage fit": "deduplication",
    "storage estimate": "node3",
    "bench-configs --grid": "efficiency",
    "scaling run": "For n = 10.0 M in 1 d you need",
    "scaling fit": "For n = 10.0 M in 1 d you need",
}


@pytest.fixture
def _work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPACITY_TUI_STATE", str(tmp_path / "state"))
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "page.md").write_text(SECTION)
    (tmp_path / "learn").write_text(LEARN)
    (tmp_path / "learn").chmod(0o755)
    points = "".join(f"{n},{0.1 + n / 400},{3e7 + 4000 * n}\n" for n in (100, 1000, 10_000, 50_000) for _ in range(2))
    (tmp_path / "points.csv").write_text(points)


@pytest.mark.usefixtures("_work")
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_a_command_of_the_page_runs_as_it_stands_there(words, capsys):
    assert run_command(words) == 0
    assert SAYS[" ".join(words[:2])] in capsys.readouterr().out
