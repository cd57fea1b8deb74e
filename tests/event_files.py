"""Event files of TensorBoard, as their writers make them."""

from __future__ import annotations

import struct

import numpy as np

from capacity_tui.engine.runs.logs.event_file import checksums_of


def masked_checksum(data: bytes) -> int:
    """Return the checksum of a part of a record."""
    content = np.frombuffer(data, np.uint8)
    return int(checksums_of(content, np.array([0]), np.array([len(data)]))[0])


def head(length: int) -> bytes:
    """Return the length of a record with its checksum."""
    written = struct.pack("<Q", length)
    return written + struct.pack("<I", masked_checksum(written))


def record(content: bytes) -> bytes:
    """Return content with its length and both checksums."""
    return head(len(content)) + content + struct.pack("<I", masked_checksum(content))


def field(number: int, content: bytes) -> bytes:
    """Return a field of a protocol buffer that holds bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def summary(content: bytes) -> bytes:
    """Return an event with a summary of any length, to 2 MiB."""
    size = len(content)
    return b"\x2a" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + content


def event(step: int, tag: str, value: float, *, tensor: bool = False) -> bytes:
    """Return the record of a scalar."""
    number = b"\x15" + struct.pack("<f", value)
    if tensor:
        number = field(8, b"\x08\x01" + field(4, struct.pack("<f", value)))
    summary = field(1, field(1, tag.encode()) + number)
    return record(b"\x09" + struct.pack("<d", 1.7e9 + step) + bytes([0x10, step]) + field(5, summary))
