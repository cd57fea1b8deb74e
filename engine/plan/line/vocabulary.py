"""The words of the one line that says a plan: ``profiles/one_line.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog import key_of, parse_shipped
from capacity_tui.engine.plan.all_fields import all_fields
from capacity_tui.engine.plan.fields import SECTIONS

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
