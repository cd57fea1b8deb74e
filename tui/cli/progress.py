"""How far a command is, as a line on standard error, and a Ctrl-C that keeps the best so far."""

from __future__ import annotations

import math
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from types import FrameType

from capacity_tui.engine.printable import printable
from capacity_tui.tui.cli.output import CLEAR

ON_TERMINAL, ELSEWHERE = 0.2, 10.0
"""Seconds between two states that are shown."""
PATIENCE = 1.0
"""Seconds after which somebody wants to see that a command works."""


class Progress:
    """Shows states of a command that takes its time.

    Args:
        elsewhere: whether states are shown where nobody looks too, at longer intervals.

    Attributes:
        is_terminal: whether somebody looks at it.
    """

    def __init__(self, *, elsewhere: bool = True) -> None:
        self.is_terminal = sys.stderr.isatty()
        self._due = monotonic() + (0.0 if self.is_terminal else ELSEWHERE if elsewhere else math.inf)

    def show(self, text: Callable[[], str]) -> None:
        """Show a state, unless the last one was shown a moment ago.

        Args:
            text: returns it in words; not asked for otherwise.
        """
        if monotonic() < self._due:
            return
        if self.is_terminal:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"{CLEAR}{printable(text())[:width]}")
        else:
            sys.stderr.write(f"{printable(text())}\n")
        sys.stderr.flush()
        self._due = monotonic() + (ON_TERMINAL if self.is_terminal else ELSEWHERE)

    def clear(self) -> None:
        """Take the line away."""
        if self.is_terminal:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()


@contextmanager
def progress(*, elsewhere: bool = True) -> Iterator[Progress]:
    """Give progress that is cleared at the end, whatever that is."""
    shown = Progress(elsewhere=elsewhere)
    try:
        yield shown
    finally:
        shown.clear()


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show what is done, and for how long, on a terminal while work goes on that tells no states of its own."""
    begun, over = monotonic(), Event()
    with progress(elsewhere=False) as shown:

        def tick() -> None:
            while not over.wait(PATIENCE):
                shown.show(lambda: f"{what} ... {monotonic() - begun:.0f} s")

        ticking = Thread(target=tick, daemon=True)
        if shown.is_terminal:
            ticking.start()
        try:
            yield
        finally:
            over.set()
            if shown.is_terminal:
                ticking.join()


@contextmanager
def interrupted() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C be asked for instead of ending the program at once; a second one ends it."""
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def press(number: int, _: FrameType | None) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, before)

    try:
        signal.signal(signal.SIGINT, press)
    except ValueError:  # not the main thread: nobody can press it here
        yield lambda: False
        return
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)
