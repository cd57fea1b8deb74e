"""Time and bytes from a key that changes a value to the new numbers, the memory of the screen, and from q to its end.

The bytes include the explanation, which follows once the keys rest.
Run it with ``python benchmarks/key_to_screen.py``.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, show
from terminal import Terminal

KEYS = 100
MEDIAN_MS, WORST_MS, OVER_MEDIAN, BYTES, QUIT_MS, RESIDENT_MB = 25, 50, 3, 4000, 100, 110
QUIET_SECONDS = 0.4
OURS = "from capacity_tui.tui.app import run; run()"
FABRIC = Path(__file__).with_name("fabric.yaml").read_text(encoding="utf-8")
OF_FABRIC = f"from capacity_tui.tui.app import run; run(plan={FABRIC!r})"
NEW_ANSWER = re.compile(rb"\x1b\[2;\d+H[^H]*\x1b\[(?:0;)?1[;m]")
"""Bold figures in the answer strip, the second line; those of an earlier plan are dim."""


def respond(terminal: Terminal, keys: bytes, rests: bool = True) -> tuple[float, int]:
    """Return seconds until the new numbers were written, and the bytes until then, or until all rests."""
    terminal.send(keys)
    started = time.perf_counter()
    shown = 0.0
    written = b""
    while chunk := terminal.read(QUIET_SECONDS):
        written += chunk
        if not shown and NEW_ANSWER.search(written):
            shown = time.perf_counter() - started
            if not rests:
                break
    return shown, len(written)


def steps(terminal: Terminal) -> tuple[list[float], list[int]]:
    """Return milliseconds and bytes of keys that change a value, of a plan that has numbers."""
    terminal.send(b".")
    terminal.drain(1.0)
    terminal.send(b"/sequence\r")
    terminal.drain(1.0)
    answers = [respond(terminal, b"+" if index % 2 else b"-") for index in range(KEYS)]
    return [1000 * seconds for seconds, _ in answers], [size for _, size in answers]


def figures() -> Iterator[Figure]:
    """Yield the time and the bytes of a key, also of a plan on thousands of devices, and the time it takes to quit."""
    with Terminal(["-c", OURS]) as terminal:
        terminal.wait_for(b"I want to")
        terminal.send(b"\x1b")
        terminal.wait_for(b"verdict")
        terminal.drain(1.0)
        at_rest = terminal.resident_megabytes()
        times, sizes = steps(terminal)
        after_keys = terminal.resident_megabytes()
        hasty = [1000 * respond(terminal, b"+" if index % 2 else b"-", rests=False)[0] for index in range(KEYS)]
        terminal.drain(1.0)
        terminal.send(b"qq")
        started = time.perf_counter()
        while terminal.process.poll() is None:
            terminal.read(0.005)
        quit_ms = 1000 * (time.perf_counter() - started)
    yield from of_keys("key", times, sizes)
    yield Figure("the same, each key as soon as the one before is answered", statistics.median(hasty), "ms")
    yield Figure("quit", quit_ms, "ms", QUIT_MS)
    yield Figure("memory of the screen at rest", at_rest, "MB", RESIDENT_MB)
    yield Figure(f"memory of the screen after {KEYS} keys", after_keys, "MB", RESIDENT_MB)
    with Terminal(["-c", OF_FABRIC]) as terminal:
        terminal.wait_for(b"verdict")
        yield from of_keys("key on 16,384 devices", *steps(terminal))


def of_keys(what: str, times: list[float], sizes: list[int]) -> Iterator[Figure]:
    """Yield the figures of some keys."""
    yield Figure(f"{what} to new numbers, median", statistics.median(times), "ms", MEDIAN_MS)
    yield Figure(f"{what} to new numbers, worst of {KEYS}", max(times), "ms", WORST_MS)
    yield Figure(f"{what} to new numbers, worst over median", max(times) / statistics.median(times), "", OVER_MEDIAN)
    yield Figure(f"bytes of a {what} with all that follows, median", statistics.median(sizes), "B")
    yield Figure(f"bytes of a {what} with all that follows, most", max(sizes), "B", BYTES)


if __name__ == "__main__":
    show(figures())
