"""The way to a plan, a search and the screen needs nothing that POSIX systems alone have; what does need it says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ELSEWHERE = """
import asyncio, multiprocessing, selectors, signal, subprocess, sys  # what they import themselves is theirs to replace

GONE = ("fcntl", "termios", "resource", "pwd", "grp", "tty", "pty", "readline")


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


import os, pathlib, platform, shutil, tempfile
import numpy, platformdirs, psutil
for name in GONE:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
for name in "HUP QUIT USR1 USR2 ALRM TSTP CONT WINCH TTIN TTOU".split():
    delattr(signal, f"SIG{name}")
for name in ("uname", "getuid", "geteuid", "statvfs", "posix_spawn", "killpg", "sysconf", "getloadavg"):
    delattr(os, name)
if hasattr(os, "sched_getaffinity"):
    del os.sched_getaffinity
    os.process_cpu_count = os.cpu_count  # which asks for it from Python 3.13 on
"""

SCREEN = """
from capacity_tui.tui.app import CapacityApp


async def main():
    app = CapacityApp(source="model: {name: gpt2}\\nhardware: {name: rtx-4090}\\n")
    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(200):
            await pilot.pause(0.1)
            if app.session.store.comparison is not None:
                break
        print(app.session.store.comparison.title)


asyncio.run(main())
"""


def elsewhere(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    places = {f"CAPACITY_TUI_{name}": str(folder / name) for name in ("CONFIG", "DATA", "STATE")}
    return subprocess.run(
        [sys.executable, "-c", ELSEWHERE + script],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env={
            **places,
            "HOME": str(folder),
            "PATH": "",
            "COLUMNS": "150",
            "PYTHONUTF8": "1",
            "CAPACITY_TUI_DEBUG": "1",
            "TEXTUAL_DRIVER": "textual.drivers.headless_driver:HeadlessDriver",
        },
    )


def command(*words: str) -> str:
    return f"from capacity_tui.tui.cli import main\nsys.exit(main({list(words)!r}))"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("plan", "llama-3.1-8b lora h100 4k 50M"), "training time"),
        (("search", "gpt2 rtx-4090 50M", "--vary", "training.micro_batch=1,2"), "micro"),
        (("need", "gpt2 train rtx-4090", "--solve", "training.micro_batch", "--limit", "memory<=90%"), "micro_batch ="),
        (("detect",), "RAM"),
        (("history", "list"), "estimate"),
    ],
)  # fmt: skip
def test_commands_run_where_posix_is_not(words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    if words[0] == "history":
        assert elsewhere(command("plan", "gpt2 rtx-4090 50M"), tmp_path).returncode == 0
    done = elsewhere(command(*words), tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr[-2000:]
    assert says in done.stdout


def test_the_screen_opens_where_posix_is_not(tmp_path: Path) -> None:
    done = elsewhere(SCREEN, tmp_path)
    assert "gpt2" in done.stdout, done.stderr[-2000:]


@pytest.mark.parametrize("words", [("profile",), ("monitor",), ("guard", "gpt2_rtx_3060")])
def test_what_needs_posix_says_so(words: tuple[str, ...], tmp_path: Path) -> None:
    done = elsewhere(command(*words, "--", "true"), tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (3, False), done.stderr[-2000:]
    assert "Linux or macOS" in done.stderr
