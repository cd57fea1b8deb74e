"""How far a command is, on standard error: one line that is renewed on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from capacity_tui.engine.printable import printable

ON_TERMINAL, ELSEWHERE = 0.2, 10.0
"""Seconds between two states that are shown."""


class Progress:
    """Shows states of a command that takes its time.

    Attributes:
        is_terminal: whether somebody looks at it.
    """

    def __init__(self) -> None:
        self.is_terminal = sys.stderr.isatty()
        self._due = monotonic() + (0.0 if self.is_terminal else ELSEWHERE)

    def show(self, text: Callable[[], str]) -> None:
        """Show a state, unless the last one was shown a moment ago.

        Args:
            text: returns it in words; not asked for otherwise.
        """
        if monotonic() < self._due:
            return
        if self.is_terminal:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{printable(text())[:width]}")
        else:
            sys.stderr.write(f"{printable(text())}\n")
        sys.stderr.flush()
        self._due = monotonic() + (ON_TERMINAL if self.is_terminal else ELSEWHERE)

    def clear(self) -> None:
        """Take the line away."""
        if self.is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def progress() -> Iterator[Progress]:
    """Give progress that is cleared at the end, whatever that is."""
    shown = Progress()
    try:
        yield shown
    finally:
        shown.clear()
