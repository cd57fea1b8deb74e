"""Tokens of a text or of a file of numbers, read block by block, each as 64 bits that stand for it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from hashlib import blake2b
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.files import reading, reading_error
from capacity_tui.engine.record import dataclass

STANDARD_INPUT = "-"
NUMBER_TYPES = ("uint16", "uint32", "int32", "int64")
SENTENCE_ENDS = (".", "!", "?")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_BLOCK_CHARACTERS = 1 << 20
_BLOCK_NUMBERS = 1 << 18
_PROBE_BYTES = 4096
_MOST_REMEMBERED = 1 << 19
Hashes = NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LONGEST_SENTENCE = 4096


def mixed(values: Hashes) -> Hashes:
    """Return values with every bit depending on every other; different values stay different.

    Source: the finalizer of SplitMix64, Steele, Lea, Flood 2014.
    """
    values = values + _ODD
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))


def hashed_pieces(values: Hashes, starts: NDArray[np.intp]) -> Hashes:
    """Return what stands for each piece of a row of values: a polynomial over their places, so that order counts."""
    if not len(starts):
        return values[:0]
    lengths = np.diff(starts, append=len(values))
    places = np.arange(len(values)) - np.repeat(starts, lengths)
    powers = np.cumprod(np.full(int(lengths.max()), _ODD, dtype=np.uint64))
    sums = np.add.reduceat(mixed(values) * powers[places], starts)
    return mixed(sums ^ mixed(lengths.astype(np.uint64)))


class Chunks:
    """Pieces of the same length; the last of a document may be shorter."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._rest: Hashes = np.empty(0, dtype=np.uint64)

    def cut(self, values: Hashes, ends: bool) -> Hashes:
        """Return what stands for the pieces that are complete; all that is left where the document ends."""
        values = np.concatenate((self._rest, values)) if len(self._rest) else values
        whole = len(values) if ends else len(values) // self._length * self._length
        self._rest = values[whole:]
        return hashed_pieces(values[:whole], np.arange(0, whole, self._length))


class Sentences:
    """Pieces that end with a full stop or the like, or with the document."""

    def __init__(self, ends: Hashes) -> None:
        self._ends = ends
        self._rest: Hashes = np.empty(0, dtype=np.uint64)

    def cut(self, values: Hashes, ends: bool) -> Hashes:
        """Return what stands for the pieces that are complete; all that is left where the document ends."""
        values = np.concatenate((self._rest, values)) if len(self._rest) else values
        after = np.flatnonzero(np.isin(values, self._ends)) + 1
        if ends or (len(values) - (after[-1] if len(after) else 0)) > _LONGEST_SENTENCE:
            after = (
                np.append(after, len(values))
                if len(values) and not (len(after) and after[-1] == len(values))
                else after
            )
        whole = int(after[-1]) if len(after) else 0
        self._rest = values[whole:]
        return hashed_pieces(values[:whole], np.concatenate(([0], after[:-1])).astype(np.intp) if whole else after)


@dataclass(slots=True)
class Read:
    """What was read by now."""

    files: int = 0  # read, in part or whole
    documents: int = 0  # texts; a file of JSON lines has one a line
    bytes: int = 0
    total_bytes: int = 0  # of all files; 0 for standard input
    skipped: list[Path] = field(default_factory=list)  # files that hold neither text nor numbers


Block = tuple[Hashes, bool]  # Tokens of a document, and whether the document ends with them


