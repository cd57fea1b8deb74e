"""Time and bytes from a key that changes a value to the new numbers, and from q to the end of the program.

The bytes include the explanation, which follows once the keys rest.
Run it with ``python benchmarks/key_to_screen.py``.
"""

from __future__ import annotations

import re
import statistics
import time

from terminal import Terminal

KEYS = 30
BUDGET_MS = 30
BUDGET_BYTES = 4000
BUDGET_QUIT_MS = 100
QUIET_SECONDS = 0.4
OURS = "from capacity_tui.tui.app import run; run()"
NEW_ANSWER = re.compile(rb"\x1b\[2;\d+H[^H]*\x1b\[1;")
"""Bold figures in the answer strip, the second line; those of an earlier plan are dim."""


def respond(terminal: Terminal, keys: bytes) -> tuple[float, int]:
    """Return seconds until the new numbers were written, and all bytes the keys caused."""
    terminal.send(keys)
    started = time.perf_counter()
    shown = 0.0
    written = b""
    while chunk := terminal.read(QUIET_SECONDS):
        written += chunk
        if not shown and NEW_ANSWER.search(written):
            shown = time.perf_counter() - started
    return shown, len(written)


def main() -> None:
    with Terminal(["-c", OURS]) as terminal:
        terminal.wait_for(b"I want to")
        terminal.send(b"\x1b")
        terminal.wait_for(b"verdict")
        terminal.send(b".")
        terminal.drain(1.0)
        terminal.send(b"/sequence\r")
        terminal.drain(1.0)
        steps = [respond(terminal, b"+" if index % 2 else b"-") for index in range(KEYS)]
        terminal.send(b"qq")
        started = time.perf_counter()
        while terminal.process.poll() is None:
            terminal.read(0.005)
        quit_ms = 1000 * (time.perf_counter() - started)
    times = [1000 * seconds for seconds, _ in steps]
    sizes = [size for _, size in steps]
    print(f"key to numbers {statistics.median(times):.1f} ms median, {max(times):.1f} ms worst (budget {BUDGET_MS})")
    print(f"bytes          {statistics.median(sizes):,.0f} median, {max(sizes):,} most (budget {BUDGET_BYTES:,})")
    print(f"quit           {quit_ms:.0f} ms (budget {BUDGET_QUIT_MS})")


if __name__ == "__main__":
    main()
