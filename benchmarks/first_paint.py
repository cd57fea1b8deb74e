"""Time until the first frame, against the smallest Textual program; both on a pty, in turns.

Run it with ``python benchmarks/first_paint.py``.
"""

from __future__ import annotations

import statistics

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


def main() -> None:
    hello, ours = [], []
    with Terminal(["-c", OURS]) as terminal:  # compiles
        terminal.wait_for(b"Hardware")
    for _ in range(ROUNDS):
        with Terminal(["-c", HELLO]) as terminal:
            hello.append(terminal.wait_for(b"first frame"))
        with Terminal(["-c", OURS]) as terminal:
            ours.append(terminal.wait_for(b"Hardware"))
    smallest, median = statistics.median(hello), statistics.median(ours)
    ratio = median / smallest
    print(f"hello world  {smallest:.3f} s median, {min(hello):.3f} s best")
    print(f"capacity-tui {median:.3f} s median, {min(ours):.3f} s best")
    print(f"ratio        {ratio:.2f} (budget {BUDGET})")


if __name__ == "__main__":
    main()
