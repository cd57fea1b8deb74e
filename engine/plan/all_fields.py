"""Every field that a plan can have, with all that is known about it: what other lists of fields are derived from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from capacity_tui.engine.models import knob_of
from capacity_tui.engine.models.classical import SPECS
from capacity_tui.engine.plan.field_texts import knobs
from capacity_tui.engine.plan.plan import AUTO, Plan
from capacity_tui.engine.schema import Knob, Section

OWN_PARAMETERS = "model.spec."
"""Before the name of a parameter that a family of models has for itself."""


@dataclass(frozen=True, slots=True)
class KnownField:
    """What is known of a field, whatever the plan.

    Attributes:
        path: dotted path, such as ``training.micro_batch``.
        knob: its metadata.
        default: its value where a plan gives none.
    """

    path: str
    knob: Knob
    default: object


@cache
def all_fields() -> Mapping[str, KnownField]:
    """Return every field by its path, in the order of the plan file; parameters of single families are none of them."""
    return MappingProxyType({entry.path: entry for entry in _fields(Plan, "")})


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
    infos = ((name, knob_of(info)) for spec in SPECS.values() for name, info in spec.model_fields.items())
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
