"""Runs a command as if it were started by the terminal itself: its streams, signals and exit code are its own."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from capacity_tui.engine.errors import CapacityError, MissingPartError
from capacity_tui.engine.record import dataclass

NOT_FOUND, NOT_EXECUTABLE, BY_SIGNAL = 127, 126, 128
"""Exit codes as shells give them; a signal's number is added to the last."""


def signals(*names: str) -> tuple[signal.Signals, ...]:
    """Return signals by their names, without those that the system has not."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


PASSED_ON = signals("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGTSTP", "SIGCONT")
_ENDING = signals("SIGINT", "SIGTERM", "SIGHUP")
_OF_KEYS = signals("SIGINT", "SIGQUIT", "SIGTSTP", "SIGWINCH")
"""Signals that a terminal sends to the whole group, so that the command has them already."""
_JOB_CONTROL = signals("SIGTSTP", "SIGTTIN", "SIGTTOU")
_AT_DEFAULT = signals("SIGPIPE", "SIGXFSZ")
"""Signals that Python ignores for itself, and that a command must not inherit so."""
_BLOCK = 512  # Bytes that Linux counts as one block written
_LONGEST_WAIT = 0.5
"""Seconds after which Python runs the handler of a signal that another thread took just before the waiting began."""
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


def need_posix(what: str) -> None:
    """Raise MissingPartError where the system does not start and signal processes as Linux and macOS do."""
    if not hasattr(os, "posix_spawn"):
        raise MissingPartError(f"{what} needs Linux or macOS", sys.platform, "run it in WSL, which is Linux")


class CommandError(CapacityError):
    """A command that may not be started; exits as shells do."""

    exit_code = NOT_EXECUTABLE


class CommandNotFoundError(CommandError):
    """A command that is not there; exits as shells do."""

    exit_code = NOT_FOUND


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, as the kernel counted it."""

    exit_code: int  # its own, or 128 and the signal's number
    signal: int | None  # the signal that ended it, None where it ended by itself
    seconds: float
    cpu_seconds: float  # of it and of children that it has waited for
    # what the largest of these processes held at any time; None where that is less than this program held when it
    # started it, which the kernel counts in
    largest_rss_bytes: int | None
    # written to disks by it and by children that it has waited for; None where that is not counted
    written_bytes: int | None = None


class RunningCommand:
    """A command in this program's process group and terminal; signals for this program alone are passed on.

    Those of the terminal (Ctrl-C, Ctrl-Z, a new size) reach the whole group, so that the command has them already. To
    be made in the main thread, before others are started: signals are held back in all of them, and of threads that
    libraries started earlier a handler passes on what reaches them before this one waits.

    Args:
        environment: its environment; this program's own by default.
        outputs: file descriptors that take its output and its errors; this program's own by default.
        source: the file descriptor that it reads from; this program's own by default.

    Raises:
        CommandError: it cannot be started.
        MissingPartError: the system is not POSIX.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str] | None = None,
        outputs: tuple[int, int] | None = None,
        source: int | None = None,
    ) -> None:
        need_posix("watching a command")
        import resource  # noqa: PLC0415 - of POSIX alone

        self.interrupted = False  # whether the user has pressed Ctrl-C, or this program was signalled to end
        self._redirected = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(outputs or (), 1)]
        self._redirected += [] if source is None else [(os.POSIX_SPAWN_DUP2, source, 0)]
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED_ON, signal.SIGCHLD})
        self.pid = 0
        self._early: list[int] = []
        self._handlers = {number: signal.signal(number, self._take_early) for number in PASSED_ON}
        self._started = time.monotonic()
        try:
            self.pid = self._spawn(tuple(words), dict(os.environ if environment is None else environment))
        except OSError as error:
            self._release()
            kind = CommandNotFoundError if isinstance(error, FileNotFoundError) else CommandError
            reason = str(error.strerror or error).lower()
            raise kind(f"{words[0]} cannot be started", reason, "check its name and that it may be executed") from None
        # Asked afterwards: what this program held when the command was made of it is counted in.
        self._floor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in self._early:
            self._take_early(number, None)

    def wait(self) -> Ended:
        """Return how the command ended; until then, forward signals, and stop and continue with it."""
        while True:
            # Asked first: it may have ended before the first signal is waited for.
            ended = self._ended()
            if ended is not None:
                self._release()
                return ended
            received = _next_signal({*PASSED_ON, signal.SIGCHLD}, _LONGEST_WAIT)
            if received is not None:
                self._pass_on(*received)

    def _take_early(self, number: int, _: object) -> None:
        """Take a signal that reached another thread; its sender is unknown."""
        if self.pid:
            self._pass_on(number, of_terminal=number in _OF_KEYS)
        else:
            self._early.append(number)

    def _spawn(self, words: tuple[str, ...], environment: dict[str, str]) -> int:
        try:
            return self._spawn_program(words, environment)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script that names no interpreter is the shell's, as everywhere.
            return self._spawn_program(("/bin/sh", *words), environment)

    def _spawn_program(self, words: tuple[str, ...], environment: dict[str, str]) -> int:
        return os.posix_spawnp(
            words[0], words, environment, file_actions=self._redirected, setsigmask=self._mask, setsigdef=_AT_DEFAULT
        )

    def _ended(self) -> Ended | None:
        pid, status, usage = os.wait4(self.pid, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            return None
        if os.WIFSTOPPED(status):
            if os.WSTOPSIG(status) in _JOB_CONTROL:
                # Whoever waits for this program, a shell, takes it for the command.
                os.kill(os.getpid(), signal.SIGSTOP)
            return None
        signal_number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        return Ended(
            exit_code=os.WEXITSTATUS(status) if signal_number is None else BY_SIGNAL + signal_number,
            signal=signal_number,
            seconds=time.monotonic() - self._started,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            largest_rss_bytes=usage.ru_maxrss * _MAXRSS_UNIT if usage.ru_maxrss > self._floor else None,
            written_bytes=usage.ru_oublock * _BLOCK if sys.platform == "linux" else None,
        )

    def _pass_on(self, number: int, of_terminal: bool) -> None:
        self.interrupted |= number in _ENDING
        if number != signal.SIGCHLD and not of_terminal:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)

    def _release(self) -> None:
        """Let signals through again, less those that were meant for the command."""
        while pending := signal.sigpending() & {*PASSED_ON, signal.SIGCHLD}:
            self.interrupted |= bool(pending & {*_ENDING})
            _next_signal(pending, 0.0)  # without waiting: a thread of a library may have taken it meanwhile
        for number, handler in self._handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def _next_signal(awaited: Collection[int], seconds: float) -> tuple[int, bool] | None:
    """Return the next signal, and whether it came from the terminal to all of the group; None for none in so long."""
    if hasattr(signal, "sigtimedwait"):
        info = signal.sigtimedwait(awaited, seconds)
        return None if info is None else (info.si_signo, info.si_code > 0)
    # The sender is unknown here; those of keys go to the whole group.
    number = signal.sigwait(awaited)
    return number, number in _OF_KEYS