class Corpus:
    """The tokens of a file, of all files below a folder, or of standard input.

    Text is taken apart into words and signs. Files that end with ``.jsonl`` have a text a line, under ``text`` or as
    the line itself; ``.npy`` and, with ``numbers``, any other file holds tokens as numbers.

    Args:
        source: a path, or ``-``.
        numbers: type of the numbers in files that hold nothing else.

    Raises:
        StorageError: there is nothing to read, or numbers are to come from standard input.
    """

    def __init__(self, source: str, numbers: str | None = None) -> None:
        if numbers is not None and source == STANDARD_INPUT:
            raise StorageError("standard input is read as text", hint="write the numbers into a file and name it")
        self._numbers = numbers
        self._files = _files_of(source)
        self._hashes = _TokenHashes()
        self.read = Read(total_bytes=sum(file.stat().st_size for file in self._files))
        self.sentence_ends: Hashes = np.array([self._hashes[sign] for sign in SENTENCE_ENDS], dtype=np.uint64)

    @property
    def has_sentences(self) -> bool:
        return self._numbers is None and not all(file.suffix == ".npy" for file in self._files or [Path()])

    def blocks(self) -> Iterator[Block]:
        """Yield the tokens in blocks; a document ends with its last; raises StorageError if a file cannot be read."""
        if not self._files:
            yield from self._document(_characters(sys.stdin.buffer, self._count))
        for file in self._files:
            with reading(file):
                yield from self._blocks_of(file)

    def _blocks_of(self, file: Path) -> Iterator[Block]:
        self.read.files += 1
        if file.suffix == ".npy":
            yield from self._numbers_in(np.load(file, mmap_mode="r", allow_pickle=False).ravel())
        elif self._numbers is not None:
            whole = file.stat().st_size // np.dtype(self._numbers).itemsize
            if whole:
                yield from self._numbers_in(np.memmap(file, dtype=self._numbers, mode="r", shape=(whole,)))
        else:
            with file.open("rb") as opened:
                if b"\0" in opened.read(_PROBE_BYTES):
                    self.read.files -= 1
                    self.read.skipped.append(file)
                    self._count(file.stat().st_size)
                    return
                opened.seek(0)
                yield from self._texts_in(opened, lines=file.suffix == ".jsonl")

    def _texts_in(self, opened: BinaryIO, lines: bool) -> Iterator[Block]:
        if not lines:
            yield from self._document(_characters(opened, self._count))
            return
        for line in opened:
            self._count(len(line))
            if line.strip():
                yield from self._document(_characters(BytesIO(_text_of(line).encode()), lambda _: None))

    def _document(self, texts: Iterator[str]) -> Iterator[Block]:
        self.read.documents += 1
        rest = ""
        for text in texts:
            whole, rest = _cut_between_tokens(rest + text)
            yield self._hashed(whole), False
        yield self._hashed(rest), True

    def _hashed(self, text: str) -> Hashes:
        words = _TOKEN.findall(text)
        return np.fromiter(map(self._hashes.__getitem__, words), dtype=np.uint64, count=len(words))

    def _numbers_in(self, numbers: NDArray[np.integer]) -> Iterator[Block]:
        if not np.issubdtype(numbers.dtype, np.integer):
            raise ValueError("holds no whole numbers")
        self.read.documents += 1
        for start in range(0, len(numbers), _BLOCK_NUMBERS):
            block = np.asarray(numbers[start : start + _BLOCK_NUMBERS])
            self._count(block.nbytes)
            yield mixed(block.astype(np.int64).view(np.uint64)), start + _BLOCK_NUMBERS >= len(numbers)

    def _count(self, read: int) -> None:
        self.read.bytes += read


