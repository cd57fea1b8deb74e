"""The table of fields, ``profiles/fields.yaml``: metadata of each field of a plan, and what it and its choices mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.schema import Follows, Knob

_BETWEEN_WORDS = re.compile(r"[\s_\-]+")


@dataclass(frozen=True, slots=True)
class FieldText:
    """The words of one field.

    Attributes:
        help: what it is and why it matters, in two sentences.
        choices: a few words for each value.
        synonyms: other words under which people look for it.
    """

    help: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    synonyms: tuple[str, ...] = ()


def field_text(path: str) -> FieldText:
    """Return the words of a field by its dotted path; empty ones for a field that has none."""
    return _texts().get(path, FieldText())


def field_meant(key: str, section: str = "") -> str | None:
    """Return the path of the field that people look for under a key that no field has, None where it means none.

    A key means a field if it has all words of one of its synonyms, or these have all of its: ``tensor`` and
    ``tensor_parallel_size`` both mean ``parallelism.tp``.

    Args:
        key: the last part of a path.
        section: the dotted path that the field has to stand below.
    """
    words = _words(key)
    below = f"{section}." if section else ""
    shared = {
        path: max((_shared_words(words, _words(synonym)) for synonym in text.synonyms), default=0)
        for path, text in _texts().items()
        if path.startswith(below)
    }
    best = max(shared, key=shared.__getitem__, default=None)
    return best if best is not None and shared[best] else None


def _shared_words(words: frozenset[str], synonym: frozenset[str]) -> int:
    """Return how many words both have where one has all of the other's; else 0."""
    return len(words & synonym) if words <= synonym or synonym <= words else 0


def _words(text: str) -> frozenset[str]:
    return frozenset(_BETWEEN_WORDS.split(text.casefold()))


@cache
def _texts() -> dict[str, FieldText]:
    return {
        path: FieldText(row["help"], row.get("choices", {}), tuple(row.get("synonyms", ())))
        for path, row in _table()["fields"].items()
    }


@cache
def knobs() -> Mapping[str, Knob]:
    """Return the metadata of every field by its path; parameters of models have theirs beside their types."""
    rows = ((path, row["field"]) for path, row in _table()["fields"].items() if "field" in row)
    return {path: _knob(row, _follows(path)) for path, row in rows}


def _knob(row: Mapping[str, Any], follows: tuple[Follows, ...]) -> Knob:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    flags = values.pop("flags", ())
    return Knob(**values | dict.fromkeys(flags, True), follows=follows)


def _follows(path: str) -> tuple[Follows, ...]:
    return tuple(
        Follows(follower, row["rule"], row["why"])
        for row in _table()["follows"]
        if path in row["of"]
        for follower in row["follow"]
        if follower != path
    )


@cache
def _table() -> dict[str, Any]:
    return parse_shipped(files("capacity_tui.profiles") / "fields.yaml")
