"""Vendor tools that misbehave: they are stopped, named, and cost neither memory nor time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_lines import without_progress

from capacity_tui.engine.machine import Fact, Host, detect
from capacity_tui.engine.machine.known_devices import parse_cpu_list
from capacity_tui.engine.machine.probing import run_command
from capacity_tui.engine.present import TextPart, machine_parts
from capacity_tui.tui.views.plan.hardware_facts import machine_rows


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that puts a shell script of some name on PATH."""

    def put(name: str, script: str) -> None:
        (tmp_path / "tools").mkdir(exist_ok=True)
        path = tmp_path / "tools" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")

    return put


def test_a_tool_that_prints_for_ever_is_stopped(tool):
    tool("nvidia-smi", "exec yes")
    with pytest.raises(subprocess.SubprocessError, match="nvidia-smi prints more than 1 MiB"):
        run_command(("nvidia-smi",), 20.0)


def test_a_tool_that_hangs_is_killed_with_what_it_started(tool, tmp_path):
    tool("nvidia-smi", f"sleep 600 & echo $! > {tmp_path}/child; wait")
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(("nvidia-smi",), 0.5)
    child = int((tmp_path / "child").read_text())
    for _ in range(100):  # until init has taken it away
        if not Path(f"/proc/{child}").exists() or "(zombie)" in Path(f"/proc/{child}/status").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the tool's child still runs")


def test_a_tool_that_fails_says_so(tool):
    tool("nvidia-smi", "echo half; exit 9")
    with pytest.raises(subprocess.CalledProcessError, match="exit status 9"):
        run_command(("nvidia-smi",), 5.0)


@pytest.mark.parametrize("path", ["", ".", "::", "relative/tools"])
def test_no_tool_is_taken_from_the_current_folder(path, tool, tmp_path, monkeypatch):
    tool("nvidia-smi", "echo taken")
    (tmp_path / "relative").mkdir()
    (tmp_path / "relative" / "tools").symlink_to(tmp_path / "tools")
    monkeypatch.chdir(tmp_path / "tools" if "relative" not in path else tmp_path)
    monkeypatch.setenv("PATH", path)
    with pytest.raises(FileNotFoundError):
        run_command(("nvidia-smi",), 5.0)


def test_a_hung_tool_is_asked_once_and_named(tmp_path):
    asked = []

    def run(words, seconds):
        asked.append(words[0])
        if words[0] == "nvidia-smi":
            raise subprocess.TimeoutExpired(words, seconds)
        raise FileNotFoundError(words[0])

    machine = detect(host=Host(root=tmp_path, system="Linux", environment={}, run=run))
    assert asked.count("nvidia-smi") == 1
    named = [(probe.name, probe.outcome, probe.detail) for probe in machine.troubles]
    assert ("nvidia-smi", "timed out", "no answer within 3 s") in named
    texts = [part.text for part in machine_parts(machine) if isinstance(part, TextPart)]
    assert "nvidia-smi timed out: no answer within 3 s; what it reports is not known" in texts
    assert ("nvidia-smi", "timed out: no answer within 3 s") in [
        (row.label, row.reason) for row in machine_rows(machine)
    ]


def test_no_text_of_a_fact_can_move_the_cursor(tmp_path):
    (tmp_path / "comm").write_text("\x1b[31;5mEVIL\x07\n")
    host = Host(root=tmp_path, run=lambda words, seconds: "H100\x00\x1b]0;owned\x07\n\u202eH200\n")
    assert host.text("/comm").value == r"\x1b[31;5mEVIL\x07"
    assert host.command("nvidia-smi").value == "H100\\x00\\x1b]0;owned\\x07\n\\u202eH200\n"
    assert "\x1b" not in Fact(None, "detected", "NVML", "\x1b[2J").reason


@pytest.mark.parametrize("listed", ["0-99999999", "0-65535,70000", "5-x"])
def test_a_cpu_list_without_bounds_is_refused(listed):
    with pytest.raises(ValueError, match=r"listed|invalid"):
        parse_cpu_list(listed)


def test_a_damaged_line_among_the_control_groups_loses_no_probe(tmp_path):
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text("0\n1:memory\n0::/a/b\n")
    machine = detect(host=Host(root=tmp_path, system="Linux", environment={}))
    assert not [probe for probe in machine.probes if probe.outcome == "failed"]


NO_HOME = """
import os, sys
os.environ.pop("HOME", None)
os.getuid = lambda: 54321
from capacity_tui.tui.cli import main
sys.argv = ["capacity-tui", *sys.argv[1:]]
sys.exit(main())
"""


@pytest.mark.parametrize("command", [("plan", "transformer"), ("detect", "--profile-only"), ("detect", "--doctor")])
def test_a_user_without_a_home_is_answered(command, tmp_path):
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("XDG_", "CAPACITY_TUI_"))}
    environment.pop("HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", NO_HOME, *command],
        capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, without_progress(done.stderr)) == (0, [])
    assert list(tmp_path.iterdir()) == []
