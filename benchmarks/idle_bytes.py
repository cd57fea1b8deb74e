"""Bytes a second and processor time of the idle screen, with its graphs running and paused.

Run it with ``python benchmarks/idle_bytes.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from figures import Figure, show
from terminal import Terminal

SECONDS = 20.0
BYTES = 2500
CORE_PERCENT = 1
OURS = "from capacity_tui.tui.app import run; run()"


def figures() -> Iterator[Figure]:
    """Yield what the idle screen writes and takes."""
    with Terminal(["-c", OURS]) as terminal:
        terminal.wait_for(b"I want to")
        terminal.send(b"\x1b")
        terminal.count(6.0)
        before = terminal.processor_seconds()
        running = terminal.count(SECONDS) / SECONDS
        processor = (terminal.processor_seconds() - before) / SECONDS
        terminal.send(b",")
        terminal.count(2.0)
        paused = terminal.count(SECONDS / 4) / (SECONDS / 4)
    yield Figure("idle screen with live graphs, 120x40", running, "B/s", BYTES)
    yield Figure("idle screen with live graphs, share of a core", 100 * processor, "%", CORE_PERCENT)
    yield Figure("idle screen, paused", paused, "B/s", 0)


if __name__ == "__main__":
    show(figures())
