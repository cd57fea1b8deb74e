"""A terminal driver that ends at once, survives a lost terminal, and gives it back when it is stopped."""

from __future__ import annotations

import os
import selectors
import signal
from codecs import getincrementaldecoder

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

_CHUNK_BYTES = 4096
_TICK_SECONDS = 0.1
"""How often the parser looks whether a lone escape was a key of its own."""


class PromptDriver(LinuxDriver):
    """Reads the terminal, and stops reading the moment it is told to; Textual's own waits twice for a tenth."""

    _wake: int | None = None
    """Write end of a pipe; closing it wakes the thread that reads the terminal."""
    _woken: int = -1

    def start_application_mode(self) -> None:
        """Take over the terminal."""
        self._woken, self._wake = os.pipe()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def disable_input(self) -> None:
        """Stop reading the terminal."""
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
        """Pass on what is typed, until the pipe is closed.

        Raises:
            OSError: the terminal is gone.
        """
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
        """Take the terminal over again, and have all of it painted."""
        if not self._must_signal_resume:
            # Stopped without being asked: what the shell did to the terminal meanwhile is undone first.
            self.suspend_application_mode()
            self._must_signal_resume = True
        self.resume_application_mode()
