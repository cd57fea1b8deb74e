"""A line in words: what each of them was taken for, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog import key_of, parse_shipped
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import all_fields
from capacity_tui.engine.plan.fields import SECTIONS


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value that nobody gave.

    Attributes:
        key: field of the plan.
        value: what was taken; None where nothing can be.
        why: why this, and how to say another where that is not plain.
        moves: result keys of the figures that it moves most.
    """

    key: str
    value: object
    why: str
    moves: tuple[str, ...] = ()


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


TRAIN, FINETUNE, INFER, FIT = "train", "finetune", "infer", "fit"

UNSAID = frozenset({"running", "output"})
"""Roles of fields that a line does not say: how a run is looked after and reported stands in files."""


@dataclass(frozen=True, slots=True)
class Amount:
    """What a number may count.

    Attributes:
        name: for people, as ``sequence``.
        fields: the field it goes to, by what is done with the model.
        is_behind: whether its words may stand behind the number.
    """

    name: str
    fields: Mapping[str, str]
    is_behind: bool = False

    def field(self, task: str) -> str | None:
        """Return the field of a task; fine-tuning has those of training."""
        return self.fields.get(TRAIN if task == FINETUNE else task)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What words mean; every word is a key, without case and hyphens.

    Attributes:
        fillers: words that say nothing.
        tasks: what is done, by word.
        suggests: what is done where no other word says it, by word.
        remarks: words that the plan cannot follow, and what to do about them.
        ram: words behind a size of host memory.
        scales: suffixes of numbers, by word.
        time_units: units of times, by word.
        methods: which weights are trained, by word.
        here: names of this machine.
        amounts: what numbers count, by word.
        fields: fields of a plan by label and key.
        values: fields that take a name, by what is done.
        formats: number formats by their bits.
        fewest_tokens: of a job; what is shorter is a sequence.
        models: ids of models that are meant by a part of a name, the first ones before the others.
        hardware: likewise.
        makers: of hardware, in the order in which lists offer it.
        usual: values where a line says nothing, by what is done.
        engines: what serves language models where a line names none, by family of weights and by maker of devices.
        examples: lines to begin with, and what they show.
    """

    fillers: frozenset[str]
    tasks: Mapping[str, str]
    suggests: Mapping[str, str]
    remarks: Mapping[str, str]
    ram: frozenset[str]
    scales: Mapping[str, str]
    time_units: Mapping[str, str]
    methods: Mapping[str, str]
    here: frozenset[str]
    amounts: Mapping[str, Amount]
    fields: Mapping[str, tuple[str, ...]]
    values: Mapping[str, tuple[str, ...]]
    formats: Mapping[str, str]
    fewest_tokens: float
    models: tuple[str, ...]
    hardware: tuple[str, ...]
    makers: tuple[str, ...]
    usual: Mapping[str, Mapping[str, float]]
    engines: Mapping[str, str]
    examples: Mapping[str, str]

    def field_of(self, word: str, task: str) -> str | None:
        """Return the field that a word names in a task."""
        sections = SECTIONS[task]
        return next((path for path in self.fields.get(key_of(word), ()) if _section(path) in sections), None)

    def values_of(self, task: str) -> tuple[str, ...]:
        """Return the fields whose values may stand alone."""
        return self.values.get(TRAIN if task == FINETUNE else task, ())


@cache
def vocabulary() -> Vocabulary:
    """Return the shipped words."""
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "one_line.yaml")
    return Vocabulary(
        fillers=frozenset(map(key_of, rows["fillers"])) | {""},
        tasks=_by_word(rows["tasks"]),
        suggests=_by_word(rows["suggests"]),
        remarks=_by_word(rows["remarks"]),
        ram=frozenset(map(key_of, rows["ram"])),
        scales=_by_word(rows["scales"]),
        time_units=_by_word(rows["time_units"]),
        methods=_by_word(rows["methods"]),
        here=frozenset(rows["here"]),
        amounts={
            key_of(word): Amount(name, row["fields"], row.get("behind", False))
            for name, row in rows["numbers"].items()
            for word in row["words"]
        },
        fields=_fields(),
        values={task: tuple(paths) for task, paths in rows["values"].items()},
        formats=rows["formats"],
        fewest_tokens=float(rows["fewest_tokens"]),
        models=tuple(rows["models"]),
        hardware=tuple(map(str, rows["hardware"])),
        makers=tuple(rows["makers"]),
        usual=rows["usual"],
        engines=rows["engines"],
        examples=rows["examples"],
    )


def line_examples() -> Mapping[str, str]:
    """Return lines to begin with, and what they show."""
    return vocabulary().examples


def _by_word(rows: Mapping[str, list[str]]) -> dict[str, str]:
    return {key_of(word): name for name, words in rows.items() for word in words}


def _fields() -> dict[str, tuple[str, ...]]:
    """Return the fields that a word may name, by label and by key; those that catalogues are for go by their rows."""
    paths: dict[str, tuple[str, ...]] = {}
    for path, entry in all_fields().items():
        if entry.knob.catalogue not in ("", "interconnect") or entry.knob.role in UNSAID or path == "task":
            continue
        for name in dict.fromkeys(map(key_of, (entry.knob.label, path.rpartition(".")[2], path))):
            paths[name] = (*paths.get(name, ()), path)
    return paths


def _section(path: str) -> str:
    return path.rpartition(".")[0]
