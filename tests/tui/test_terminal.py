"""The real program on a real terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PLAN = "model: {name: gpt2-small}\ntraining: {tokens: 1e9}\nhardware: {name: rtx-4090}"
PROGRAM = f"from capacity_tui.tui.app import run; raise SystemExit(run(plan={PLAN!r}))"


@contextmanager
def terminal(folder: Path, program: str = PROGRAM, **variables: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    handle, child = pty.openpty()
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
        "COLUMNS": "80",
        "LINES": "24",
        "CAPACITY_TUI_CONFIG": str(folder),
        "CAPACITY_TUI_STATE": str(folder / "state"),
        **variables,
    }
    environment.pop("COLORTERM", None)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=child, stdout=child, stderr=child, env=environment
    )
    os.close(child)
    try:
        yield process, handle
    finally:
        process.kill()
        process.wait()
        os.close(handle)


def read_until(handle: int, text: bytes, seconds: float = 120.0) -> bytes:
    seen = b""
    end = time.monotonic() + seconds
    while text not in seen and time.monotonic() < end:
        if select.select([handle], [], [], 0.1)[0]:
            with suppress(OSError):
                seen += os.read(handle, 1 << 16)
    assert text in seen
    return seen


def test_program_starts_shows_a_plan_and_gives_the_terminal_back(tmp_path: Path) -> None:
    with terminal(tmp_path) as (process, handle):
        read_until(handle, b"verdict")
        os.write(handle, b"q")
        read_until(handle, b"\x1b[?1049l")
        assert process.wait(10) == 0


def test_no_color_sends_no_colour(tmp_path: Path) -> None:
    with terminal(tmp_path, NO_COLOR="1") as (_, handle):
        written = read_until(handle, b"verdict")
        assert b"38;5;" not in written
        assert b"38;2;" not in written


@pytest.mark.parametrize("variables", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}])
def test_terminal_without_unicode_gets_ascii(tmp_path: Path, variables: dict[str, str]) -> None:
    with terminal(tmp_path, **variables) as (_, handle):
        written = read_until(handle, b"verdict")
        assert b"\\u2" not in written
        assert written.decode("ascii")


GIVEN_BACK = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?2004l", b"\x1b[?1004l")


def is_raw(handle: int) -> bool:
    return not termios.tcgetattr(handle)[3] & termios.ICANON


def give_edit(handle: int, folder: Path) -> None:
    """Step the length of a sequence, and wait until the edit is on disk."""
    os.write(handle, b"jj+")
    end = time.monotonic() + 20
    while not list(folder.glob("state/unsaved/*.json")) and time.monotonic() < end:
        time.sleep(0.05)
    assert list(folder.glob("state/unsaved/*.json"))


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1"])
def test_signal_ends_the_program_and_gives_the_terminal_back(tmp_path: Path, name: str) -> None:
    number = getattr(signal, name)
    with terminal(tmp_path) as (process, handle):
        read_until(handle, b"Hardware")
        assert is_raw(handle)
        process.send_signal(number)
        written = read_until(handle, b"\x1b[?1004l", 10)
        assert process.wait(10) == 128 + number
        written += read_rest(handle)
        assert not is_raw(handle)
        assert all(sequence in written for sequence in GIVEN_BACK)
        assert b"Traceback" not in written


def read_rest(handle: int) -> bytes:
    seen = b""
    with suppress(OSError):
        while select.select([handle], [], [], 0.2)[0]:
            seen += os.read(handle, 1 << 16)
    return seen


def test_signal_ends_the_program_though_the_terminal_takes_no_more(tmp_path: Path) -> None:
    with terminal(tmp_path) as (process, handle):
        read_until(handle, b"verdict")
        for _ in range(40):  # nobody reads what is painted
            os.write(handle, b"3jjjj2jjjjt")
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 128 + signal.SIGTERM


def test_interrupt_asks_where_something_is_unsaved(tmp_path: Path) -> None:
    with terminal(tmp_path) as (process, handle):
        read_until(handle, b"verdict")
        give_edit(handle, tmp_path)
        process.send_signal(signal.SIGINT)
        read_until(handle, b"q again quits")
        process.send_signal(signal.SIGINT)
        read_until(handle, b"\x1b[?1004l")
        assert process.wait(10) == 0


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGSTOP])
def test_stopped_program_paints_everything_when_it_goes_on(tmp_path: Path, number: int) -> None:
    with terminal(tmp_path) as (process, handle):
        read_until(handle, b"verdict")
        read_rest(handle)
        process.send_signal(number)
        os.waitpid(process.pid, os.WUNTRACED)
        if number == signal.SIGTSTP:
            assert not is_raw(handle)
        process.send_signal(signal.SIGCONT)
        painted = read_until(handle, b"verdict", 10)
        painted += read_rest(handle)
        assert b"\x1b[?1049h" in painted
        assert all(name in painted for name in (b"Config", b"Plans", b"Why"))
        os.write(handle, b"q")
        read_until(handle, b"\x1b[?1004l")
        assert process.wait(10) == 0
        assert not is_raw(handle)


def test_edits_outlive_a_kill_and_are_restored(tmp_path: Path) -> None:
    with terminal(tmp_path) as (process, handle):
        read_until(handle, b"verdict")
        give_edit(handle, tmp_path)
        process.kill()
        process.wait()
    with terminal(tmp_path) as (process, handle):
        read_until(handle, b"Unsaved when the program ended")
        read_until(handle, b"discard")
        os.write(handle, b"\r")
        read_until(handle, b"restored")
        os.write(handle, b"q")
        read_until(handle, b"q again quits")
        os.write(handle, b"q")
        assert process.wait(10) == 0
    assert not list((tmp_path / "state" / "unsaved").iterdir())


HANGING = "import time, capacity_tui.engine.machine as machine; machine.detect = lambda *_: time.sleep(60); " + PROGRAM


def test_prompt_comes_back_though_a_probe_hangs(tmp_path: Path) -> None:
    with terminal(tmp_path, HANGING) as (process, handle):
        read_until(handle, b"estimating")
        time.sleep(1.0)
        os.write(handle, b"q")
        read_until(handle, b"\x1b[?1049l", 5)
        assert process.wait(5) == 0


def test_closed_terminal_ends_the_program(tmp_path: Path) -> None:
    with terminal(tmp_path) as (process, handle):
        read_until(handle, b"verdict")
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), handle)  # closes the last handle of the other side
        assert process.wait(10) == 128 + signal.SIGHUP


def test_terminal_that_cannot_place_text_is_refused_in_a_line(tmp_path: Path) -> None:
    program = "from capacity_tui.tui.cli import main; raise SystemExit(main([]))"
    with terminal(tmp_path, program, TERM="dumb") as (process, handle):
        written = read_until(handle, b"\n")
        assert b"TERM" in written
        assert b"\x1b" not in written
        assert process.wait(10) == 2
