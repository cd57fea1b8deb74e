"""What a model class has beyond the sizes in its configuration, and how model files name those sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog import parse_shipped

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """What a configuration key changes when it has a certain value.

    Attributes:
        key: the configuration key.
        value: the value it must have.
        unless: another key that, when true, keeps the condition from holding.
        fields: shape fields it sets; biases are added to those there are.
        without: biases it takes away.
    """

    key: str
    value: object
    unless: str = ""
    fields: Fields = field(default_factory=dict)
    without: tuple[str, ...] = ()

    def holds(self, config: Fields) -> bool:
        """Tell whether a configuration meets the condition."""
        return self.key in config and config[self.key] == self.value and not config.get(self.unless, False)


@dataclass(frozen=True, slots=True)
class ModelClass:
    """What one model class adds to Llama's structure.

    Attributes:
        fields: shape fields.
        keys: configuration keys that differ from the usual ones, by shape field.
        omitted: sizes its published configurations leave out.
        conditions: what further configuration keys change.
    """

    fields: Fields = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    omitted: Fields = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Traits:
    """Shape fields by family, of decoders of the modern kind, by model class and by catalogue id."""

    families: Mapping[str, Fields]
    modern: Fields
    classes: Mapping[str, ModelClass]
    models: Mapping[str, Fields]


@dataclass(frozen=True, slots=True)
class FileNames:
    """How model files name what a shape needs: the content of ``profiles/model_files.yaml``.

    Attributes:
        config_keys: configuration keys by shape field.
        part_keys: configuration keys by part and its field.
        conditions: what any class's configuration may switch.
        uncounted: what the counts leave out, by the key that announces it.
        counted_as: class by other class, model type or GGUF architecture.
        gguf_keys: GGUF metadata keys by shape field.
        gguf_types: name, elements and bytes of a block, by number of the tensor type.
        gguf_file_types: name of a quantization mixture by its number.
    """

    config_keys: Mapping[str, list[str]]
    part_keys: Mapping[str, Mapping[str, list[str]]]
    conditions: tuple[Condition, ...]
    uncounted: Mapping[str, str]
    counted_as: Mapping[str, str]
    gguf_keys: Mapping[str, list[str]]
    gguf_types: Mapping[int, tuple[str, int, int]]
    gguf_file_types: Mapping[int, str]


@cache
def load_traits() -> Traits:
    """Read the traits that come with the program."""
    content = _read("traits.yaml")
    classes = {name: _model_class(entry) for name, entry in content["classes"].items()}
    return Traits(content["families"], content["modern"], classes, content["models"])


@cache
def load_file_names() -> FileNames:
    """Read the names model files use."""
    content = _read("model_files.yaml")
    return FileNames(
        config_keys=content["config_keys"],
        part_keys=content["part_keys"],
        conditions=_conditions(content["when"]),
        uncounted=content["uncounted"],
        counted_as=content["counted_as"],
        gguf_keys=content["gguf_keys"],
        gguf_types={row[0]: (name, row[1], row[2]) for name, row in content["gguf_types"].items()},
        gguf_file_types={number: name for name, number in content["gguf_file_types"].items()},
    )


def class_fields(name: str | None) -> Fields:
    """Return the shape fields of a model class; none for a class nobody knows."""
    return load_traits().classes.get(name or "", ModelClass()).fields


def _model_class(entry: Fields) -> ModelClass:
    fields = {name: value for name, value in entry.items() if name not in ("keys", "omitted", "when")}
    return ModelClass(fields, entry.get("keys", {}), entry.get("omitted", {}), _conditions(entry.get("when", [])))


def _conditions(entries: list[dict[str, Any]]) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            entry["key"],
            entry["is"],
            entry.get("unless", ""),
            entry.get("fields", {}),
            tuple(entry.get("without", ())),
        )
        for entry in entries
    )


def _read(name: str) -> dict[str, Any]:
    return parse_shipped(files("capacity_tui.profiles") / name)
