"""Time and bytes from a key that changes a value to the new numbers, and from q to the end of the program.

The time ends with the last byte the key caused: the new numbers are on the screen by then.
Run it with ``python benchmarks/key_to_screen.py``.
"""

from __future__ import annotations

import statistics
import time

from terminal import Terminal

KEYS = 30
BUDGET_MS = 30
BUDGET_BYTES = 4000
QUIET_SECONDS = 0.25
OURS = "from capacity_tui.tui.app import run; run()"
DOWN, PAUSE = b"\x1b[B", b" "


def respond(terminal: Terminal, keys: bytes) -> tuple[float, int]:
    """Return seconds to the last byte written because of the keys, and the number of bytes."""
    terminal.send(keys)
    started = last = time.perf_counter()
    total = 0
    while written := terminal.read(QUIET_SECONDS):
        last = time.perf_counter()
        total += len(written)
    return last - started, total


def main() -> None:
    with Terminal(["-c", OURS]) as terminal:
        terminal.wait_for(b"verdict")
        terminal.send(PAUSE)
        terminal.drain(1.0)
        terminal.send(DOWN)
        terminal.drain()
        steps = [respond(terminal, b"+" if index % 2 else b"-") for index in range(KEYS)]
        terminal.send(b"qq")
        started = time.perf_counter()
        while terminal.process.poll() is None:
            terminal.read(0.005)
        quit_seconds = time.perf_counter() - started
    times = [1000 * seconds for seconds, _ in steps]
    sizes = [size for _, size in steps]
    print(
        f"key to numbers {statistics.median(times):.1f} ms median, {max(times):.1f} ms worst (budget {BUDGET_MS})"
    )
    print(
        f"bytes          {statistics.median(sizes):,.0f} median, {max(sizes):,} most (budget {BUDGET_BYTES:,})"
    )
    print(f"quit           {1000 * quit_seconds:.0f} ms (budget 100)")


if __name__ == "__main__":
    main()
