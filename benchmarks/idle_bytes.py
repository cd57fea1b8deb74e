"""Bytes a second and processor time of the idle screen, with its graphs running and paused.

Run it with ``python benchmarks/idle_bytes.py``.
"""

from __future__ import annotations

from terminal import Terminal

SECONDS = 20.0
BUDGET = 2500
OURS = "from capacity_tui.tui.app import run; run()"


def main() -> None:
    with Terminal(["-c", OURS]) as terminal:
        terminal.wait_for(b"I want to")
        terminal.send(b"\x1b")
        terminal.count(6.0)
        before = terminal.processor_seconds()
        running = terminal.count(SECONDS) / SECONDS
        processor = (terminal.processor_seconds() - before) / SECONDS
        terminal.send(b".")
        terminal.count(2.0)
        paused = terminal.count(SECONDS / 4) / (SECONDS / 4)
    print(f"graphs running {running:,.0f} B/s (budget {BUDGET:,}), {100 * processor:.1f} % of a core")
    print(f"graphs paused  {paused:,.0f} B/s (budget 0)")


if __name__ == "__main__":
    main()
