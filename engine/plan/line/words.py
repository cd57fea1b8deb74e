"""A line in words: what each of them was taken for, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog import key_of, parse_shipped
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import all_fields
from capacity_tui.engine.plan.fields import SECTIONS
from capacity_tui.engine.record import dataclass


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


_MODEL, _HARDWARE, _OF_HARDWARE = Key.MODEL_NAME, Key.HARDWARE_NAME, "hardware."


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
class Asked:
    """What a line asks that no plan says, answered by solving its plan for a field.

    Attributes:
        solve: the field, as ``hardware.devices``.
        limits: what must hold, as ``time<=30d``.
        goal: what the best has least or most of; empty for what is usual of the field.
        why: the same for people.
    """

    solve: str
    limits: tuple[str, ...] = ()
    goal: str = ""
    why: str = ""


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
        unknown: words that mean nothing here, which the last of the faults names.
        asked: what no plan says; None where the line is a plan.
    """

    text: str
    task: str
    words: tuple[Word, ...]
    assumed: tuple[Assumption, ...]
    values: Mapping[str, object] = field(hash=False)
    faults: tuple[PlanError, ...] = ()
    unknown: tuple[str, ...] = ()
    asked: Asked | None = None

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

    def without_unknown(self) -> OneLine:
        """Return the line without the words that mean nothing here, which is remarked."""
        if not self.unknown:
            return self
        why = f"not understood, and left out: {', '.join(self.unknown)}"
        left_out = Word("", len(self.text), len(self.text), Meaning(why=why))
        words = (*(word for word in self.words if word.text not in self.unknown), left_out)
        return replace(self, words=words, faults=self.faults[:-1], unknown=())

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
            self.unknown,
            None if self.asked is not None and other.has(self.asked.solve) else self.asked,
        )


def _is_bare(word: Word) -> bool:
    """Whether a word is a number whose meaning its size says, as in ``4k``."""
    return word.text[:1].isdigit() and _MODEL not in word.meaning.values and _HARDWARE not in word.meaning.values


TRAIN, FINETUNE, INFER, FIT = "train", "finetune", "infer", "fit"

UNSAID = frozenset({"running", "output"})
"""Roles of fields that a line does not say: how a run is looked after and reported stands in files."""


