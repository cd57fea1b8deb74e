"""Made-up patterns like those that a corpus is learned into: words by Zipf's law under a name of their content."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

VOCABULARY = 50_000
"""Different words; the first is drawn most often, by Zipf's law with exponent one."""
MOST_FREQUENT = 100_000
"""How often the first pattern of a level occurs; that of rank r an r-th of this, once at least."""
LEVELS = 4
_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern.

    Attributes:
        name: forty hexadecimal digits that stand for its content.
        level: of the hierarchy, from 0.
        frequency: how often it occurred.
        words: what it holds.
    """

    name: str
    level: int
    frequency: int
    words: tuple[str, ...]

    @property
    def content_bytes(self) -> int:
        """Bytes of what it says, words parted by one character, without what a database adds."""
        return len(self.name) + 2 * _NUMBER_BYTES + sum(map(len, self.words)) + len(self.words) - 1


def name_of(number: int) -> str:
    """Return the name of a pattern by its number."""
    return hashlib.sha1(f"pattern {number}".encode(), usedforsecurity=False).hexdigest()


def patterns(first: int, count: int, chunk: int) -> Iterator[Pattern]:
    """Yield patterns by their numbers, the same ones at any time and in any portions.

    Args:
        first: number of the first.
        count: how many.
        chunk: words of each.
    """
    for number in range(first, first + count):
        drawn = random.Random(number)  # noqa: S311 - any words by that law will do
        words = tuple(f"word{int(VOCABULARY ** drawn.random())}" for _ in range(chunk))
        yield Pattern(name_of(number), number % LEVELS, max(1, MOST_FREQUENT // (number // LEVELS + 1)), words)
