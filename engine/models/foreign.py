"""Runs code of other packages so that whatever it does, the program goes on and can say what happened."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Generic, TypeVar

from capacity_tui.engine.printable import printable

Returned = TypeVar("Returned")

PATIENCE_SECONDS = 10.0
"""How long code of another package may take: importing a large library takes seconds, computing sizes none."""
_LONGEST_WORDS = 200


class ForeignFaultError(Exception):
    """Code of another package failed, tried to end the program, or did not come back; says which in its words."""


def run_foreign(code: Callable[[], Returned]) -> Returned:
    """Run a function of another package in a thread of its own; what it prints goes to stderr, beside the data.

    Raises:
        ForeignFaultError: it raised anything, ``SystemExit`` included, or took longer than it may; it then runs on
            unheeded until the program ends.
    """
    call = _Call(code)
    thread = threading.Thread(target=call.run, name="plug-in", daemon=True)
    with redirect_stdout(sys.stderr):
        thread.start()
        thread.join(PATIENCE_SECONDS)
    if thread.is_alive():
        raise ForeignFaultError(f"took longer than {PATIENCE_SECONDS:g} seconds")
    if call.fault is not None:
        raise ForeignFaultError(in_words(call.fault)) from call.fault
    return call.returned[0]


def in_words(error: BaseException) -> str:
    """Return the kind and the text of an exception, also of one that cannot say what it is about."""
    try:
        text = str(error)
    except Exception:
        text = ""
    name = type(error).__name__
    return printable(f"{name}: {text}" if text else name)[:_LONGEST_WORDS]


class _Call(Generic[Returned]):
    """One call and what became of it."""

    def __init__(self, code: Callable[[], Returned]) -> None:
        self._code = code
        self.returned: list[Returned] = []
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            self.returned.append(self._code())
        except BaseException as error:
            self.fault = error