@dataclass(frozen=True, slots=True)
class Amount:
    """What a number may count.

    Attributes:
        name: for people, as ``sequence``.
        fields: the field it goes to, by what is done with the model.
        behind: whether its words may stand behind the number: ``only`` there, ``always`` where they do wherever a
            number is before them, ``either`` where they may begin what follows as well, empty where they only stand
            before it.
        reciprocal: whether the field is one over the number, as a time is of a rate.
        per: what the number is divided by, as requests a day are for those a second.
        most: the most that it may count; more are of something else.
        beyond: what to write instead of more.
        tells: whether its words tell what is done with the model.
        hint: what to write instead, of what is told apart by another word.
        unit: the amount whose words may stand between the number and these, or behind the number.
        billions: whether so many may be counted; elsewhere a number of billions is the size of a model.
        fewer: the amount that a number counts in a training which is too small to be this one.
    """

    name: str
    fields: Mapping[str, str]
    behind: str = ""
    reciprocal: bool = False
    per: float = 1.0
    most: float = math.inf
    beyond: str = ""
    tells: bool = True
    hint: str = ""
    unit: str = ""
    billions: bool = False
    fewer: str = ""

    @property
    def is_behind(self) -> bool:
        """Whether its words stand behind the number wherever a number is before them."""
        return self.behind in ("always", "only")

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
        of_serving: words that are of serving wherever nothing is trained.
        remarks: words that the plan cannot follow, and what to do about them.
        refused: words that no plan can follow, and what to say instead.
        counts, phrases: numbers in words; values that words set, by what is done.
        datasets: field and size of data sets, by name.
        slices, core_slices: rows of hardware rented in slices of so many chips, or cores, by the name of a slice.
        machines: makers of devices, by their machines.
        prefixes, ram: beginnings of machines' names by what clouds write; words behind a size of host memory.
        scales, time_units, durations: suffixes of numbers and units of times and of longer times, by word.
        negations, ruled_out: words that rule out what stands behind them; what that sets, by what is done.
        queries: words that ask for what no plan says, by what they ask for.
        asked: fields, by the words that ask and by what they ask for.
        within, deadlines: words before a time that is not to be passed, and words that are one.
        nodes: machines of so many devices, by the word before the name of these.
        methods: which weights are trained, by word.
        objectives: of fine-tuning, by word.
        here: names of this machine.
        amounts, units: what numbers count, by word; those that are units of others.
        twice: what to do where a field is given twice, by field.
        fields, values: fields of a plan by label and key; fields that take a name, by what is done.
        formats: number formats by their bits.
        bits, served: formats of weights by engine and bits; what is served in place of those that are trained on.
        fewest_tokens: of a job; shorter is a sequence.
        models, hardware: ids that are meant by a part of a name, the first ones before the others.
        makers, usual: of hardware, in the order of lists; values where a line says nothing, by what is done.
        engines: what serves language models where a line names none, by family of weights and by maker of devices.
        examples: lines to begin with, and what they show.
    """

    fillers: frozenset[str]
    tasks: Mapping[str, str]
    suggests: Mapping[str, str]
    of_serving: frozenset[str]
    remarks: Mapping[str, str]
    refused: Mapping[str, str]
    counts: Mapping[str, int]
    phrases: Mapping[str, Mapping[str, Mapping[str, object]]]
    datasets: Mapping[str, tuple[str, int]]
    slices: Mapping[str, str]
    core_slices: Mapping[str, str]
    machines: Mapping[str, str]
    prefixes: Mapping[str, str]
    ram: frozenset[str]
    scales: Mapping[str, str]
    time_units: Mapping[str, str]
    durations: Mapping[str, str]
    negations: frozenset[str]
    ruled_out: Mapping[str, Mapping[str, Mapping[str, object]]]
    queries: Mapping[str, str]
    asked: Mapping[str, Mapping[str, str]]
    within: frozenset[str]
    deadlines: Mapping[str, str]
    nodes: Mapping[str, int]
    methods: Mapping[str, str]
    objectives: Mapping[str, str]
    here: frozenset[str]
    amounts: Mapping[str, Amount]
    units: frozenset[str]
    twice: Mapping[str, str]
    fields: Mapping[str, tuple[str, ...]]
    values: Mapping[str, tuple[str, ...]]
    formats: Mapping[str, str]
    bits: Mapping[str, Mapping[str, str]]
    served: Mapping[str, str]
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

    def phrase(self, word: str, task: str) -> Mapping[str, object] | None:
        """Return what a word or two set in a task; None where they set nothing."""
        return self.phrases.get(TRAIN if task == FINETUNE else task, {}).get(key_of(word))

    def format_of(self, bits: str, engine: str) -> str:
        """Return the format of weights that has so many bits in an engine."""
        name = self.formats[bits]
        return self.bits.get(engine, {}).get(bits, self.served.get(name, name))

    def values_of(self, task: str) -> tuple[str, ...]:
        """Return the fields whose values may stand alone."""
        return self.values.get(TRAIN if task == FINETUNE else task, ())


@cache
def vocabulary() -> Vocabulary:
    """Return the shipped words."""
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "one_line.yaml")
    return Vocabulary(
        fillers=frozenset(map(key_of, (*rows["fillers"], *rows["prose"]))) | {""},
        tasks=_by_word(rows["tasks"]),
        suggests=_by_word(rows["suggests"]),
        of_serving=frozenset(map(key_of, rows["of_serving"])),
        remarks=_by_word(rows["remarks"]),
        refused=_by_word(rows["refused"]),
        counts={key_of(word): count for count, words in rows["counts"].items() for word in words},
        phrases=rows["phrases"],
        datasets={name: (path, size) for path, sizes in rows["datasets"].items() for name, size in sizes.items()},
        slices=rows["slices"],
        core_slices=rows["core_slices"],
        machines=_by_word(rows["machines"]),
        prefixes=rows["prefixes"],
        ram=frozenset(map(key_of, rows["ram"])),
        scales=_by_word(rows["scales"]),
        time_units=_by_word(rows["time_units"]),
        durations=_by_word(rows["durations"]),
        negations=frozenset(map(key_of, rows["negations"])),
        ruled_out=rows["ruled_out"],
        queries=_by_word(rows["asking"]),
        asked={kind: _by_word(fields) for kind, fields in rows["asked"].items()},
        within=frozenset(rows["within"]),
        deadlines=rows["deadlines"],
        nodes=rows["nodes"],
        methods=_by_word(rows["methods"]),
        objectives=_by_word(rows["objectives"]),
        here=frozenset(rows["here"]),
        amounts={
            key_of(word): Amount(name, **{key: value for key, value in row.items() if key != "words"})
            for name, row in rows["numbers"].items()
            for word in row["words"]
        },
        units=frozenset(row.get("unit", "") for row in rows["numbers"].values()) - {""},
        twice=rows["twice"],
        fields=_fields(rows["fields"]),
        values={task: tuple(paths) for task, paths in rows["values"].items()},
        formats=rows["formats"],
        bits=rows["bits"],
        served=rows["served"],
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
    """Return the name of each word; where two have one, the later."""
    return {key_of(word): name for name, words in rows.items() for word in words}


def _fields(other_names: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    """Return the fields that a word may name, by label and by key; those that catalogues are for go by their rows."""
    paths: dict[str, tuple[str, ...]] = {}
    for path, entry in all_fields().items():
        if entry.knob.catalogue not in ("", "interconnect") or entry.knob.role in UNSAID or path == "task":
            continue
        for name in dict.fromkeys(map(key_of, (entry.knob.label, path.rpartition(".")[2], path))):
            paths[name] = (*paths.get(name, ()), path)
    for path, names in other_names.items():
        paths |= {key_of(name): (path,) for name in names}
    return paths


def _section(path: str) -> str:
    return path.rpartition(".")[0]
