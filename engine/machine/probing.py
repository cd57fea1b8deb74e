"""Probes side by side: each in a daemon thread with its own time limit, none able to hold up the rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from capacity_tui.engine.machine.machine import Probe, ProbeOutcome
from capacity_tui.engine.printable import printable

CANCEL_CHECK_SECONDS = 0.05  # how soon a cancelled wait returns; quitting must take under 0.1 s

T = TypeVar("T")


class NotPresentError(Exception):
    """A probe's subject is not in this machine, or its driver is not installed."""


class Running(Generic[T]):
    """A probe that is running; the thread is a daemon, so that a hung one never holds up the exit."""

    def __init__(self, name: str, call: Callable[[], T], seconds: float) -> None:
        self.name = name
        self._call = call
        self._started = time.perf_counter()
        self._limit = seconds
        self._done = threading.Event()
        self._value: T | None = None
        self._outcome: ProbeOutcome = "found"
        self._detail = ""
        self._seconds = 0.0
        threading.Thread(target=self._work, name=f"probe-{name}", daemon=True).start()

    @property
    def done(self) -> bool:
        """Whether the probe has come back."""
        return self._done.is_set()

    def wait(self, cancelled: threading.Event | None = None) -> tuple[T | None, Probe]:
        """Return what the probe found, or None, and how it went, within its time limit."""
        while not self._done.wait(max(0.0, min(CANCEL_CHECK_SECONDS, self._remaining()))):
            if cancelled is not None and cancelled.is_set():
                return None, self._report("cancelled", "stopped waiting")
            if self._remaining() <= 0:
                break
        return self.now()

    def wait_at_most(self, seconds: float) -> tuple[T | None, Probe]:
        """Return what the probe found within some seconds from now; it may be waited for again."""
        self._done.wait(seconds)
        return self.now()

    def now(self) -> tuple[T | None, Probe]:
        """Return what the probe has found so far, and how it went."""
        if self.done:
            return self._value, Probe(self.name, self._seconds, self._outcome, printable(self._detail))
        return None, self._report("timed out", f"no answer within {self._limit:g} s")

    def _remaining(self) -> float:
        return self._limit - (time.perf_counter() - self._started)

    def _report(self, outcome: ProbeOutcome, detail: str) -> Probe:
        return Probe(self.name, time.perf_counter() - self._started, outcome, detail)

    def _work(self) -> None:
        try:
            self._value = self._call()
        except NotPresentError as error:
            self._outcome, self._detail = "absent", str(error)
        except PermissionError as error:
            self._outcome, self._detail = "denied", f"{error.strerror}: {error.filename}"
        except Exception as error:  # a probe may break in any way; the rest must not
            self._outcome, self._detail = "failed", f"{type(error).__name__}: {error}"
        finally:
            self._seconds = time.perf_counter() - self._started
            self._done.set()
