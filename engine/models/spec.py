"""A family's own parameters: ``model.spec`` read into frozen data, with the nearest name for a misspelt key."""

import reprlib
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from capacity_tui.engine.catalog import nearest
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.schema import Knob
from capacity_tui.engine.units import parse_count

# Bounds that keep every product of sizes inside double precision; far beyond any data set.
LARGEST_ROWS = 10**12
LARGEST_SIZE = 10**8
_LONGEST_WORDS = 40


def _whole(value: object) -> object:
    """Accept ``200k`` for a count; leave everything else to the validator."""
    if isinstance(value, bool):
        raise ValueError("not a number")
    return parse_count(value) if isinstance(value, str) and value != "auto" else value


Rows: TypeAlias = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=LARGEST_ROWS)]
Size: TypeAlias = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=LARGEST_SIZE)]
Share: TypeAlias = Annotated[float, Field(gt=0, le=1)]
Automatic: TypeAlias = Literal["auto"]


class Spec(BaseModel):
    """Parameters of a family of models. Every field has a default and a knob."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), defer_build=True)

    other_names: ClassVar[Mapping[str, str]] = {}  # Names that other tools give a field


SpecT = TypeVar("SpecT", bound=Spec)


def read_spec(kind: type[SpecT], values: Mapping[str, object]) -> SpecT:
    """Return the parameters of a family from ``model.spec`` of a plan; PlanError names the nearest known key."""
    named = {kind.other_names.get(key, key): value for key, value in values.items()}
    written = {name: key for key in values for name in [kind.other_names.get(key, key)]}
    try:
        return kind.model_validate({name: value for name, value in named.items() if value is not None})
    except ValidationError as error:
        raise _refusal(kind, error.errors(include_url=False)[0], written) from None


def knob_of(info: FieldInfo) -> Knob | None:
    """Return what is known about a field; None for fields no screen shows."""
    return next((part for part in info.metadata if isinstance(part, Knob)), None)


def spec_values(kind: type[Spec], values: Mapping[str, object]) -> dict[str, object]:
    """Return every field of a family with the plan's value, or its default, unchecked."""
    named = {kind.other_names.get(key, key): value for key, value in values.items()}
    return {name: named.get(name, info.get_default()) for name, info in kind.model_fields.items()}


def _refusal(kind: type[Spec], details: ErrorDetails, written: Mapping[str, str]) -> PlanError:
    location = details["loc"]
    name = str(location[0]) if location else ""
    place = Place(field=".".join((Key.MODEL_SPEC, *([written.get(name, name)] if name else []))))
    if details["type"] == "extra_forbidden":
        known = [*kind.model_fields, *kind.other_names]
        near = nearest(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"keys here: {', '.join(kind.model_fields)}"
        return PlanError("unknown key", hint=hint, place=place)
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, CapacityError):
        return PlanError(cause.title, cause.detail, cause.hint, place)
    if not name or details["type"] == "value_error":
        return PlanError(details["msg"].removeprefix("Value error, "), place=place)
    shown = reprlib.repr(details["input"])[:_LONGEST_WORDS]
    return PlanError("not allowed", shown, _allowed(knob_of(kind.model_fields[name]), details), place)


def _allowed(knob: Knob | None, details: ErrorDetails) -> str:
    if knob is None:
        return details["msg"]
    if knob.choices:
        return f"allowed: {', '.join(knob.choices)}"
    if knob.minimum is None or knob.maximum is None:
        return details["msg"]
    unit = f" ({knob.unit})" if knob.unit else ""
    return f"allowed: {knob.minimum:g} to {knob.maximum:.6g}{unit}"
