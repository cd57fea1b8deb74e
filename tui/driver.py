"""The terminal of Linux and macOS: how it is read, and how it is given back whatever ends the program."""

from __future__ import annotations

import os
import selectors
import signal
import sys
import termios
from asyncio import AbstractEventLoop
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

_CHUNK_BYTES = 4096
_TICK_SECONDS = 0.1  # How often the parser looks whether a lone escape was a key of its own


class PromptDriver(LinuxDriver):
    """Reads the terminal, and stops reading the moment it is told to; Textual's own waits twice for a tenth."""

    _wake: int | None = None  # Write end of a pipe; closing it wakes the thread that reads the terminal
    _woken: int = -1

    def start_application_mode(self) -> None:
        self._woken, self._wake = os.pipe()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def disable_input(self) -> None:
        if self._wake is not None:
            os.close(self._wake)
            self._wake = None
        super().disable_input()

    def _run_input_thread(self) -> None:
        """Read the terminal; go on after a mistake, since without keys nothing can be saved."""
        try:
            while not self.exit_event.is_set():
                try:
                    self.run_input_thread()
                except OSError:
                    os.kill(os.getpid(), signal.SIGHUP)  # as if the caller had said so
                    return
                except Exception as error:
                    self._loop.call_soon_threadsafe(self._app._handle_exception, error)
        finally:
            os.close(self._woken)

    def run_input_thread(self) -> None:
        """Pass on what is typed, until the pipe is closed; raises OSError where the terminal is gone."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                ready = [key.fd for key, _ in selector.select(_TICK_SECONDS)]
                typed = os.read(self.fileno, _CHUNK_BYTES) if self.fileno in ready else b""
                if self.fileno in ready and not typed:
                    raise OSError("the terminal was closed")
                for message in (*parser.feed(decode(typed)), *parser.tick()) if typed else parser.tick():
                    self.process_message(message)

    def _sigtstp_application(self, *_: object) -> None:
        """Give the terminal back and stop, in the loop: the signal may have come in the middle of a write."""
        self._loop.call_soon_threadsafe(super()._sigtstp_application)

    def _sigcont_application(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._take_over_again)

    def _take_over_again(self) -> None:
        if not self._must_signal_resume:
            # Stopped without being asked: what the shell did to the terminal meanwhile is undone first.
            self.suspend_application_mode()
            self._must_signal_resume = True
        self.resume_application_mode()


ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
CODE_OF_FIRST_SIGNAL = 128  # Shells count the exit code of a signal from here
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
