"""What probes may touch (files, commands, the environment), and how they run side by side, each with a time limit."""

from __future__ import annotations

import errno
import os
import platform
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import IO, Generic, Protocol, TypeVar

from capacity_tui.engine.machine.facts import Fact, detected, missing
from capacity_tui.engine.machine.machine import Probe, ProbeOutcome
from capacity_tui.engine.printable import printable
from capacity_tui.engine.record import dataclass

TOOLS = ("/usr/sbin", "/sbin")  # folders of sysctl and the like, often outside PATH
MOST_BYTES = 1 << 20  # the longest reports of tools have some 20 KiB for a device
PIECE_BYTES = 1 << 16
KILLED_SECONDS = 0.2  # a process that waits inside a driver outlives even SIGKILL: it is left behind


def run_command(words: tuple[str, ...], seconds: float) -> str:
    """Return what a command prints.

    The command has a separate process group, which is killed when it takes too long or prints too much.

    Raises:
        OSError: it is not installed or may not be run.
        subprocess.SubprocessError: it failed, took longer than ``seconds``, or printed more than a report.
    """
    process = subprocess.Popen(  # noqa: S603 - fixed vendor tools, never the user's words
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C", "PATH": search_path()},
        start_new_session=True,
    )
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    try:
        end = time.monotonic() + seconds
        with process.stdout as stream:
            output = _read(stream, words, end, seconds)
        code = process.wait(max(KILLED_SECONDS, end - time.monotonic()))
    except BaseException:
        _end(process)
        raise
    if code != 0:
        raise subprocess.CalledProcessError(code, words)
    return output.decode("utf-8", errors="replace")


def search_path() -> str:
    """Return where tools are searched; never the current folder, which empty entries of PATH stand for."""
    named = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join([*(folder for folder in named if os.path.isabs(folder)), *TOOLS])  # noqa: PTH117


def _read(stream: IO[bytes], words: tuple[str, ...], end: float, seconds: float) -> bytes:
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, end - time.monotonic())):
                raise subprocess.TimeoutExpired(words, seconds)
            piece = os.read(stream.fileno(), PIECE_BYTES)
            if not piece:
                return bytes(output)
            output += piece
            if len(output) > MOST_BYTES:
                raise subprocess.SubprocessError(f"{words[0]} prints more than {MOST_BYTES >> 20} MiB")


def end_group(process: subprocess.Popen[bytes], *, gently: bool = False) -> None:
    """Tell a process and all that it started to end, or kill them; it alone where systems know no groups."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGTERM if gently else signal.SIGKILL)
        else:
            process.kill()


def _end(process: subprocess.Popen[bytes]) -> None:
    end_group(process)
    with suppress(subprocess.TimeoutExpired):
        process.wait(KILLED_SECONDS)


COMMAND_SECONDS = 3.0  # vendor tools answer in well under a second unless their driver hangs
NO_ANSWER = f"no answer within {COMMAND_SECONDS:g} s"
REASONS = {errno.ENOENT: "this machine does not tell", errno.EACCES: "permission denied"}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Space:
    """Size of a file system and what an ordinary user may still write, in bytes."""

    total_bytes: int
    free_bytes: int


def file_system_space(mount: str) -> Space:
    """Return the size of the file system mounted at ``mount``; raises OSError."""
    space = shutil.disk_usage(mount)
    return Space(space.total, space.free)


class Files(Protocol):
    """The files of a machine, by their paths from its root; all of these raise OSError for what cannot be read."""

    def read(self, path: str) -> bytes:
        """Return what a file holds."""

    def names(self, directory: str) -> Iterable[str]:
        """Return the names in a directory."""

    def exists(self, path: str) -> bool:
        """Return whether a path is there."""

    def target(self, path: str) -> PurePosixPath:
        """Return where a path leads, through symbolic links."""


@dataclass(frozen=True, slots=True)
class DiskFiles:
    """Files below a directory that stands for the root."""

    root: Path

    def path(self, path: str) -> Path:
        """Return where an absolute path lies below the root."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> bytes:
        return self.path(path).read_bytes()

    def names(self, directory: str) -> Iterable[str]:
        return (entry.name for entry in self.path(directory).iterdir())

    def exists(self, path: str) -> bool:
        return self.path(path).exists()

    def target(self, path: str) -> PurePosixPath:
        target, root = self.path(path).resolve(strict=True), self.root.resolve()
        return PurePosixPath("/") / target.relative_to(root) if target.is_relative_to(root) else PurePosixPath(target)


