"""The program as a process: pipes, encodings, imports, and the screen's options."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from command_lines import without_progress

from capacity_tui.tui.cli import output

PROGRAM = [sys.executable, "-m", "capacity_tui.tui"]


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *arguments], env={**os.environ, **environment}, capture_output=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        (["--help"], ["numpy", "textual", "yaml", "pydantic", "rich"]),
        (["detect", "--profile-only"], ["numpy", "textual", "pydantic"]),
        (["plan", "gpt2_rtx_3060"], ["textual", "psutil", "pynvml", "jinja2", "tree_sitter"]),
        (
            ["plan", "gpt2_rtx_3060"],
            [
                "capacity_tui.engine.plan.imports.sources",
                "capacity_tui.engine.plan.line.lexicon.tokens",
                "capacity_tui.engine.models.networks.specs",
                "capacity_tui.engine.estimate.serving.work",
                "capacity_tui.engine.solve.scaling",
                "capacity_tui.engine.solve.search.search",
                "capacity_tui.engine.solve.sensitivity",
                "capacity_tui.engine.fleet.migration",
                "capacity_tui.engine.nodes.launcher",
                "capacity_tui.engine.machine.detect",
                "capacity_tui.engine.machine.vendors",
                "capacity_tui.engine.present.pictures.charts",
                "capacity_tui.engine.storage.storage_plan",
            ],
        ),
    ],
)
def test_a_command_loads_nothing_that_it_does_not_need(command: list[str], heavy: list[str]) -> None:
    script = (
        f"import sys; from capacity_tui.tui.cli import main; main({command});"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=60)
    assert done.stderr.decode().splitlines()[-1] == "[]"


def test_a_command_that_takes_its_time_says_in_a_file_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "PATIENCE", 0.0)
    monkeypatch.setattr(output, "ELSEWHERE", 0.01)
    told = threading.Event()

    def half() -> str:
        told.set()
        return "5 of 10 done"

    with output.progress("counting") as shown:
        shown.show(half)
        assert told.wait(10.0)
    lines = capsys.readouterr().err.splitlines()
    assert "0 s: 5 of 10 done" in lines
    monkeypatch.setattr(output, "PATIENCE", 60.0)
    with output.progress("counting"):
        pass
    assert not capsys.readouterr().err


def test_ctrl_c_while_the_program_is_loading_is_quiet() -> None:
    script = "import capacity_tui.tui; raise KeyboardInterrupt"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_closed_pipe_is_quiet() -> None:
    command = subprocess.list2cmdline(PROGRAM)
    done = subprocess.run(
        ["bash", "-c", f"{command} models --format json | head -c 10; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("command", [["models", "--format", "json"], ["plan", "gpt2_rtx_3060"], ["--help"]])
def test_a_full_disk_behind_stdout_is_one_line(command: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PROGRAM, *command], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 2
    (error,) = without_progress(done.stderr.decode())
    assert error.startswith("capacity-tui: the output cannot be written: No space left on device;")


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_change_no_exit_code(redirection: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = subprocess.list2cmdline([*PROGRAM, "plan", "gpt2_rtx_3060", "--check", "-o", str(report)])
    done = subprocess.run(["bash", "-c", f"{command} {redirection}"], check=False, timeout=60)
    assert done.returncode == 0
    assert report.read_text().startswith("{")
    assert subprocess.run(["bash", "-c", f"{' '.join(PROGRAM)} --help {redirection}"], check=False).returncode == 0


@pytest.mark.parametrize("command", [[], ["--plan", "gpt2_rtx_3060"]])
def test_the_screen_refuses_to_open_without_a_terminal(command: list[str]) -> None:
    done = subprocess.run([*PROGRAM, *command], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines() == [
        "capacity-tui: the screen needs a terminal; see `capacity-tui --help` for commands without one"
    ]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_encoding(encoding: str) -> None:
    done = process("plan", "gpt2_rtx_3060", PYTHONIOENCODING=encoding)
    assert (done.returncode, without_progress(done.stderr.decode())) == (0, [])
    done.stdout.decode(encoding)


def test_piped_tables_are_plain_and_unfolded() -> None:
    done = process("models", "--filter", "qwen3", COLUMNS="40", FORCE_COLOR="")
    text = done.stdout.decode()
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert any("qwen3-235b-a22b" in line and "235.09 B" in line for line in text.splitlines())


def test_own_rows_lie_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "accelerators.yaml").write_text("lab-card:\n  vendor: NVIDIA\n  memory_mib: 24000\n")
    done = process("hardware", "--filter", "lab-card", CAPACITY_TUI_CONFIG=str(tmp_path))
    assert b"23.4 GiB" in done.stdout


def test_validate_names_what_is_wrong_in_every_own_file(tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog" / "accelerators.yaml").write_text("lab-card:\n  vendor: me\n  memory_mib: lots\n")
    (tmp_path / "catalog" / "links.yaml").write_bytes(b"\xff\x00")
    done = process("validate", "gpt2_rtx_3060", CAPACITY_TUI_CONFIG=str(tmp_path))
    first, second = done.stderr.decode().splitlines()
    assert "accelerators.yaml:3: lab-card.memory_mib: not allowed here: 'lots'" in first
    assert "links.yaml:1: not UTF-8 text" in second
    assert (done.returncode, done.stdout.strip()) == (0, b"gpt2_rtx_3060: valid")


def test_bash_completion_is_offered() -> None:
    done = process(_CAPACITY_TUI_COMPLETE="bash_source")
    assert b"complete" in done.stdout


def test_options_of_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    from capacity_tui.tui.cli import main

    calls: list[dict[str, object]] = []

    def run(**options: object) -> int:
        calls.append(options)
        return 0

    monkeypatch.setattr("capacity_tui.tui.app.run", run)
    assert main([]) == 0
    assert main(["--plan", "a.yaml", "--gpu", "8xH100-SXM", "--ascii", "--no-mouse", "--theme", "light"]) == 0
    assert calls == [
        {},
        {"plan_path": Path("a.yaml"), "gpu": "8xH100-SXM", "ascii": True, "mouse": False, "theme": "light"},
    ]
