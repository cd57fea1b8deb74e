"""A line in words: what each of them was taken for, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from capacity_tui.engine.errors import PlanError

LONGEST_LINE = 400
"""Characters of a line that are read; a plan of more belongs into a file."""
# A word ends at a space, or at a comma, semicolon or colon before one; what stands in brackets belongs together.
_WORD = re.compile(r"(?:\d+\s*[x×*]\s*)?[^\s()]*\([^()]*\)?|[^\s]+", re.IGNORECASE)
_ENDINGS = ",;:"
_HARDWARE, _OF_HARDWARE = "hardware.name", "hardware."
_COUNT = re.compile(r"\d{1,7}[x×*](?=\D|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Token:
    """A word as it stands in the line."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a word or some words stand for.

    Attributes:
        words: the same for people, as ``sequence 4 096``; empty for words that say nothing.
        values: values of a plan by path.
        why: why it was guessed; empty where it is what was written.
        fault: why it stands for nothing.
    """

    words: str = ""
    values: Mapping[str, object] = field(default_factory=dict, hash=False)
    why: str = ""
    fault: PlanError | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """Some characters of the line, and what they stand for."""

    text: str
    start: int
    end: int
    meaning: Meaning


@dataclass(frozen=True, slots=True)
class OneLine:
    """A line that was read.

    Attributes:
        text: the line.
        task: what is done: train, finetune, infer or fit.
        words: its words in order.
        assumed: what nobody said, in words, with the reason.
        values: values of a plan by path.
        faults: what could not be understood, or contradicts itself.
    """

    text: str
    task: str
    words: tuple[Word, ...]
    assumed: tuple[str, ...]
    values: Mapping[str, object] = field(hash=False)
    faults: tuple[PlanError, ...] = ()

    @property
    def understood(self) -> str:
        """What was understood, in a few words."""
        return " · ".join(word.meaning.words for word in self.words if word.meaning.words)

    @property
    def guesses(self) -> tuple[str, ...]:
        """What was guessed and why, then what nobody said."""
        return (*(word.meaning.why for word in self.words if word.meaning.why), *self.assumed)

    def has(self, path: str) -> bool:
        """Whether the line says anything of a field."""
        return path in self.values

    def changed_by(self, other: OneLine) -> OneLine:
        """Return the line with what another one says in place of what it says itself of the same.

        Other hardware takes the place of all that was said of hardware.
        """

        def is_replaced(path: str) -> bool:
            return other.has(path) or (other.has(_HARDWARE) and path.startswith(_OF_HARDWARE))

        left = {path: value for path, value in self.values.items() if not is_replaced(path)}
        words = (
            word for word in self.words if not word.meaning.values or not all(map(is_replaced, word.meaning.values))
        )
        return OneLine(
            f"{self.text} {other.text}".rstrip(),
            str(other.values.get("task", self.task)),
            (*words, *other.words),
            self.assumed,
            {**left, **other.values},
            (*self.faults, *other.faults),
        )


def split(text: str) -> list[Token]:
    """Return the words of a line; what is longer than a line may be is left out."""
    found = []
    for match in _WORD.finditer(text[:LONGEST_LINE]):
        word = match[0].rstrip(_ENDINGS) or match[0]
        found.append(Token(word, match.start(), match.start() + len(word)))
    return found


def counted_start(word: str) -> str:
    """Return the number of devices that a word begins with, as ``8x``; empty for other words."""
    match = _COUNT.match(word)
    return match[0] if match else ""