class _TokenHashes(dict[str, int]):
    """64 bits for each token, the same in every run; forgets all when it has grown too large."""

    def __missing__(self, token: str) -> int:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        result = int.from_bytes(blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
        self[token] = result
        return result


def _files_of(source: str) -> Sequence[Path]:
    """Return the files of a source in order; none for standard input."""
    if source == STANDARD_INPUT:
        return ()
    path = Path(source)
    try:
        files = (file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
        values = sorted(files) if path.is_dir() else [path.resolve(strict=True)]
    except (OSError, RuntimeError, ValueError) as error:
        raise reading_error(error, path) from error
    if not values or not values[0].is_file():
        what = "holds no files" if path.is_dir() else "is no file: a pipe is read as -"
        raise StorageError(what, hint="name a text file, or a folder of them", place=Place(source))
    return values


def _characters(opened: BinaryIO, count: Callable[[int], None]) -> Iterator[str]:
    """Yield a text in blocks; what is not UTF-8 stands as the sign for that."""
    text = TextIOWrapper(opened, encoding="utf-8", errors="replace", newline="")
    try:
        while block := text.read(_BLOCK_CHARACTERS):
            count(len(block.encode("utf-8", "replace")))
            yield block
    finally:
        text.detach()


def _cut_between_tokens(text: str) -> tuple[str, str]:
    """Return a text up to its last space, and the rest, which may go on with the next block."""
    place = max(text.rfind(" "), text.rfind("\n"))
    return (text, "") if place < 0 and len(text) > _BLOCK_CHARACTERS else (text[: place + 1], text[place + 1 :])


def _text_of(line: bytes) -> str:
    """Return the text of a line of JSON: the value under ``text``, a line that is a text, else the line as it is."""
    try:
        result = json.loads(line)
    except ValueError:
        return line.decode("utf-8", "replace")
    if isinstance(result, dict) and isinstance(result.get("text"), str):
        return str(result["text"])
    return result if isinstance(result, str) else line.decode("utf-8", "replace")


_BUFFERED = 1 << 18
_HEAD = 4096
_ALL = 1 << 64
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each kind came, the most frequent first."""

    occurrences: int
    counts: Counts  # of the kinds that were kept
    stands_for: NDArray[np.float64]  # for how many kinds each of them stands: 1 where all are kept
    rate: float  # share of the rarer kinds that were kept

    @property
    def distinct(self) -> float:
        """Different kinds; estimated where they were sampled."""
        return float(np.sum(self.stands_for))

    @property
    def relative_error(self) -> float:
        """Standard deviation of that number over itself: 0 where all were kept.

        Each of the rarer kinds is kept or not by its own hash, so that their number is binomial.
        """
        sampled = np.count_nonzero(self.stands_for > 1.0)
        return float(np.sqrt(sampled * (1.0 - self.rate)) / self.rate / self.distinct) if sampled else 0.0


class Counter:
    """Counts hashes. Kinds are kept whole or not at all, so that every count that is kept is exact.

    When there are too many kinds, those of the lower half of all hashes are kept, and the most frequent ones, then
    those of the lower quarter, and so on (Gibbons 2001, distinct sampling).
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: Hashes = np.empty(0, dtype=np.uint64)
        self._counts: Counts = np.empty(0, dtype=np.int64)
        self._buffer: list[Hashes] = []
        self._buffered = 0
        self._below = _ALL
        self._occurrences = 0

    def add(self, hashes: Hashes) -> None:
        """Count some more."""
        self._occurrences += len(hashes)
        self._buffered += len(hashes)
        self._buffer.append(hashes)
        if self._buffered >= _BUFFERED:
            self._merge()

    def tally(self) -> Tally:
        self._merge()
        order = np.argsort(-self._counts, kind="stable")
        rate = self._below / _ALL
        stands_for = np.ones(len(order))
        if rate < 1.0:
            stands_for[(self._sampled(self._keys) & ~self._in_head())[order]] = 1.0 / rate
        return Tally(self._occurrences, self._counts[order], stands_for, rate)

    def _merge(self) -> None:
        if not self._buffer:
            return
        result, times = np.unique(np.concatenate(self._buffer), return_counts=True)
        self._buffer, self._buffered = [], 0
        places = np.searchsorted(self._keys, result)
        known = np.zeros(len(result), dtype=np.bool_)
        inside = places < len(self._keys)
        known[inside] = self._keys[places[inside]] == result[inside]
        self._counts[places[known]] += times[known]
        new = ~known & self._sampled(result)
        self._keys = np.insert(self._keys, places[new], result[new])
        self._counts = np.insert(self._counts, places[new], times[new])
        while len(self._keys) > self._most:
            self._below >>= 1
            stay = self._sampled(self._keys) | self._in_head()
            self._keys, self._counts = self._keys[stay], self._counts[stay]

    def _sampled(self, keys: Hashes) -> NDArray[np.bool_]:
        return keys <= np.uint64(self._below - 1)

    def _in_head(self) -> NDArray[np.bool_]:
        """Return which kinds are among the most frequent."""
        head = np.zeros(len(self._counts), dtype=np.bool_)
        size = min(_HEAD, self._most // 4, len(head))
        if size:
            head[np.argpartition(-self._counts, size - 1)[:size]] = True
        return head
