"""One start of a guarded command: a separate process group that outlives its guard.

A keeper stays between: it passes output on to the guard that started it, records the newest of it for one who comes
later, and writes down its number first and the exit code last.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.files import make_folder
from capacity_tui.engine.runs.command import BY_SIGNAL, CommandError, signals
from capacity_tui.engine.runs.guard import keeper
from capacity_tui.engine.runs.live_run import ProcessIdentity, identity_of

RUN_VARIABLE, ATTEMPT_VARIABLE = "CAPACITY_TUI_RUN_ID", "CAPACITY_TUI_RUN_ATTEMPT"
"""Variables that mark the processes of an attempt, regardless of their parents."""
_KEEPER = (sys.executable, "-I", "-S", keeper.__file__)
_AT_DEFAULT = signals("SIGPIPE", "SIGXFSZ", "SIGINT", "SIGQUIT", "SIGTERM")
_TO_ALL = signals("SIGINT", "SIGQUIT")  # Signals that a terminal sends to a whole group
_ENDING = signals("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
_FIRST_WORD_SECONDS = 10.0
_POLL_SECONDS = 0.05


class Attempt:
    """One start of a command, made by this process or by one before it."""

    def __init__(self, folder: Path, run: str, number: int) -> None:
        self.folder = folder
        self.run = run
        self.number = number
        # file descriptors with its standard output and error, where this process started it; else empty
        self.pipes: tuple[int, ...] = ()
        # when it was first sent a signal that ends most commands, by the monotonic clock; None if never
        self.asked_to_end: float | None = None
        self._keeper: ProcessIdentity | None = None
        self._child: int | None = None
        self._reaped_exit_code: int | None = None

    @property
    def pid(self) -> int | None:
        """Number of its first process; None where that never started."""
        with suppress(OSError, ValueError):
            text = (self.folder / keeper.PID).read_text()
            return int(text) if text.endswith("\n") else None
        return None

    @property
    def exit_code(self) -> int | None:
        """How it ended, 128 and the number of a signal; None while it runs, or where unknown.

        Whoever started it knows by itself, whatever the disk did; others read what was written down.
        """
        if self._reaped_exit_code is not None:
            return self._reaped_exit_code
        with suppress(OSError, ValueError):
            text = (self.folder / keeper.EXIT_CODE).read_text()
            return int(text) if text.endswith("\n") else None
        return None

    @property
    def goes_on(self) -> bool:
        """Whether its first process lives."""
        self._reap()
        if self._keeper is None:
            self._find_keeper()
        return self._keeper is not None and bool(self._keeper.lives)

    def start(self, words: Sequence[str], environment: Mapping[str, str], work: Path, stdin: int) -> None:
        """Start the command; returns once its number stands in the folder.

        Args:
            stdin: file descriptor that it reads.

        Raises:
            CapacityError: it cannot be started, or its folder cannot be written.
        """
        make_folder(self.folder)
        marked = {**environment, RUN_VARIABLE: self.run, ATTEMPT_VARIABLE: str(self.number)}
        pipes = [os.pipe() for _ in keeper.OUTPUTS]
        actions = [(os.POSIX_SPAWN_DUP2, end, at) for at, end in enumerate((stdin, *(end for _, end in pipes)))]
        command = (*_KEEPER, str(self.folder), str(work), *words)
        try:
            pid = os.posix_spawn(
                command[0], command, marked, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_AT_DEFAULT
            )
        except OSError as error:
            for end, _ in pipes:
                os.close(end)
            raise CommandError(f"{words[0]} cannot be started", str(error.strerror or error).lower()) from None
        finally:
            for _, end in pipes:
                os.close(end)
        self.pipes = tuple(end for end, _ in pipes)
        self._child, self._keeper = pid, identity_of(pid)
        until = time.monotonic() + _FIRST_WORD_SECONDS
        while self.pid is None and self.goes_on and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        if self.pid is None:
            raise StorageError("cannot be written", hint="free some space", place=Place(str(self.folder)))

    def was_started(self) -> bool:
        """Return whether its command was started, by any guard; waits for one that is just starting."""
        until = time.monotonic() + _FIRST_WORD_SECONDS
        while self.pid is None:
            if not self.processes() or time.monotonic() > until:
                return self.pid is not None
            time.sleep(_POLL_SECONDS)
        return True

    def wait(self, seconds: float) -> bool:
        """Wait for the end at most so long; return whether it has come."""
        until = time.monotonic() + seconds
        while self.goes_on:
            if (remaining := until - time.monotonic()) <= 0:
                return False
            time.sleep(min(_POLL_SECONDS, remaining))
        return True

    def ended_with(self) -> int:
        """Return the exit code of one that has ended; one without any record was killed together with its keeper."""
        code = self.exit_code
        return BY_SIGNAL + signal.SIGKILL if code is None else code

    def processes(self) -> tuple[psutil.Process, ...]:
        """Return its processes that live, found by what all of them were given in their environment."""
        return tuple(process for process in psutil.process_iter() if self._is_mine(process))

    def send(self, number: int) -> None:
        """Send a signal as a terminal would: those of keys to the group, others to the command alone."""
        pid = self.pid
        if pid is None or not self.goes_on:
            return
        if number in _ENDING:
            self.asked_to_end = self.asked_to_end or time.monotonic()
        with suppress(ProcessLookupError, PermissionError, psutil.Error):
            children = () if number in _TO_ALL else psutil.Process(pid).children()
            if children:
                os.kill(children[0].pid, number)
            else:
                os.killpg(pid, number)
        if number in _ENDING:  # a halted process would not receive it
            self.send_to_all(signal.SIGCONT)

    def send_to_all(self, number: int) -> None:
        """Send a signal to every process of the attempt."""
        for process in self.processes():
            with suppress(psutil.Error):
                process.send_signal(number)

    def end(self, patience: float, meanwhile: Callable[[tuple[psutil.Process, ...]], object] = len) -> None:
        """End every process: those that do not by themselves within some seconds are killed.

        Args:
            patience: seconds to wait.
            meanwhile: called again and again with those that are left; reads the output, which would hold them up.
        """
        self.send_to_all(signal.SIGTERM)
        self.send_to_all(signal.SIGCONT)
        until = time.monotonic() + patience
        while alive := self.processes():
            meanwhile(alive)
            for process in alive if time.monotonic() >= until else ():
                with suppress(psutil.Error):
                    process.kill()
            self.wait(_POLL_SECONDS)
            time.sleep(_POLL_SECONDS)

    def _reap(self) -> None:
        """Take the exit code of a first process that this one started, and that has ended."""
        if self._child is None:
            return
        ended, status = os.waitpid(self._child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            self._child, self._reaped_exit_code = None, code if code >= 0 else BY_SIGNAL - code

    def _find_keeper(self) -> None:
        """Find the first process of one that another guard started; a number may be another process's by now."""
        pid = self.pid
        with suppress(psutil.Error, OSError):
            if pid is not None and self._is_mine(psutil.Process(pid)):
                self._keeper = identity_of(pid)

    def _is_mine(self, process: psutil.Process) -> bool:
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                return False
            environment = process.environ()
        except (psutil.Error, OSError):
            return False
        return environment.get(RUN_VARIABLE) == self.run and environment.get(ATTEMPT_VARIABLE) == str(self.number)
