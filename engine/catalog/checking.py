"""Turn what pydantic refuses into errors that name file, line, field and remedy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from capacity_tui.engine.catalog.names import key_of, nearest
from capacity_tui.engine.catalog.reading import Document, KeyPath
from capacity_tui.engine.errors import CapacityError


def refusals(
    error: ValidationError,
    model: type[BaseModel],
    document: Document,
    below: KeyPath = (),
    kind: type[CapacityError] = CapacityError,
) -> list[CapacityError]:
    """Return one error for each field that a model refused.

    Args:
        error: what pydantic raised.
        model: the model the data was meant for; its field names serve as suggestions.
        document: where the data came from.
        below: key path of the data inside the document.
        kind: class of the errors.
    """
    return [_refusal(details, model, document, below, kind) for details in error.errors(include_url=False)]


def with_left_out(hint: str, name: str, problems: Sequence[CapacityError]) -> str:
    """Return the hint about a name that nobody knows; where a row or file of the user's so called is faulty, why."""
    for problem in problems:
        file, field = problem.place.file or "", problem.place.field or ""
        if key_of(name) in {key_of(PurePath(file).stem), key_of(field.partition(".")[0])}:
            return f"what you have under that name cannot be used: {problem.one_line()}"
    return hint


def _refusal(
    details: ErrorDetails,
    model: type[BaseModel],
    document: Document,
    below: KeyPath,
    kind: type[CapacityError],
) -> CapacityError:
    location = details["loc"]
    place = document.place(*below, *location)
    if details["type"] == "extra_forbidden":
        known = _fields_at(model, location[:-1])
        near = nearest(str(location[-1]), known)
        hint = f"nearest known: {', '.join(near)}" if near else f"known: {', '.join(known)}"
        return kind("unknown field", repr(location[-1]), hint, place)
    if details["type"] == "missing":
        return kind("a field is missing", str(location[-1]), "add it", place)
    shown = repr(details["input"])
    return kind("not allowed here", shown if len(shown) <= 60 else f"{shown[:57]}...", details["msg"], place)


def _fields_at(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Return the field names of the model, or of the model nested in it at a location."""
    inner: type[BaseModel] = model
    for step in location:
        field = inner.model_fields.get(str(step))
        annotation = field.annotation if field else None
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            inner = annotation
    return list(inner.model_fields)
