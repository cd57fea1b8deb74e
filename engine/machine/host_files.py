"""What the probes may touch: files below a root, commands with a time limit, the environment."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

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


@dataclass(frozen=True, slots=True)
class Host:
    """The machine as the probes see it; tests put a recorded one in its place.

    Attributes:
        root: directory that stands for ``/``.
        system: ``Linux`` or ``Darwin``.
        architecture: machine name as ``uname -m`` gives it.
        environment: environment variables.
        run: runs a command within some seconds and returns what it prints.
        space: size of the file system at a mount point.
        silent: commands that were asked and did not answer in time.
    """

    root: Path = Path("/")
    system: str = field(default_factory=platform.system)
    architecture: str = field(default_factory=platform.machine)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    run: Callable[[tuple[str, ...], float], str] = run_command
    space: Callable[[str], Space] = file_system_space
    silent: set[str] = field(default_factory=set)

    @property
    def is_here(self) -> bool:
        """Whether it is the machine that runs this program, whose drivers can be asked themselves."""
        return self.root == Path("/")

    def path(self, path: str) -> Path:
        """Return where an absolute path of the host lies below the root."""
        return self.root / path.lstrip("/")

    def text(self, path: str) -> Fact[str]:
        """Return the stripped contents of a file."""
        try:
            content = self.path(path).read_text(encoding="utf-8", errors="replace").strip("\x00 \n\t")
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
            return tuple(sorted(entry.name for entry in self.path(directory).iterdir()))
        except OSError:
            return ()

    def exists(self, path: str) -> bool:
        """Return whether a path is there and may be seen."""
        try:
            return self.path(path).exists()
        except OSError:
            return False

    def target(self, path: str) -> Path | None:
        """Return where a symbolic link leads, or None if it is not there."""
        try:
            return self.path(path).resolve(strict=True)
        except OSError:
            return None

    def command(self, *words: str, folder: str = "") -> Fact[str]:
        """Return what a command prints, missing if it is not installed, fails or hangs; who hangs is asked once.

        Args:
            words: the command and its arguments.
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
            place = f"{folder}/{words[0]}"
            if not folder or not self.exists(place):
                raise
            return self.run((place, *words[1:]), COMMAND_SECONDS)


def parse_pairs(text: str) -> dict[str, str]:
    """Return the ``key: value`` lines of a text, the first of equal keys."""
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            pairs.setdefault(key.strip(), value.strip())
    return pairs
