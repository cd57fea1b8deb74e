"""Vendor tools: run for some seconds at most, read to some length at most, ended with all that they started."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from typing import IO

TOOLS = ("/usr/sbin", "/sbin")  # where sysctl and its like lie, often outside PATH
MOST_BYTES = 1 << 20  # the longest reports of tools have some 20 KiB for a device
PIECE_BYTES = 1 << 16
KILLED_SECONDS = 0.2  # a process that waits inside a driver outlives even SIGKILL: it is left behind


def run_command(words: tuple[str, ...], seconds: float) -> str:
    """Return what a command prints.

    The command has a separate process group, which is killed when it takes too long or prints too much.

    Raises:
        OSError: it is not installed or may not be run.
        subprocess.SubprocessError: it failed, took longer than ``seconds``, or printed more than a report.
    """
    process = subprocess.Popen(  # noqa: S603 - fixed vendor tools, never the user's words
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C", "PATH": search_path()},
        start_new_session=True,
    )
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    try:
        end = time.monotonic() + seconds
        with process.stdout as stream:
            output = _read(stream, words, end, seconds)
        code = process.wait(max(KILLED_SECONDS, end - time.monotonic()))
    except BaseException:
        _end(process)
        raise
    if code != 0:
        raise subprocess.CalledProcessError(code, words)
    return output.decode("utf-8", errors="replace")


def search_path() -> str:
    """Return where tools are searched; never the current folder, which empty entries of PATH stand for."""
    named = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join([*(folder for folder in named if os.path.isabs(folder)), *TOOLS])  # noqa: PTH117


def _read(stream: IO[bytes], words: tuple[str, ...], end: float, seconds: float) -> bytes:
    """Return all that a stream gives until its end."""
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, end - time.monotonic())):
                raise subprocess.TimeoutExpired(words, seconds)
            piece = os.read(stream.fileno(), PIECE_BYTES)
            if not piece:
                return bytes(output)
            output += piece
            if len(output) > MOST_BYTES:
                raise subprocess.SubprocessError(f"{words[0]} prints more than {MOST_BYTES >> 20} MiB")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a command with all that it started."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(KILLED_SECONDS)
