"""The table of fields, profiles/fields.yaml: metadata and words of every field of a plan, and lists derived from it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import CLASSICAL_SPECS, knob_of
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO, Follows, Knob, Section

_BETWEEN_WORDS = re.compile(r"[\s_\-]+")


@dataclass(frozen=True, slots=True)
class FieldText:
    """The words of one field."""

    help: str = ""  # what it is and why it matters, in two sentences
    choices: Mapping[str, str] = field(default_factory=dict)  # a few words for each value
    synonyms: tuple[str, ...] = ()  # other words under which people look for it


def field_text(path: str) -> FieldText:
    """Return the words of a field by its dotted path; empty ones for a field that has none."""
    return _texts().get(path, FieldText())


def field_meant(key: str, section: str = "") -> str | None:
    """Return the path of the field that people look for under a key that no field has, None where it means none.

    A key means a field if it has all words of one of its synonyms, or these have all of its: ``tensor`` and
    ``tensor_parallel_size`` both mean ``parallelism.tp``.

    Args:
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
    """Return the metadata of every field by its path; parameters of models have theirs next to their types."""
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


def condition_text(name: str) -> str:
    """Return what a field needs to change anything, by the name of the condition."""
    text: str = _table()["conditions"][name]
    return text


@cache
def _table() -> dict[str, Any]:
    return parse_shipped("fields.yaml")


OWN_PARAMETERS = f"{Key.MODEL_SPEC}."  # Before the name of a parameter that a family of models has for itself


@dataclass(frozen=True, slots=True)
class KnownField:
    """What is known of a field, regardless of the plan."""

    path: str  # dotted path, such as ``training.micro_batch``
    knob: Knob
    default: object  # its value where a plan gives none


@cache
def all_fields() -> Mapping[str, KnownField]:
    """Return every field by its path, in the order of the plan file; parameters of single families are none of them."""
    return MappingProxyType({entry.path: entry for entry in _fields(Plan, "")})


def field_label(path: str) -> str:
    """Return what a field is called; parameters of single families by their own name."""
    known = all_fields().get(path)
    return known.knob.label if known else path.rpartition(".")[2]


@cache
def fields_of_section(section: str) -> tuple[KnownField, ...]:
    """Return the fields that stand directly below a section; an empty name is the plan itself."""
    return tuple(entry for path, entry in all_fields().items() if path.rpartition(".")[0] == section)


@cache
def paths_where(holds: Callable[[Knob], bool]) -> tuple[str, ...]:
    """Return the paths of the fields whose metadata meet a condition, in the order of the plan file."""
    return tuple(path for path, entry in all_fields().items() if holds(entry.knob))


@cache
def automatic_parameters() -> tuple[str, ...]:
    """Return the paths of those parameters of single families that the modes can choose."""
    infos = ((name, knob_of(info)) for spec in CLASSICAL_SPECS.values() for name, info in spec.model_fields.items())
    names = dict.fromkeys(name for name, knob in infos if knob is not None and knob.automatic)
    return tuple(f"{OWN_PARAMETERS}{name}" for name in names)


def _fields(section: type[Section], above: str) -> Iterator[KnownField]:
    for name, info in section.model_fields.items():
        path = f"{above}{name}"
        knob, inner = knobs().get(path), _section_of(info)
        if knob is not None:
            yield KnownField(path, _with_choices(knob, info.annotation), info.get_default(call_default_factory=True))
        if inner is not None:
            yield from _fields(inner, f"{path}.")


def _with_choices(knob: Knob, annotation: object) -> Knob:
    """Return the metadata of a choice with the literal values of its type, unless they name choices or rows."""
    if knob.kind != "choice" or knob.choices or knob.rows:
        return knob
    return replace(knob, choices=tuple(value for value in _literals(annotation) if value != AUTO))


def _literals(annotation: object) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for part in get_args(annotation):
            yield from _literals(part)


def _section_of(info: FieldInfo) -> type[Section] | None:
    kinds = (info.annotation, *(get_args(info.annotation) if get_origin(info.annotation) not in (tuple, dict) else ()))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)), None)


MODEL = "model."
_TRAINING, _INFERENCE, _PARALLELISM = "training", "inference", "parallelism"


@cache
def placeholders() -> Mapping[str, object]:
    """Return what each field that the modes may choose holds while its value is still being chosen.

    The model is none of them: it is chosen before everything else. Nor is what no estimate depends on, or what is
    chosen last, both of which follow when all else is chosen.
    """
    known = ((path, entry) for path, entry in all_fields().items() if _is_estimated(entry.knob))
    paths = {
        path: entry.default if entry.knob.placeholder is None else entry.knob.placeholder
        for path, entry in known
        if not path.startswith(MODEL)
    }
    return {**paths, **dict.fromkeys(automatic_parameters())}


@cache
def chosen_last() -> tuple[str, ...]:
    """Return the fields that the modes choose once everything else is settled."""
    return paths_where(lambda knob: knob.chosen_last)


@cache
def chosen_unless_given(task: str) -> tuple[str, ...]:
    """Return the fields whose value the modes choose for a task also where the plan gives none."""
    return tuple(path for path, entry in all_fields().items() if task in entry.knob.chosen_for)


@cache
def open_jobs() -> tuple[str, ...]:
    """Return what is wanted of a training and may be left open: the same in all modes, so that they compare one job."""
    jobs = paths_where(lambda knob: knob.automatic and knob.role == "job")
    return tuple(path for path in jobs if path.startswith(f"{_TRAINING}."))


@cache
def memory_searched() -> tuple[str, ...]:
    """Return what a search may set together to save memory or time, the result of training being the same."""
    return paths_where(
        lambda knob: _is_estimated(knob) and knob.role == "setting" and knob.keeps_result and knob.group != _INFERENCE
    )


@cache
def model_sizes() -> tuple[str, ...]:
    """Return the sizes of a layout that divide a model or its sequences, which no other field decides."""
    return paths_where(_is_model_size)


@cache
def served_sizes() -> tuple[str, ...]:
    """Return the numbers of serving of which one call judges many values as an array."""
    return tuple(path for path in paths_where(lambda knob: knob.broadcasts) if path.startswith(f"{_INFERENCE}."))


@cache
def broadcast_numbers() -> tuple[str, ...]:
    """Return the numbers beside a layout's sizes of which a training takes many values as an array."""
    return tuple(path for path in paths_where(lambda knob: knob.broadcasts) if not path.startswith(f"{_INFERENCE}."))


def _is_estimated(knob: Knob) -> bool:
    return knob.automatic and knob.role != "running" and not knob.chosen_last


def _is_model_size(knob: Knob) -> bool:
    is_size = knob.group == _PARALLELISM and knob.kind == "power-of-two"
    return is_size and knob.role == "setting" and not knob.resolved_from_others