@dataclass(frozen=True, slots=True)
class Host:
    """The machine as the probes see it; tests put a recorded one in its place."""

    root: Path = Path("/")  # directory that stands for ``/``
    system: str = field(default_factory=platform.system)  # ``Linux`` or ``Darwin``
    architecture: str = field(default_factory=platform.machine)  # machine name as ``uname -m`` gives it
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    # runs a command within some seconds and returns what it prints
    run: Callable[[tuple[str, ...], float], str] = run_command
    space: Callable[[str], Space] = file_system_space  # size of the file system at a mount point
    silent: set[str] = field(default_factory=set)  # commands that did not answer in time
    recorded: Files | None = None  # its files where they were recorded; None for those below the root

    @property
    def is_here(self) -> bool:
        """Whether it is the machine that runs this program, with drivers that can be called."""
        return self.root == Path("/") and self.recorded is None

    @property
    def files(self) -> Files:
        return self.recorded or DiskFiles(self.root)

    def user_path(self, path: Path) -> Path | None:
        """Return where a path of this user's lies; None on a machine that was recorded, where the user has none."""
        return DiskFiles(self.root).path(str(path.absolute())) if self.recorded is None else None

    def text(self, path: str) -> Fact[str]:
        """Return the stripped contents of a file."""
        try:
            content = self.files.read(path).decode("utf-8", "replace").strip("\x00 \r\n\t")
        except OSError as error:
            return missing(path, REASONS.get(error.errno or 0, str(error.strerror).lower()))
        return detected(content, path) if content else missing(path, "empty")

    def fact(self, path: str, parse: Callable[[str], T]) -> Fact[T]:
        """Return what ``parse`` makes of a file; its ValueError is a missing value."""
        content = self.text(path)
        if content.value is None:
            return missing(path, content.reason)
        try:
            return detected(parse(content.value), path)
        except ValueError:
            return missing(path, f"unreadable value {content.value[:40]!r}")

    def integer(self, path: str) -> Fact[int]:
        """Return a file's contents as a whole number."""
        return self.fact(path, int)

    def names(self, directory: str) -> tuple[str, ...]:
        """Return the sorted names in a directory, none if it cannot be read."""
        try:
            return tuple(sorted(self.files.names(directory)))
        except OSError:
            return ()

    def exists(self, path: str) -> bool:
        """Return whether a path is there and may be seen."""
        try:
            return self.files.exists(path)
        except OSError:
            return False

    def target(self, path: str) -> PurePosixPath | None:
        """Return where a symbolic link leads, or None if it is not there."""
        try:
            return self.files.target(path)
        except OSError:
            return None

    def command(self, *words: str, folder: str = "") -> Fact[str]:
        """Return what a command prints, missing if it is not installed, fails or hangs; one that hangs is run once.

        Args:
            folder: folder of the command if it is not on the search path.
        """
        source = " ".join(words)
        if words[0] in self.silent:
            return missing(source, NO_ANSWER)
        try:
            return detected(self._run(words, folder), source)
        except FileNotFoundError:
            return missing(source, f"{words[0]} is not installed")
        except subprocess.TimeoutExpired:
            self.silent.add(words[0])
            return missing(source, NO_ANSWER)
        except (OSError, subprocess.SubprocessError) as error:
            return missing(source, str(error))

    def _run(self, words: tuple[str, ...], folder: str) -> str:
        try:
            return self.run(words, COMMAND_SECONDS)
        except FileNotFoundError:
            path = f"{folder}/{words[0]}"
            if not folder or not self.exists(path):
                raise
            return self.run((path, *words[1:]), COMMAND_SECONDS)


def parse_pairs(text: str) -> dict[str, str]:
    """Return the ``key: value`` lines of a text, the first of equal keys."""
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            pairs.setdefault(key.strip(), value.strip())
    return pairs


CANCEL_CHECK_SECONDS = 0.05  # how soon a cancelled wait returns; quitting must take under 0.1 s


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
