"""A terminal driver that ends at once: Textual's own waits twice for a tenth of a second."""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

_CHUNK_BYTES = 4096
_TICK_SECONDS = 0.1
"""How often the parser looks whether a lone escape was a key of its own."""


class PromptDriver(LinuxDriver):
    """Reads the terminal, and stops reading the moment it is told to."""

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

    def run_input_thread(self) -> None:
        """Pass on what is typed, until the pipe is closed."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                ready = [key.fd for key, _ in selector.select(_TICK_SECONDS)]
                typed = os.read(self.fileno, _CHUNK_BYTES) if self.fileno in ready else b""
                for message in (*parser.feed(decode(typed)), *parser.tick()) if typed else parser.tick():
                    self.process_message(message)
        os.close(self._woken)
