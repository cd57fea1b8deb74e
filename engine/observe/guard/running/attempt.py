"""One start of a guarded command: a process group of its own that outlives whoever guards it.

A shell stays between: it writes down its number first and the exit code last, so that one who comes later knows both.
Output goes to files, not to pipes that would break.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.files import make_folder, storage_error
from capacity_tui.engine.observe.command import BY_SIGNAL, CommandError
from capacity_tui.engine.observe.runs.process_identity import ProcessIdentity, identity_of

RUN_VARIABLE, ATTEMPT_VARIABLE = "CAPACITY_TUI_RUN_ID", "CAPACITY_TUI_RUN_ATTEMPT"
"""Variables by which the processes of an attempt are known, whoever their parents are."""
OUTPUTS = ("stdout", "stderr")
_PID, _EXIT_CODE = "pid", "exit_code"
_KEEPER = """
folder=$1; work=$2; shift 2
echo $$ > "$folder/pid" && cd "$work" || exit 126
trap : HUP INT QUIT TERM USR1 USR2
exec 3>&2 2>/dev/null
(exec "$@" 2>&3 3>&-)
code=$?
echo $code > "$folder/exit_code"
exit $code
"""
_AT_DEFAULT = tuple(getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ", "SIGINT", "SIGQUIT", "SIGTERM"))
_TO_ALL = (signal.SIGINT, signal.SIGQUIT)
"""Signals that a terminal sends to a whole group."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_FIRST_WORD_SECONDS = 10.0
_POLL_SECONDS = 0.05
_FILE_MODE = 0o600


class Attempt:
    """One start of a command, made by this process or by one before it.

    Args:
        folder: of the attempt.
        run: id of the run.
        number: of the attempt, from 1.
    """

    def __init__(self, folder: Path, run: str, number: int) -> None:
        self.folder = folder
        self.run = run
        self.number = number
        self._keeper: ProcessIdentity | None = None

    @property
    def pid(self) -> int | None:
        """Number of its first process; None where that never started."""
        with suppress(OSError, ValueError):
            text = (self.folder / _PID).read_text()
            return int(text) if text.endswith("\n") else None
        return None

    @property
    def exit_code(self) -> int | None:
        """How it ended, 128 and the number of a signal; None as long as it goes on, or where nothing told."""
        with suppress(OSError, ValueError):
            text = (self.folder / _EXIT_CODE).read_text()
            return int(text) if text.endswith("\n") else None
        return None

    @property
    def goes_on(self) -> bool:
        """Whether its first process lives."""
        if self._keeper is None:
            self._find_keeper()
        if self._keeper is None:
            return False
        with suppress(ChildProcessError):  # one that another guard started is not waited for by this one
            os.waitpid(self._keeper.pid, os.WNOHANG)
        return bool(self._keeper.lives)

    def start(self, words: Sequence[str], environment: Mapping[str, str], work: Path, stdin: int) -> None:
        """Start the command; returns once its number stands in the folder.

        Args:
            words: the command and its arguments.
            environment: its environment.
            work: the folder it works in.
            stdin: file descriptor that it reads.

        Raises:
            CapacityError: it cannot be started, or its folder cannot be written.
        """
        make_folder(self.folder)
        marked = {**environment, RUN_VARIABLE: self.run, ATTEMPT_VARIABLE: str(self.number)}
        keeper = ("/bin/sh", "-c", _KEEPER, "sh", str(self.folder), str(work), *words)
        try:
            ends = [os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _FILE_MODE) for name in OUTPUTS]
        except OSError as error:
            raise storage_error(error, self.folder, "cannot be written") from None
        actions = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate((stdin, *ends))]
        try:
            pid = os.posix_spawn(
                keeper[0], keeper, marked, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_AT_DEFAULT
            )
        except OSError as error:
            raise CommandError(f"{words[0]} cannot be started", str(error.strerror or error).lower()) from None
        finally:
            for end in ends:
                os.close(end)
        self._keeper = identity_of(pid)
        until = time.monotonic() + _FIRST_WORD_SECONDS
        while self.pid is None and self.goes_on and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        if self.pid is None:
            raise StorageError("cannot be written", hint="free some space", place=Place(str(self.folder)))

    def was_started(self) -> bool:
        """Return whether its command was started, by whomever; one that is just being started is waited for."""
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
            if (left := until - time.monotonic()) <= 0:
                return False
            time.sleep(min(_POLL_SECONDS, left))
        return True

    def ended_with(self) -> int:
        """Return the exit code of one that has ended; one of which nothing was told was killed with all around it."""
        code = self.exit_code
        return BY_SIGNAL + signal.SIGKILL if code is None else code

    def processes(self) -> tuple[psutil.Process, ...]:
        """Return its processes that live, found by what all of them were given in their environment."""
        return tuple(process for process in psutil.process_iter() if self._is_mine(process))

    def send(self, number: int) -> None:
        """Send a signal as whoever started the command would: keys to its group, others to the command alone."""
        pid = self.pid
        if pid is None or not self.goes_on:
            return
        with suppress(ProcessLookupError, PermissionError, psutil.Error):
            children = () if number in _TO_ALL else psutil.Process(pid).children()
            if children:
                os.kill(children[0].pid, number)
            else:
                os.killpg(pid, number)
        if number in _ENDING:  # one that stands still would hear nothing
            self.send_to_all(signal.SIGCONT)

    def send_to_all(self, number: int) -> None:
        """Send a signal to every process of the attempt."""
        for process in self.processes():
            with suppress(psutil.Error):
                process.send_signal(number)

    def end(self, patience: float) -> None:
        """End every process: those that do not by themselves within some seconds are killed."""
        self.send_to_all(signal.SIGTERM)
        self.send_to_all(signal.SIGCONT)
        until = time.monotonic() + patience
        while self.processes() and time.monotonic() < until:
            self.wait(_POLL_SECONDS)
            time.sleep(_POLL_SECONDS)
        while found := self.processes():
            for process in found:
                with suppress(psutil.Error):
                    process.kill()
            self.wait(_POLL_SECONDS)
            time.sleep(_POLL_SECONDS)

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
            found = process.environ()
        except (psutil.Error, OSError):
            return False
        return found.get(RUN_VARIABLE) == self.run and found.get(ATTEMPT_VARIABLE) == str(self.number)
