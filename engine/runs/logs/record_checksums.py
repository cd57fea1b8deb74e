"""Checksums of records in event files, of many at once: CRC-32C, rotated by 15 bits and shifted by a constant.

A checksum without its first value is linear over GF(2): zeros before a message leave it as it is, that of a message of
two halves is that of the first, followed by as many zeros as the second has bytes, and that of the second, added
without carry (Warren, Hacker's Delight, chapter 14). So messages are filled up with zeros to a power of two of bytes,
and their halves are joined in steps, all messages of a size at once. The first four bytes of a message stand for a
checksum of their own until four zeros have followed.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]
Places = NDArray[np.int64]

_CASTAGNOLI = 0x82F63B78
_MASK = 0xA282EAD8
_ONES = 0xFFFFFFFF
_HEAD = 12
_WINDOW = 1 << 16
"""Places that are looked at in one go: as many as the caches of a processor hold."""


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


def masked_checksum(data: bytes) -> int:
    """Return the checksum of a part of a record."""
    content = np.frombuffer(data, np.uint8)
    return int(checksums_of(content, np.array([0]), np.array([len(data)]))[0])


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
