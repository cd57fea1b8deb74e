"""Time until the first frame, against the smallest Textual program; both on a pty, in turns.

Run it with ``python benchmarks/first_paint.py``.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from figures import Figure, show
from terminal import Terminal

ROUNDS = 9
BUDGET = 1.5
HELLO = """
from textual.app import App
from textual.widgets import Static
class Hello(App):
    def compose(self):
        yield Static("first frame")
Hello().run()
"""
OURS = "from capacity_tui.tui.cli import main; main([])"


def figures() -> Iterator[Figure]:
    """Yield the time of the first frame, as a ratio too."""
    hello, ours = [], []
    with Terminal(["-c", OURS]) as terminal:  # compiles
        terminal.wait_for(b"Hardware")
    for _ in range(ROUNDS):
        with Terminal(["-c", HELLO]) as terminal:
            hello.append(terminal.wait_for(b"first frame"))
        with Terminal(["-c", OURS]) as terminal:
            ours.append(terminal.wait_for(b"Hardware"))
    smallest, median = statistics.median(hello), statistics.median(ours)
    yield Figure("first frame of the smallest Textual program", smallest, "s")
    yield Figure("first frame", median, "s")
    yield Figure("first frame over that of the smallest Textual program", median / smallest, "", BUDGET)


if __name__ == "__main__":
    show(figures())
