"""Files that another program writes, read as they grow, and their lines."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 1 << 23  # Bytes taken in one go, so that a long log does not block the watcher
HEAD_BYTES = 256
LARGEST_DOCUMENT = 1 << 26  # Bytes of a file that is read whole; a larger one is no log of a run


class FollowedFile:
    """New bytes of a file, which need not exist yet, with each read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notices: list[str] = []  # what happened to the file, in words, since they were last taken
        self.restarts = 0  # how often its content began again
        self._file: BinaryIO | None = None
        self._identity = (0, 0)
        self._head = b""
        self._position = 0
        self._reported_missing = False

    def read(self) -> bytes:
        """Return what was added, at most ``MOST_BYTES``; nothing where nothing was, or the file cannot be read now."""
        file = self._file or self._open()
        if file is None:
            return b""
        try:
            if self._began_again(file):
                self._start_over(f"{self.path.name} was rewritten, and is read from its start")
            data = self._read_on(file)
            if not data and self._replaced():
                self.close()
                file = self._open()
                if file is not None:
                    self._start_over(f"{self.path.name} was replaced, and the new file is read")
                    data = self._read_on(file)
        except OSError as error:
            self._tell(f"{self.path.name} cannot be read now: {error.strerror or error}")
            self.close()
            return b""
        return data

    def close(self) -> None:
        """Close the file; the next read opens it again, where it left off if it is the same."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO | None:
        try:
            opened, status = opened_file(self.path)
        except OSError as error:
            if not self._reported_missing:
                self._tell(f"waiting for {self.path.name}: {error.strerror or error}")
                self._reported_missing = True
            return None
        identity = (status.st_dev, status.st_ino)
        if identity != self._identity:
            self._identity, self._position, self._head = identity, 0, b""
        self._file, self._reported_missing = opened, False
        return opened

    def _read_on(self, file: BinaryIO) -> bytes:
        file.seek(self._position)
        data = file.read(MOST_BYTES)
        if len(self._head) < HEAD_BYTES and self._position == len(self._head):
            self._head += data[: HEAD_BYTES - len(self._head)]
        self._position += len(data)
        return data

    def _began_again(self, file: BinaryIO) -> bool:
        """Return whether the file is shorter than what was read, or starts with something else."""
        if os.fstat(file.fileno()).st_size < self._position:
            return True
        file.seek(0)
        return file.read(len(self._head)) != self._head

    def _replaced(self) -> bool:
        """Return whether another file has the name now; one that was moved away is read until there is one."""
        try:
            status = self.path.stat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) != self._identity

    def _start_over(self, notice: str) -> None:
        self._position, self._head = 0, b""
        self.restarts += 1
        self._tell(notice)

    def _tell(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)


def opened_file(path: Path) -> tuple[BinaryIO, os.stat_result]:
    """Open a regular file to read, and return what it is; OSError for a pipe or device, which would block."""
    opened = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    status = os.fstat(opened.fileno())
    if not stat.S_ISREG(status.st_mode):
        opened.close()
        raise OSError(errno.EINVAL, "it is not a regular file")
    return opened, status


def whole_file(path: Path, most: int = LARGEST_DOCUMENT) -> bytes:
    """Return what a file holds; raises OSError where it cannot be read, is no regular file, or holds more bytes."""
    opened, status = opened_file(path)
    with opened:
        if status.st_size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB")
        return opened.read(most)


class LineSplitter:
    """Makes lines of bytes that come in any pieces; progress bars that overwrite themselves are a line each time.

    Args:
        longest: bytes of a line that are kept; the rest of it is dropped.
    """

    def __init__(self, longest: int = 1 << 20) -> None:
        self._longest = longest
        self._buffer = b""
        self._dropping = False

    def split(self, data: bytes) -> list[str]:
        """Return the lines that are complete by now."""
        *complete, tail = (self._buffer + data).replace(b"\r", b"\n").split(b"\n")
        if self._dropping and complete:
            complete[0] = b""
            self._dropping = False
        if len(tail) > self._longest:
            if not self._dropping:
                complete.append(tail[: self._longest])
            tail, self._dropping = b"", True
        elif self._dropping:
            tail = b""
        self._buffer = tail
        return [line[: self._longest].decode("utf-8", "replace") for line in complete if line]

    def rest(self) -> list[str]:
        """Return the last line, which nothing ended yet, and forget it."""
        last, self._buffer = self._buffer, b""
        return [last.decode("utf-8", "replace")] if last else []
