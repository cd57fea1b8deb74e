"""Event files of TensorBoard, read as they grow: numbers in records, whatever bytes stand between them.

A record of an event file is its length (8 bytes), a checksum of that (4), its content, and a checksum of the content
(4), little-endian. The checksum is CRC-32C, rotated by 15 bits and shifted by a constant (TensorFlow,
core/lib/io/record_writer.h and core/lib/hash/crc32c.h). All heads of a piece are looked for at once, and checksums are
taken of all its records at once, so that damaged bytes cost no more than sound ones.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.record import dataclass

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]
Places = NDArray[np.int64]

_CASTAGNOLI = 0x82F63B78
_MASK = 0xA282EAD8
_ONES = 0xFFFFFFFF
_HEAD = 12
_WINDOW = 1 << 16  # Places that are looked at in one go: as many as the caches of a processor hold


def heads_in(content: Bytes, least: int) -> tuple[Places, Places]:
    """Return the places where a length stands with its checksum, from ``least`` to 4 GiB, and these lengths."""
    first = _first_values(3)[8]
    heads: list[Places] = [np.zeros(0, np.int64)]
    lengths: list[Words] = [np.zeros(0, np.uint32)]
    for start in range(0, max(len(content) - _HEAD + 1, 0), _WINDOW):
        window = content[start : start + _WINDOW + _HEAD - 1]
        count = len(window) - _HEAD + 1
        words = np.ndarray((count + 8,), "<u4", window.data, strides=(1,)).copy()
        places = np.flatnonzero((words[4:-4] == 0) & (words[:-8] >= least))
        length, written = words[places], words[places + 8]
        is_head = _masked(_followed(length, 8) ^ first) == written
        heads.append(places[is_head] + start)
        lengths.append(length[is_head])
    return np.concatenate(heads), np.concatenate(lengths).astype(np.int64)


def checksums_of(content: Bytes, starts: Places, lengths: Places) -> Words:
    """Return the checksums of parts of some content.

    Args:
        content: bytes.
        starts: where the parts begin.
        lengths: their bytes.
    """
    checksums = np.zeros(len(starts), np.uint32)
    exponents = np.ceil(np.log2(np.maximum(lengths, 4))).astype(np.int64)
    for exponent in np.flatnonzero(np.bincount(exponents)).tolist():
        chosen, size = np.flatnonzero(exponents == exponent), 1 << exponent
        filled = np.concatenate([np.zeros(size, np.uint8), content])
        windows = np.lib.stride_tricks.sliding_window_view(filled, size)
        most = max(_WINDOW // size, 1)
        for part in (chosen[first : first + most] for first in range(0, len(chosen), most)):
            rows = windows[starts[part] + lengths[part]]
            rows[np.arange(size) < size - lengths[part, np.newaxis]] = 0
            checksums[part] = _joined(rows)
    return _masked(checksums ^ _first_values(int(exponents.max(initial=0)))[lengths])


def _joined(rows: Bytes) -> Words:
    """Return the checksums of rows of a power of two of bytes, from 4, without their first values."""
    state: Words = rows.view("<u4")
    half = 4
    while state.shape[1] > 1:
        state = _followed(state[:, ::2], half) ^ state[:, 1::2]
        half *= 2
    return _followed(state[:, 0], 4)


def _masked(checksum: Words) -> Words:
    """Return checksums as they are written."""
    return np.asarray(((checksum >> 15) | (checksum << 17)) + np.uint32(_MASK), np.uint32)


def _followed(checksum: Words, zeros: int) -> Words:
    """Return checksums of what is followed by a power of two of zeros."""
    low, high = _zeros(zeros)
    return np.asarray(low[checksum & 0xFFFF] ^ high[checksum >> 16])


@cache
def _zeros(count: int) -> tuple[Words, Words]:
    """Return by both of its halves what a checksum is when a power of two of zeros has followed."""
    every = np.arange(1 << 16, dtype=np.uint32)
    if count > 1:
        return _followed(_zeros(count // 2)[0], count // 2), _followed(_zeros(count // 2)[1], count // 2)
    byte = every[:256]
    for _ in range(8):
        byte = np.where(byte & 1, (byte >> 1) ^ np.uint32(_CASTAGNOLI), byte >> 1)
    return np.asarray(byte[every & 0xFF] ^ (every >> 8)), np.asarray(every << 8, np.uint32)


@cache
def _first_values(exponent: int) -> Words:
    """Return what ones before and after a message make of its checksum, by its bytes, up to a power of two."""
    values = np.array([_ONES], np.uint32)
    for power in range(exponent + 1):
        values = np.concatenate([values, _followed(values, 1 << power)])
    return values ^ np.uint32(_ONES)


_HEADER, _FOOTER = 12, 4
LONGEST_RECORD = 1 << 16  # Bytes of a record that is looked into; longer ones hold pictures and graphs
_SHORTEST = 9  # bytes of an event's time, which each has
_SHORTEST_VALUE = 5  # bytes of a number alone: a value of a summary has a tag beside it
_MOST_FIELDS = 12  # of an event, a value or a tensor, none of which has as many; a summary has as many as it has values
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
    """Finds numbers in the bytes of an event file, which come in any pieces."""

    def __init__(self) -> None:
        self.damaged = 0  # places where bytes were no records, and were passed over
        self._buffer = b""
        self._skip = 0
        self._lost = False

    def read(self, data: bytes) -> list[Scalar]:
        """Return the numbers of the records that are complete by now."""
        passed = min(self._skip, len(data))
        self._skip -= passed
        buffer = self._buffer + data[passed:]
        heads, lengths = _records(np.frombuffer(buffer, np.uint8))
        ends = heads + lengths + (_HEADER + _FOOTER)
        gaps = heads != np.concatenate([[0], ends[:-1]])
        if heads.size:
            self.damaged += int(gaps.sum()) - (self._lost and bool(gaps[0]))
            self._lost = False
        position = int(ends[-1]) if heads.size else 0
        if position > len(buffer):
            # The last record is not there to its end.
            is_long = int(lengths[-1]) > LONGEST_RECORD
            self._skip = position - len(buffer) if is_long else 0
            position = len(buffer) if is_long else int(heads[-1])
            heads, lengths = heads[:-1], lengths[:-1]
        elif len(buffer) - position >= _HEADER:
            self.damaged += not self._lost
            self._lost = True
            position = len(buffer) - _HEADER + 1
        self._buffer = buffer[position:]
        short = lengths <= LONGEST_RECORD
        return self._scalars(buffer, heads[short] + _HEADER, lengths[short])

    def _scalars(self, buffer: bytes, starts: Places, lengths: Places) -> list[Scalar]:
        """Return the numbers of records whose checksums are right."""
        content = np.frombuffer(buffer, np.uint8)
        written = content[(starts + lengths)[:, np.newaxis] + np.arange(_FOOTER)].view("<u4").ravel()
        sound = checksums_of(content, starts, lengths) == written
        self.damaged += int((~sound).sum())
        pairs = zip(starts[sound].tolist(), lengths[sound].tolist(), strict=True)
        return [scalar for start, length in pairs for scalar in _scalars(buffer[start : start + length])]


def _records(content: Bytes) -> tuple[Places, Places]:
    """Return where records begin, each behind the end of the one before, and their lengths."""
    heads, lengths = heads_in(content, _SHORTEST)
    following = np.searchsorted(heads, heads + lengths + (_HEADER + _FOOTER)).tolist()
    index, count, records = 0, len(following), list[int]()
    while index < count:
        records.append(index)
        index = following[index]
    places = np.array(records, np.int64)
    return heads[places], lengths[places]


def _scalars(content: bytes) -> Iterator[Scalar]:
    """Yield the numbers of an Event: its time is field 1, its step 2, its summary 5."""
    at_seconds, step, summaries = 0.0, 0, []
    try:
        for field, value in islice(_fields(content), _MOST_FIELDS):
            if field == 1 and isinstance(value, bytes):
                at_seconds = struct.unpack("<d", value)[0]
            elif field == 2 and isinstance(value, int):
                step = value
            elif field == 5 and isinstance(value, bytes):
                summaries.append(value)
        for value in [value for summary in summaries for value in _values(summary)]:
            if (tagged := _tagged(value)) is not None:
                yield Scalar(tagged[0], tagged[1], step, at_seconds)
    except (ValueError, IndexError, struct.error):
        return


def _values(summary: bytes) -> Iterator[bytes]:
    """Yield the values of a Summary, which has no other field.

    Raises:
        ValueError: it has one, or a value that holds nothing, so that it is none.
    """
    for number, value in _fields(summary):
        if number != 1 or not isinstance(value, bytes) or len(value) < _SHORTEST_VALUE:
            raise ValueError("no summary")
        yield value


def _tagged(content: bytes) -> tuple[str, float] | None:
    """Return tag and number of a Summary.Value: tag is field 1, a plain number 2, a tensor 8."""
    tag, number = "", None
    for field, value in islice(_fields(content), _MOST_FIELDS):
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
    for field, value in islice(_fields(content), _MOST_FIELDS):
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
        if not field:
            raise ValueError("fields count from 1")
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
