"""A terminal for the benchmarks: runs a program on a real pty and times what it writes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from types import TracebackType

ASKS_CURSOR, CURSOR = b"\x1b[6n", b"\x1b[1;1R"
"""Some programs ask where the cursor is, and wait for the answer of a terminal."""
CONFIG = Path(tempfile.gettempdir()) / "capacity-tui-benchmark"  # Settings of the benchmarks, apart from the user's


class Terminal:
    """One program on a pty of its own.

    Args:
        command: arguments of the program, such as ``["-c", "print(1)"]`` of Python.
        program: what is run; this Python by default.
    """

    def __init__(self, command: list[str], columns: int = 120, lines: int = 40, program: str = sys.executable) -> None:
        self.handle, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        # Edits that an earlier run left unsaved would be offered first.
        self.state = tempfile.TemporaryDirectory(prefix="capacity-tui-state-")
        environment = {
            **os.environ,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "CAPACITY_TUI_CONFIG": str(CONFIG),
            "CAPACITY_TUI_STATE": self.state.name,
        }
        # An installed program has its bytecode compiled.
        for name in ("COLORTERM", "NO_COLOR", "PYTHONDONTWRITEBYTECODE"):
            environment.pop(name, None)
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [program, *command], stdin=child, stdout=child, stderr=child, env=environment, close_fds=True
        )
        os.close(child)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self.handle)
        self.state.cleanup()

    def send(self, keys: bytes) -> None:
        """Type keys."""
        os.write(self.handle, keys)

    def read(self, seconds: float) -> bytes:
        """Return what is written within a time, or until something is."""
        ready, _, _ = select.select([self.handle], [], [], seconds)
        if not ready:
            return b""
        with contextlib.suppress(OSError):
            written = os.read(self.handle, 1 << 16)
            if ASKS_CURSOR in written:
                self.send(CURSOR)
            return written
        return b""

    def wait_for(self, text: bytes, seconds: float = 20.0) -> float:
        """Return the seconds from the start until a text was written."""
        seen = b""
        while text not in seen:
            if time.perf_counter() - self.started > seconds:
                raise TimeoutError(f"{text!r} was not written; last was {seen[-200:]!r}")
            seen += self.read(0.1)
        return time.perf_counter() - self.started

    def drain(self, quiet: float = 0.3, at_most: float = 10.0) -> int:
        """Read until nothing is written for a while; return the number of bytes."""
        total, end = 0, time.perf_counter() + at_most
        while (written := self.read(quiet)) and time.perf_counter() < end:
            total += len(written)
        return total

    def count(self, seconds: float) -> int:
        """Return the number of bytes written within a time."""
        total, end = 0, time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            total += len(self.read(left))
        return total

    def resident_megabytes(self) -> float:
        """Return the memory that the program holds, MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        kibibytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(kibibytes) * 1024 / 1e6

    def processor_seconds(self) -> float:
        """Return the processor time the program has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
