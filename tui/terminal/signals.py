"""Signals that end the program: the terminal is given back whatever the program is at."""

from __future__ import annotations

import os
import signal
import sys
import termios
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
CODE_OF_FIRST_SIGNAL = 128
"""Shells count the exit code of a signal from here."""
_PATIENCE_SECONDS = 1.0
"""How long an orderly end may take: it has to wait for a terminal that takes no more, as after a lost line."""
_GIVE_BACK = b"".join(
    (
        *(b"\x1b[?%dl" % mode for mode in (1000, 1003, 1006, 1015, 1004, 2004)),  # mouse, focus, bracketed paste
        b"\x1b[?7h",  # line wrap
        b"\x1b[<u",  # keyboard protocol
        b"\x1b[?1049l",  # alternate screen
        b"\x1b[?25h",  # cursor
    )
)


def heed_signals(loop: AbstractEventLoop, end: Callable[[int], None], ask: Callable[[], object]) -> None:
    """Call back in the loop when a signal asks the program to end; end without it where it does not answer.

    Args:
        loop: where the program runs.
        end: called with the exit code.
        ask: called for an interrupt, which may be refused.
    """
    keyboard, screen = sys.stdin.fileno(), sys.stderr.fileno()
    attributes = termios.tcgetattr(keyboard)
    code = CODE_OF_FIRST_SIGNAL

    def ended(number: int, _frame: FrameType | None) -> None:
        nonlocal code
        code = CODE_OF_FIRST_SIGNAL + number
        # No thread and no lock: the signal may have come in the middle of any of them.
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE_SECONDS)
        loop.call_soon_threadsafe(end, code)

    def forced(_number: int, _frame: FrameType | None) -> None:
        with suppress(OSError, termios.error):
            os.set_blocking(screen, False)
            os.write(screen, _GIVE_BACK)
            os.set_blocking(screen, True)
            termios.tcsetattr(keyboard, termios.TCSANOW, attributes)
        os._exit(code)

    signal.signal(signal.SIGALRM, forced)
    signal.signal(signal.SIGINT, lambda _number, _frame: loop.call_soon_threadsafe(ask))
    for number in ENDING:
        # What the caller has the program ignore, as nohup does, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, ended)
