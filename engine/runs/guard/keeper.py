"""The process between a guard and its command: passes output on, records the newest of it, and writes the exit code.

A separate program that outlives its guard, so it imports nothing of this package: ``keeper.py FOLDER WORK CMD ...``.
Its standard output and error lead to the guard. The command never waits for a disk and never sees a full one: what
cannot be recorded is passed on all the same, and what has no reader any more is still recorded.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

PID, EXIT_CODE = "pid", "exit_code"
OUTPUTS = ("stdout", "stderr")
OLDER = ".1"  # What the name of the part of a record before the newest ends in
PART_BYTES = 4 << 20  # A record has two parts of this size at most; the older one is replaced
_PIECE = 1 << 18
_LITTLE, _GATHER_SECONDS = 1 << 12, 0.002
_LAST_BYTES = 1 << 20
"""What is read at most of a stream after the command has ended, where processes that it left write on."""
_UNTOLD = "    "  # Stands for the exit code until there is one: writing over it takes no space on the disk
_NOT_FOUND, _NOT_EXECUTABLE, _BY_SIGNAL = 127, 126, 128
_SIGNALS = {number.name: number for number in signal.Signals}
_PASSED_ON = tuple(
    _SIGNALS[name] for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2") if name in _SIGNALS
)
"""Signals that are the command's to answer."""
_AT_DEFAULT = tuple(getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name))
"""Signals that Python ignores for itself, and that a command must not inherit so."""


class Record:
    """The newest output of one stream, as far as the disk takes it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle: int | None = None
        self._size = 0
        self.write(b"")

    def write(self, data: bytes) -> None:
        """Append data; what cannot be written is left out."""
        with suppress(OSError):
            if self._handle is None or self._size + len(data) > PART_BYTES:
                self._begin()
            if self._handle is not None:
                self._size += os.write(self._handle, data)

    def _begin(self) -> None:
        if self._handle is not None:
            os.replace(self._path, self._path + OLDER)  # noqa: PTH105 - as little as possible is imported
            os.close(self._handle)
            self._handle = None
        self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._size = 0


class Stream:
    """One stream of the command on its way to the guard."""

    def __init__(self, end: int, guard: int, record: Record) -> None:
        self.end = end
        self._guard: int | None = guard
        self._record = record

    def pass_on(self) -> int:
        """Pass on what has come, and return how many bytes that were; 0 at the end of the stream."""
        data = os.read(self.end, _PIECE)
        self._record.write(data)
        remaining = memoryview(data)
        try:
            while remaining and self._guard is not None:
                remaining = remaining[os.write(self._guard, remaining) :]
        except OSError:  # the guard is gone
            self._guard = None
        return len(data)

    def pass_on_the_rest(self) -> None:
        """Pass on what the command had written when it ended."""
        os.set_blocking(self.end, False)
        bytes_left = _LAST_BYTES
        with suppress(BlockingIOError):
            while bytes_left > 0 and (passed := self.pass_on()):
                bytes_left -= passed


def main(folder: str, work: str, words: list[str]) -> int:
    """Run a command in a folder, and return its exit code as shells do."""
    for number in _PASSED_ON:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:  # who comes later must know that it runs, or would start it a second time
        _write(f"{folder}/{PID}", f"{os.getpid()}\n")
        os.chdir(work)
    except OSError as error:
        os.write(2, f"{error.filename or folder}: {error.strerror}\n".encode())
        return _NOT_EXECUTABLE
    with suppress(OSError):
        _write(f"{folder}/{EXIT_CODE}", _UNTOLD)
    pipes = [os.pipe() for _ in OUTPUTS]
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)  # what comes until the command is there waits for it
    child = os.fork()
    if not child:
        _become(words, [end for _, end in pipes])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    for _, end in pipes:
        os.close(end)
    streams = [Stream(pipes[at][0], at + 1, Record(f"{folder}/{name}")) for at, name in enumerate(OUTPUTS)]
    code = _followed(child, streams, woken)
    with suppress(OSError):
        _write(f"{folder}/{EXIT_CODE}", f"{code:<3}\n")
    return code


def _followed(child: int, streams: list[Stream], woken: int) -> int:
    """Pass output on until a command has ended; return its exit code."""
    open_streams = {stream.end: stream for stream in streams}
    while True:
        ready, _, _ = select.select([*open_streams, woken], [], [])
        if woken in ready:
            os.read(woken, _PIECE)
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
        for end in ready:
            if end in open_streams:
                passed = open_streams[end].pass_on()
                if not passed:
                    del open_streams[end]
                elif passed < _LITTLE:  # lines that come one by one are passed on together
                    time.sleep(_GATHER_SECONDS)
    for stream in open_streams.values():
        stream.pass_on_the_rest()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _BY_SIGNAL - code


def _become(words: list[str], ends: Sequence[int]) -> None:
    try:
        signal.set_wakeup_fd(-1)
        for number in (*_PASSED_ON, *_AT_DEFAULT):
            if number in _AT_DEFAULT or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        for number, end in enumerate(ends):
            os.dup2(end, number + 1)
        try:
            os.execvp(words[0], words)  # noqa: S606 - the command that the user gave
        except OSError as error:
            if error.errno == errno.ENOEXEC:  # a script that does not name its shell
                os.execv("/bin/sh", ["sh", *words])  # noqa: S606 - as shells do
            os.write(2, f"{words[0]}: {error.strerror}\n".encode())
            os._exit(_NOT_FOUND if error.errno == errno.ENOENT else _NOT_EXECUTABLE)
    finally:
        os._exit(_NOT_EXECUTABLE)


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(handle, text.encode(), 0)
    finally:
        os.close(handle)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
