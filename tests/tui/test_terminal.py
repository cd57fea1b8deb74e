"""The real program on a real terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PROGRAM = "from capacity_tui.tui.app import run; raise SystemExit(run())"


@contextmanager
def terminal(folder: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
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
        [sys.executable, "-c", PROGRAM], stdin=child, stdout=child, stderr=child, env=environment
    )
    os.close(child)
    try:
        yield process, handle
    finally:
        process.kill()
        process.wait()
        os.close(handle)


def read_until(handle: int, text: bytes, seconds: float = 30.0) -> bytes:
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
