"""Files that another program writes, read as they grow: text, and TensorBoard's event files.

A record of an event file is its length (8 bytes), a checksum of that (4), its content, and a checksum of the content
(4), little-endian. The checksum is CRC-32C, rotated by 15 bits and shifted by a constant (TensorFlow,
core/lib/io/record_writer.h and core/lib/hash/crc32c.h).
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from capacity_tui.engine.record import dataclass

MOST_BYTES = 1 << 23
"""Bytes taken in one go, so that a long log does not block the watcher."""
HEAD_BYTES = 256
LARGEST_DOCUMENT = 1 << 26
"""Bytes of a file that is read whole; a larger one is no log of a run."""


class FollowedFile:
    """New bytes of a file, with each read.

    Attributes:
        notices: what happened to the file, in words, since they were last taken.
        restarts: how often its content began again.

    Args:
        path: the file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notices: list[str] = []
        self.restarts = 0
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
    """Open a regular file to read, and return what it is; a pipe or device would block the reader.

    Raises:
        OSError: it cannot be opened, or is no log file.
    """
    opened = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    status = os.fstat(opened.fileno())
    if not stat.S_ISREG(status.st_mode):
        opened.close()
        raise OSError(errno.EINVAL, "it is not a regular file")
    return opened, status


def whole_file(path: Path, most: int = LARGEST_DOCUMENT) -> bytes:
    """Return what a file holds.

    Raises:
        OSError: it cannot be read, is no regular file, or holds more bytes than that.
    """
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


_CASTAGNOLI = 0x82F63B78
_MASK = 0xA282EAD8
_HEADER, _FOOTER = 12, 4
LONGEST_RECORD = 1 << 16
"""Bytes of a record that is looked into; longer ones hold pictures and graphs."""
_ZEROS, _WRITTEN = bytes(4), re.compile(rb"[^\0]")
_FLOAT, _DOUBLE, _INT32, _INT64 = 1, 2, 3, 9  # numbers of types in tensors (tensorflow/core/framework/types.proto)
_PACKED = {_FLOAT: "f", _DOUBLE: "d", _INT32: "i", _INT64: "q"}


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number that was written under a tag."""

    tag: str
    value: float
    step: int
    at_seconds: float


class EventReader:
    """Finds numbers in the bytes of an event file, which come in any pieces.

    Attributes:
        damaged: places where bytes were no records, and were passed over.
    """

    def __init__(self) -> None:
        self.damaged = 0
        self._buffer = b""
        self._skip = 0
        self._lost = False

    def read(self, data: bytes) -> list[Scalar]:
        """Return the numbers of the records that are complete by now."""
        if self._skip:
            passed = min(self._skip, len(data))
            self._skip -= passed
            data = data[passed:]
        buffer, position = self._buffer + data, 0
        scalars: list[Scalar] = []
        while len(buffer) - position >= _HEADER:
            length = _length(buffer, position)
            if length is None:
                position = _next_head(buffer, position + 1)
                self.damaged += not self._lost
                self._lost = True
                continue
            self._lost = False
            end = position + _HEADER + length + _FOOTER
            if length > LONGEST_RECORD:
                self._skip = max(0, end - len(buffer))
                position = min(end, len(buffer))
                continue
            if end > len(buffer):
                break
            content = buffer[position + _HEADER : end - _FOOTER]
            if struct.unpack_from("<I", buffer, end - _FOOTER)[0] == masked_checksum(content):
                scalars += _scalars(content)
            else:
                self.damaged += 1
            position = end
        self._buffer = buffer[position:]
        return scalars


def masked_checksum(data: bytes) -> int:
    """Return the checksum of a part of a record."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


def _table() -> tuple[int, ...]:
    checksums = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ _CASTAGNOLI if crc & 1 else crc >> 1
        checksums.append(crc)
    return tuple(checksums)


_TABLE = _table()


def _next_head(buffer: bytes, position: int) -> int:
    """Return the first place from one on where a record may begin: its length is not 0, and less than 4 GiB.

    Where there is none, that is the first place of which too little is known.
    """
    while (upper := buffer.find(_ZEROS, position + 4)) >= 0:
        if buffer[upper - 4 : upper] != _ZEROS:
            return upper - 4
        written = _WRITTEN.search(buffer, upper)
        if written is None:
            break
        position = max(upper - 3, written.start() - 3)
    return max(position, len(buffer) - _HEADER + 1)


def _length(buffer: bytes, position: int) -> int | None:
    """Return the length of the record at a place; None where there is none."""
    length, checksum = struct.unpack_from("<QI", buffer, position)
    return int(length) if masked_checksum(buffer[position : position + 8]) == checksum else None


def _scalars(content: bytes) -> Iterator[Scalar]:
    """Yield the numbers of an Event: its time is field 1, its step 2, its summary 5."""
    at_seconds, step, summaries = 0.0, 0, []
    try:
        for field, value in _fields(content):
            if field == 1 and isinstance(value, bytes):
                at_seconds = struct.unpack("<d", value)[0]
            elif field == 2 and isinstance(value, int):
                step = value
            elif field == 5 and isinstance(value, bytes):
                summaries.append(value)
        values = [field_value for summary in summaries for number, field_value in _fields(summary) if number == 1]
        for value in values:
            if isinstance(value, bytes) and (tagged := _tagged(value)) is not None:
                yield Scalar(tagged[0], tagged[1], step, at_seconds)
    except (ValueError, IndexError, struct.error):
        return


def _tagged(content: bytes) -> tuple[str, float] | None:
    """Return tag and number of a Summary.Value: tag is field 1, a plain number 2, a tensor 8."""
    tag, number = "", None
    for field, value in _fields(content):
        if field == 1 and isinstance(value, bytes):
            tag = value.decode("utf-8", "replace")
        elif field == 2 and isinstance(value, bytes) and len(value) == 4:
            number = float(struct.unpack("<f", value)[0])
        elif field == 8 and isinstance(value, bytes):
            number = _tensor_number(value)
    return None if number is None else (tag, number)


def _tensor_number(content: bytes) -> float | None:
    """Return the number in a tensor of one: its type is field 1, raw bytes 4, floats 5, doubles 6."""
    kind, raw = 0, None
    for field, value in _fields(content):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field in (4, 5, 6) and isinstance(value, bytes):
            raw = value
    form = _PACKED.get(kind)
    if form is None or raw is None or len(raw) != struct.calcsize(form):
        return None
    return float(struct.unpack(f"<{form}", raw)[0])


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of the fields of a message.

    Raises:
        ValueError: the content is no message.
        IndexError: it ends within a number.
    """
    position = 0
    while position < len(content):
        key, position = _varint(content, position)
        field, wire = key >> 3, key & 7
        if wire == 0:
            number, position = _varint(content, position)
            yield field, number
            continue
        if wire == 2:
            length, position = _varint(content, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"no wire type {wire}")
        if position + length > len(content):
            raise ValueError("a field is longer than its message")
        yield field, content[position : position + length]
        position += length


def _varint(content: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = content[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return number, position
        if shift > 63:
            raise ValueError("a number has too many bytes")
