"""What the probes may touch: files below a root, commands with a time limit, the environment."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeVar

from capacity_tui.engine.machine.commands import run_command
from capacity_tui.engine.machine.facts import Fact, detected, missing

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
    status = os.statvfs(mount)
    return Space(status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize)


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
        """Return what a file holds; raises OSError."""
        return self.path(path).read_bytes()

    def names(self, directory: str) -> Iterable[str]:
        """Return the names in a directory; raises OSError."""
        return (entry.name for entry in self.path(directory).iterdir())

    def exists(self, path: str) -> bool:
        """Return whether a path is there; raises OSError."""
        return self.path(path).exists()

    def target(self, path: str) -> PurePosixPath:
        """Return where a path leads, through symbolic links; raises OSError."""
        target, root = self.path(path).resolve(strict=True), self.root.resolve()
        return PurePosixPath("/") / target.relative_to(root) if target.is_relative_to(root) else PurePosixPath(target)


@dataclass(frozen=True, slots=True)
class Host:
    """The machine as the probes see it; tests put a recorded one in its place.

    Attributes:
        root: directory that stands for ``/``.
        system: ``Linux`` or ``Darwin``.
        architecture: machine name as ``uname -m`` gives it.
        run: runs a command within some seconds and returns what it prints.
        space: size of the file system at a mount point.
        silent: commands that did not answer in time.
        recorded: its files where they were recorded; None for those below the root.
    """

    root: Path = Path("/")
    system: str = field(default_factory=platform.system)
    architecture: str = field(default_factory=platform.machine)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    run: Callable[[tuple[str, ...], float], str] = run_command
    space: Callable[[str], Space] = file_system_space
    silent: set[str] = field(default_factory=set)
    recorded: Files | None = None

    @property
    def is_here(self) -> bool:
        """Whether it is the machine that runs this program, whose drivers can be called."""
        return self.root == Path("/") and self.recorded is None

    @property
    def files(self) -> Files:
        """The files of the machine."""
        return self.recorded or DiskFiles(self.root)

    def own_path(self, path: Path) -> Path | None:
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
            folder: where the command lies if not on the search path.
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
