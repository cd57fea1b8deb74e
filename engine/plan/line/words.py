"""A line in words: what each of them was taken for, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.assumption import Assumption
from capacity_tui.engine.plan.line.vocabulary import vocabulary

LONGEST_LINE = 400
"""Characters of a line that are read; a plan of more belongs into a file."""
# A word ends at a space, or at a comma, semicolon or colon before one; what stands in brackets belongs together.
_WORD = re.compile(r"(?:\d+\s*[x×*]\s*)?[^\s()]*\([^()]*\)?|[^\s]+", re.IGNORECASE)
_ENDINGS = ",;:"
_MODEL, _HARDWARE, _OF_HARDWARE = Key.MODEL_NAME, Key.HARDWARE_NAME, "hardware."
_COUNT = re.compile(r"\d{1,7}[x×*](?=\D|$)", re.IGNORECASE)
_NUMBER = re.compile(r"\d[\d_]*(?:[.,]\d+)*", re.ASCII)
_GROUPED, _DECIMAL_COMMA = re.compile(r"\d{1,3}(?:,\d{3})+"), re.compile(r"(\d+),(\d{1,2})([kmbgt]?)", re.IGNORECASE)
_SIGNS: Mapping[str, str] = {"<": "<", "<=": "<", "≤": "<", "=": "="}


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the line: as it is read, and where it stands."""

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
        assumed: what nobody said, with the reason.
        values: values of a plan by path.
        faults: what could not be understood, or contradicts itself.
    """

    text: str
    task: str
    words: tuple[Word, ...]
    assumed: tuple[Assumption, ...]
    values: Mapping[str, object] = field(hash=False)
    faults: tuple[PlanError, ...] = ()

    @property
    def understood(self) -> str:
        """What was understood, in a few words."""
        return " · ".join(word.meaning.words for word in self.words if word.meaning.words)

    @property
    def guesses(self) -> tuple[str, ...]:
        """What was guessed and why, then what nobody said."""
        return (*self.remarks, *self.readings, *dict.fromkeys(entry.why for entry in self.assumptions))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know of words that no plan can follow."""
        return tuple(word.meaning.why for word in self.words if word.meaning.why and not word.meaning.values)

    @property
    def readings(self) -> tuple[str, ...]:
        """What numbers were taken to count that do not say it."""
        return tuple(
            word.meaning.why for word in self.words if word.meaning.why and word.meaning.values and _is_bare(word)
        )

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What was guessed of its words, then what nobody said."""
        guessed = (
            Assumption(path, value, word.meaning.why)
            for word in self.words
            if word.meaning.why and not _is_bare(word)
            for path, value in word.meaning.values.items()
        )
        return (*guessed, *self.assumed)

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


def _is_bare(word: Word) -> bool:
    """Whether a word is a number whose meaning its size says, as in ``4k``."""
    return word.text[:1].isdigit() and _MODEL not in word.meaning.values and _HARDWARE not in word.meaning.values


def split(text: str) -> list[Token]:
    """Return the words of a line; what is longer than a line may be is left out."""
    tokens: list[Token] = []
    for match in _WORD.finditer(text[:LONGEST_LINE]):
        word = match[0].rstrip(_ENDINGS) or match[0]
        _add(Token(_plain_number(word), match.start(), match.start() + len(word)), tokens)
    return tokens


def _add(token: Token, tokens: list[Token]) -> None:
    """Add a word to those before it, as one with them where they belong together: ``10 million``, ``ttft < 1 s``."""
    before = tokens[-1] if tokens else None
    if before is not None:
        scale = vocabulary().scales.get(key_of(token.text))
        if scale is not None and _NUMBER.fullmatch(before.text):
            tokens[-1] = Token(_plain_number(before.text) + scale, before.start, token.end)
            return
        if before.text in _SIGNS and len(tokens) > 1:
            sign, name = tokens.pop(), tokens.pop()
            _add(Token(f"{name.text}{_SIGNS[sign.text]}{token.text}", name.start, token.end), tokens)
            return
        is_limit = before.text[-1:] == "<" and len(before.text) > 1
        if is_limit or (token.text[:1] in "<≤" and len(token.text) > 1 and before.text.isalpha()):
            value = token.text.lstrip("<≤=")
            tokens[-1] = Token(f"{before.text.rstrip('<')}<{value}", before.start, token.end)
            return
        seconds = vocabulary().time_units.get(key_of(token.text))
        if seconds is not None and before.text[-1:].isdigit():
            tokens[-1] = Token(f"{before.text}{seconds}", before.start, token.end)
            return
    tokens.append(token)


def _plain_number(word: str) -> str:
    """Return a number without commas: ``10,5M`` is 10.5M, ``10,000`` is 10000; other words stay as they are."""
    if _GROUPED.fullmatch(word):
        return word.replace(",", "")
    return _DECIMAL_COMMA.sub(r"\1.\2\3", word) if _DECIMAL_COMMA.fullmatch(word) else word


def counted_start(word: str) -> str:
    """Return the number of devices that a word begins with, as ``8x``; empty for other words."""
    match = _COUNT.match(word)
    return match[0] if match else ""
