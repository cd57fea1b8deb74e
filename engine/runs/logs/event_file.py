"""Event files of TensorBoard, read as they grow: numbers in records, whatever bytes stand between them.

A record of an event file is its length (8 bytes), a checksum of that (4), its content, and a checksum of the content
(4), little-endian. The checksum is CRC-32C, rotated by 15 bits and shifted by a constant (TensorFlow,
core/lib/io/record_writer.h and core/lib/hash/crc32c.h). All heads of a piece are looked for at once, and checksums are
taken of all its records at once, so that damaged bytes cost no more than sound ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]
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
_MOST_TAGS = 1 << 12  # of which a file's text is kept
_MOST_FIELDS = 12  # of an event, a value or a tensor, none of which has as many; a summary has as many as it has values
_FLOAT, _DOUBLE, _INT32, _INT64 = 1, 2, 3, 9  # numbers of types in tensors (tensorflow/core/framework/types.proto)
_PACKED = {_FLOAT: "<f4", _DOUBLE: "<f8", _INT32: "<i4", _INT64: "<i8"}
_WHOLE, _EIGHT, _LONG, _FOUR = 0, 1, 2, 5  # types of fields (protobuf.dev, Encoding): whole numbers, and bytes
_SIZES = np.array([0, 8, 0, -1, -1, 4, -1, -1])  # bytes of a field by its type; 0 where itself says it, -1 for no type
_NOWHERE = 1 << 62
_VALUE = 1 << 3 | _LONG  # begins a value of a summary


class Scalars(NamedTuple):
    """Numbers, each with the tag it was written under, its step and its time."""

    tags: list[str]
    values: list[float]
    steps: list[int]
    at_seconds: list[float]


class EventReader:
    """Finds numbers in the bytes of an event file, which come in any pieces."""

    def __init__(self) -> None:
        self.damaged = 0  # places where bytes were no records, and were passed over
        self._buffer = b""
        self._skip = 0
        self._lost = False

    def read(self, data: bytes) -> Scalars:
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

    def _scalars(self, buffer: bytes, starts: Places, lengths: Places) -> Scalars:
        """Return the numbers of records whose checksums are right."""
        content = np.frombuffer(buffer, np.uint8)
        is_sound = checksums_of(content, starts, lengths) == _unpacked(content, starts + lengths, "<u4")
        self.damaged += int((~is_sound).sum())
        with np.errstate(invalid="ignore"):  # damage may be a NaN that signals
            return _scalars(buffer, Messages(content, starts[is_sound], (starts + lengths)[is_sound]))


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


class Fields(NamedTuple):
    """A field of each of some messages."""

    messages: Places  # numbers of the messages they are of
    keys: Places  # number of a field and its type
    values: Places  # of whole numbers
    starts: Places  # where all others begin in the content
    sizes: Places  # bytes of these

    @classmethod
    def joined(cls, parts: Sequence[Fields]) -> Fields:
        """Return some fields, and then the others."""
        columns = zip(cls(*[np.zeros(0, np.int64)] * len(cls._fields)), *parts, strict=True)
        return cls(*map(np.concatenate, columns))

    def those(self, number: int, kind: int) -> Fields:
        """Return those of a number and a type."""
        return self.chosen(self.keys == (number << 3 | kind))

    def chosen(self, which: Flags) -> Fields:
        index = np.flatnonzero(which)
        return self if len(index) == len(which) else Fields(*(part[index] for part in self))


class Messages:
    """Messages of protocol buffers, read side by side: the first field of all, then the second, and so on."""

    def __init__(self, content: Bytes, starts: Places, ends: Places) -> None:
        self.content, self.starts, self.ends = content, starts, ends
        self.are_sound = np.ones(len(starts), np.bool_)  # as far as they were read

    def fields(self, most: int) -> Iterator[Fields]:
        """Yield the first fields of all that are sound yet, then the second ones, up to a number of them."""
        messages = np.flatnonzero(self.starts < self.ends)
        places = self.starts[messages]
        for _ in range(most):
            if not messages.size:
                return
            keys, places = self._whole_numbers(places)
            kinds, values = keys & 7, np.zeros(len(keys), np.int64)
            sizes = _SIZES[kinds]
            whole, long = np.flatnonzero(kinds == _WHOLE), np.flatnonzero(kinds == _LONG)
            values[whole], behind = self._whole_numbers(places[whole])
            sizes[whole] = behind - places[whole]
            sizes[long], places[long] = self._whole_numbers(places[long])
            is_sound = (keys >> 3 > 0) & (sizes >= 0) & (sizes <= self.ends[messages] - places)
            self.are_sound[messages[~is_sound]] = False
            fields = Fields(messages, keys, values, places, sizes).chosen(is_sound)
            yield fields
            places = fields.starts + fields.sizes
            going = np.flatnonzero((places < self.ends[fields.messages]) & self.are_sound[fields.messages])
            messages, places = fields.messages[going], places[going]

    def _whole_numbers(self, places: Places) -> tuple[Places, Places]:
        """Return numbers of seven bits in each byte, and where they end: nowhere, if they have too many."""
        numbers, ends = self.content.take(places, mode="clip").astype(np.int64), places + 1
        going = np.flatnonzero(numbers & 0x80)
        numbers &= 0x7F
        for shift in range(7, 70, 7):
            if not going.size:
                return numbers, ends
            following = self.content.take(ends[going], mode="clip").astype(np.int64)
            numbers[going] |= (following & 0x7F) << shift
            ends[going] += 1
            going = going[following >= 0x80]
        ends[going] = _NOWHERE
        return numbers, ends


def _unpacked(content: Bytes, starts: Places, form: str) -> NDArray[Any]:
    """Return the numbers of a form that begin at the given offsets."""
    count = max(len(content) - np.dtype(form).itemsize + 1, 0)
    return np.ndarray((count,), form, content.data, strides=(1,))[starts]


def _scalars(buffer: bytes, events: Messages) -> Scalars:
    """Return the numbers of Events: the time of one is field 1, its step 2, its summary 5."""
    at_seconds, steps = np.zeros(len(events.starts)), np.zeros(len(events.starts), np.int64)
    parts: list[Fields] = []
    for fields in events.fields(_MOST_FIELDS):
        times, counts = fields.those(1, _EIGHT), fields.those(2, _WHOLE)
        at_seconds[times.messages] = _unpacked(events.content, times.starts, "<f8")
        steps[counts.messages] = counts.values
        parts.append(fields.those(5, _LONG))
    summaries = Fields.joined(parts)
    summaries = summaries.chosen(events.are_sound[summaries.messages])
    values = _values(Messages(events.content, summaries.starts, summaries.starts + summaries.sizes))
    tags, numbers = _tagged(Messages(events.content, values.starts, values.starts + values.sizes))
    order = np.argsort(values.starts[tags.messages])
    tags, numbers = Fields(*(part[order] for part in tags)), numbers[order]
    owners = summaries.messages[values.messages[tags.messages]]
    bounds = zip(tags.starts.tolist(), (tags.starts + tags.sizes).tolist(), strict=True)
    texts = [_text(buffer[start:end]) for start, end in bounds]
    return Scalars(texts, numbers.tolist(), steps[owners].tolist(), at_seconds[owners].tolist())


@lru_cache(maxsize=_MOST_TAGS)
def _text(tag: bytes) -> str:
    return tag.decode("utf-8", "replace")


def _values(summaries: Messages) -> Fields:
    parts: list[Fields] = []
    for fields in summaries.fields(LONGEST_RECORD):
        are_values = (fields.keys == _VALUE) & (fields.sizes >= _SHORTEST_VALUE)
        summaries.are_sound[fields.messages[~are_values]] = False
        parts.append(fields)
    values = Fields.joined(parts)
    return values.chosen(summaries.are_sound[values.messages])


def _tagged(values: Messages) -> tuple[Fields, Numbers]:
    """Return tags and numbers of those values of summaries that have one: tag is field 1, number 2, tensor 8."""
    tags = Fields(np.arange(len(values.starts)), *np.zeros((4, len(values.starts)), np.int64))
    numbers, are_numbers = np.zeros(len(values.starts)), np.zeros(len(values.starts), np.bool_)
    for fields in values.fields(_MOST_FIELDS):
        names, plain, tensors = fields.those(1, _LONG), fields.those(2, _FOUR), fields.those(8, _LONG)
        tags.starts[names.messages], tags.sizes[names.messages] = names.starts, names.sizes
        numbers[plain.messages] = _unpacked(values.content, plain.starts, "<f4")
        ones, held = _tensor_numbers(Messages(values.content, tensors.starts, tensors.starts + tensors.sizes))
        numbers[tensors.messages[ones]] = held
        are_numbers[plain.messages] = are_numbers[tensors.messages[ones]] = True
    are_numbers &= values.are_sound
    return tags.chosen(are_numbers), numbers[are_numbers]


def _tensor_numbers(tensors: Messages) -> tuple[Places, Numbers]:
    """Return which tensors hold one number, and these: a type is field 1, raw bytes 4, floats 5, doubles 6."""
    count = len(tensors.starts)
    kinds, starts, sizes = (np.zeros(count, np.int64) for _ in range(3))
    for fields in tensors.fields(_MOST_FIELDS):
        types = fields.those(1, _WHOLE)
        kinds[types.messages] = types.values
        held = fields.chosen(np.isin(fields.keys >> 3, (4, 5, 6)))
        starts[held.messages], sizes[held.messages] = held.starts, held.sizes
    ones, numbers = [np.zeros(0, np.int64)], [np.zeros(0)]
    for kind, form in _PACKED.items():
        ones.append(np.flatnonzero((kinds == kind) & (sizes == np.dtype(form).itemsize) & tensors.are_sound))
        numbers.append(_unpacked(tensors.content, starts[ones[-1]], form))
    return np.concatenate(ones), np.concatenate(numbers)
