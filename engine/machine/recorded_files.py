"""Files of another machine as they were recorded, held in memory: a server has thousands of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import PurePosixPath
from posixpath import dirname, join, normpath

from capacity_tui.engine.errors import HardwareError

_MOST_LINKS = 40
"""Links that one path may lead through, as Linux has it."""


class RecordedFiles:
    """The files of a machine, by their paths from its root; with the interface of files on disk.

    Args:
        links: where symbolic links to directories lead, from the root or from where the link lies.

    Raises:
        HardwareError: a path is not that of a file below a root.
    """

    def __init__(self, files: Mapping[str, str], links: Mapping[str, str]) -> None:
        for path in (*files, *links):
            if not path.startswith("/") or normpath(path) != path:
                raise HardwareError("a path of the recording leads elsewhere", path, "record the machine again")
        self._links = {link: normpath(join(dirname(link), target)) for link, target in links.items()}
        self._files = {self._resolved(path): text for path, text in files.items()}

    def read(self, path: str) -> bytes:
        """Return what a file holds; raises OSError."""
        resolved = self._resolved(path)
        if resolved not in self._files:
            raise _error(errno.EISDIR if resolved in self._folders else errno.ENOENT, path)
        return self._files[resolved].encode()

    def names(self, directory: str) -> Iterable[str]:
        """Return the names in a directory; raises OSError."""
        resolved = self._resolved(directory)
        if resolved not in self._folders:
            raise _error(errno.ENOENT, directory)
        return self._folders[resolved]

    def exists(self, path: str) -> bool:
        """Return whether a path is there; raises OSError."""
        resolved = self._resolved(path)
        return resolved in self._files or resolved in self._folders

    def target(self, path: str) -> PurePosixPath:
        """Return where a path leads, through symbolic links; raises OSError."""
        if not self.exists(path):
            raise _error(errno.ENOENT, path)
        return PurePosixPath(self._resolved(path))

    @cached_property
    def _folders(self) -> Mapping[str, set[str]]:
        """The names in each directory."""
        folders: dict[str, set[str]] = {"/": set()}

        def enter(path: str) -> None:
            folder = dirname(path)
            if folder not in folders:
                folders[folder] = set()
                enter(folder)
            folders[folder].add(path.rpartition("/")[2])

        for path in self._files:
            enter(path)
        for link in self._links:
            enter(join(self._resolved(dirname(link)), link.rpartition("/")[2]))
        for target in {self._resolved(link) for link in self._links} - {"/", *self._links}:
            folders.setdefault(target, set())
            enter(target)
        return folders

    def _resolved(self, path: str) -> str:
        """Return a path with no link in it; where links lead to each other, one where nothing is."""
        path = normpath(path)
        for _ in range(_MOST_LINKS):
            link = next((start for start in _starts(path) if start in self._links), None)
            if link is None:
                break
            path = normpath(self._links[link] + path[len(link) :])
        return path


def _starts(path: str) -> Iterable[str]:
    """Yield the directories above a path from the root on, and the path itself."""
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)
    yield path


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
