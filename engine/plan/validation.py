"""Plan data validated against the schema: one line for each fault, with its field and what is allowed."""

from __future__ import annotations

import heapq
import math
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeAlias, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from capacity_tui.engine.catalog import DEEPEST_NESTING, Document, nearest
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import is_classical
from capacity_tui.engine.plan.field_table import all_fields, field_meant
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import LARGEST_TOKENS, Knob
from capacity_tui.engine.units import format_number

Path: TypeAlias = tuple[str, ...]
_LONGEST_WORDS = 60
_LARGEST_WRITTEN_OUT = 1e9
MOST_FAULTS = 20  # Most faults reported of one file


def plan_error(error: ValidationError, document: Document, origins: Mapping[Path, Path]) -> PlanError:
    """Return the first thing wrong with a plan, in the order of its file, with the others as ``further``."""
    faults: dict[Path, tuple[int, bool, ErrorDetails]] = {}
    for details in error.errors(include_url=False):
        path = _known_part(details["loc"])
        known = origins.get(path, path)
        line = place_of(document, *known).line or 0
        # A misspelt section is also a missing one: the misspelling says more.
        entry = (line, details["type"] == "missing", details)
        if path not in faults or entry[:2] < faults[path][:2]:
            faults[path] = entry
    shown = heapq.nsmallest(MOST_FAULTS, faults, key=lambda path: faults[path][:2])
    first, *further = (_refusal(path, faults[path][2], place_of(document, *origins.get(path, path))) for path in shown)
    first.further = tuple(further)
    return first


def _refusal(path: Path, details: ErrorDetails, place: Place) -> PlanError:
    return PlanError(*_words(path, details), place)


def place_of(document: Document, *path: str | int) -> Place:
    """Return file, line and field of a key path; a document that was never text has no lines."""
    if document.lines:
        return document.place(*(int(part) if str(part).isdecimal() else part for part in path))
    return Place(document.file, None, ".".join(map(str, path)) or None)


def field_names() -> tuple[str, ...]:
    """Return the dotted path of every value a plan can have."""
    return tuple(".".join(path) for path in _paths(Plan) if _section(path) is None)


def _words(path: Path, details: ErrorDetails) -> tuple[str, str, str]:
    """Return title, detail and hint for one problem."""
    kind = details["type"]
    if kind == "extra_forbidden":
        return "unknown key", "", _keys_hint(path)
    if kind == "missing":
        return "is missing", "", _missing_hint(path)
    section = _section(path)
    if section is not None:
        reason = _reason(details)
        return (reason, "", "") if reason else ("takes keys and values", "", f"keys: {_listed(section)}")
    info = _field(path)
    if info is None:
        return details["msg"].removeprefix("Value error, "), _shown(details["input"]), ""
    field_path = path[2:] if path[0] == Key.SCENARIOS else path
    known = all_fields().get(".".join(field_path))
    return _bad_value(_allowed(info, known.knob if known else None), details)


def _bad_value(allowed: _Allowed, details: ErrorDetails) -> tuple[str, str, str]:
    value = details["input"]
    close = nearest(value, allowed.choices, 1) if isinstance(value, str) else ()
    if details["type"] != "less_than_equal" and allowed.bounds.get("le", 0) >= LARGEST_TOKENS:
        del allowed.bounds["le"]  # it only keeps numbers finite
    _, marker, listed = _reason(details).partition("allowed: ")
    hint = f"allowed: {listed if marker else allowed.words()}"
    return "not allowed", _shown(value), f"did you mean {close[0]}? {hint}" if close else hint


def _reason(details: ErrorDetails) -> str:
    """Return what a validator of ours said, if it was one of ours."""
    cause = details.get("ctx", {}).get("error")
    return cause.hint if isinstance(cause, CapacityError) else str(cause) if cause else ""


def _missing_hint(path: Path) -> str:
    section = _section(path[:-1])
    if section is None or section is Plan:
        return "write model: {name: ...}; `capacity-tui models` lists the names"
    return f"keys: {_listed(section)}"


def _keys_hint(path: Path) -> str:
    *above, key = path
    section = _section(path[:-1]) or Plan
    meant = field_meant(key, ".".join(above)) if above else None
    if meant is None and (close := nearest(key, section.model_fields, 1)):
        meant = ".".join((*above, close[0]))
    if meant is None:
        meant = field_meant(key)
    if meant is None:
        elsewhere = {known[-1]: known for known in _paths(Plan)}
        meant = next((".".join(elsewhere[match]) for match in nearest(key, elsewhere, 1)), None)
    return f"did you mean {meant}?" if meant else f"keys here: {_listed(section)}"


def _listed(section: type[BaseModel]) -> str:
    return ", ".join(section.model_fields)


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else reprlib.repr(value)
    text = text if len(text) <= _LONGEST_WORDS else f"{text[: _LONGEST_WORDS - 3]}..."
    return f"{text!r}" if isinstance(value, str) else text


def _known_part(location: Sequence[str | int]) -> Path:
    """Return the plan's part of an error's location: pydantic appends the branches of unions."""
    path: list[str] = []
    annotation: object = Plan
    for part in map(str, location):
        inside = _inside(annotation, part)
        if inside is None and _section_type(annotation) is None:
            break
        path.append(part)
        annotation = inside
    return tuple(path)


def _field(path: Path) -> FieldInfo | None:
    section = _section(path[:-1])
    return section.model_fields.get(path[-1]) if section and path else None


def _section(path: Path) -> type[BaseModel] | None:
    """Return the section at a path; None where the path names no section."""
    annotation: object = Plan
    for part in path:
        annotation = _inside(annotation, part)
    return _section_type(annotation)


def _inside(annotation: object, part: str) -> object:
    """Return the type of a field of a section, or of an entry of a list or table of sections; None if there is none."""
    section = _section_type(annotation)
    if section is not None:
        info = section.model_fields.get(part)
        return info.annotation if info else None
    named = (get_args(kind)[1] for kind in _branches(annotation) if get_origin(kind) is dict)
    if (entry_type := next((entry for entry in named if _section_type(entry) is not None), None)) is not None:
        return entry_type
    entries = (get_args(kind)[0] for kind in _branches(annotation) if get_origin(kind) in (list, tuple))
    return next((entry for entry in entries if part.isdecimal() and _section_type(entry) is not None), None)


def _section_type(annotation: object) -> type[BaseModel] | None:
    return next(
        (kind for kind in _branches(annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)), None
    )


def _paths(section: type[BaseModel], above: Path = ()) -> Iterator[Path]:
    """Yield the path of every field; of equal names the last counts, so sections come before their fields."""
    for name, info in section.model_fields.items():
        yield (*above, name)
        inner = _section_type(info.annotation)
        if inner is not None:
            yield from _paths(inner, (*above, name))


@dataclass(slots=True)
class _Allowed:
    """What a field takes, gathered from its type and its knob."""

    choices: list[str] = field(default_factory=list)
    number: str = ""
    bounds: dict[str, float] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    unit: str = ""

    def words(self) -> str:
        """Return the choices, then the range, then other kinds of value."""
        parts = [", ".join(self.choices)] if self.choices else []
        if self.number:
            parts.append(f"{self.number}{self._range()}{f' ({self.unit})' if self.unit else ''}")
        return " or ".join(parts + self.others)

    def _range(self) -> str:
        low, high = self.bounds.get("ge"), self.bounds.get("le")
        start = (
            f" from {_number(low)}"
            if low is not None
            else f" above {_number(self.bounds['gt'])}"
            if "gt" in self.bounds
            else ""
        )
        return start + (f" to {_number(high)}" if high is not None else "")


def _number(value: float) -> str:
    return format_number(value) if value <= _LARGEST_WRITTEN_OUT else f"{value:.0e}"


def _allowed(info: FieldInfo, knob: Knob | None) -> _Allowed:
    allowed = _Allowed()
    _gather(info.annotation, allowed)
    _gather_bounds(info.metadata, allowed)
    if knob:
        allowed.unit = knob.unit
        allowed.choices += [choice for choice in knob.choices if choice not in allowed.choices]
    if allowed.choices:
        allowed.others = [other for other in allowed.others if other != "text"]
    if knob and knob.choices:
        allowed.number = ""
    return allowed


_KIND_WORDS: Mapping[object, str] = {str: "text", bool: "true or false", dict: "keys and values"}
_NUMBER_WORDS: Mapping[object, str] = {int: "a whole number", float: "a number"}


def _gather(annotation: object, allowed: _Allowed) -> None:
    for kind in _branches(annotation, allowed):
        if get_origin(kind) is Literal:
            allowed.choices += [str(choice) for choice in get_args(kind)]
            continue
        plain = get_origin(kind) or kind
        if plain in (list, tuple):
            entries = _Allowed()
            _gather(get_args(kind)[0], entries)
            allowed.others.append(f"a list, each {entries.words()}")
        elif plain in _NUMBER_WORDS:
            allowed.number = _NUMBER_WORDS[plain]
        elif isinstance(plain, type) and issubclass(plain, BaseModel):
            allowed.others.append(f"a block of {_listed(plain)}")
        elif plain in _KIND_WORDS:
            allowed.others.append(_KIND_WORDS[plain])


def _branches(annotation: object, allowed: _Allowed | None = None) -> Iterator[object]:
    """Yield the types a value may have, without their wrappings."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        if allowed:
            _gather_bounds(metadata, allowed)
        yield from _branches(inner, allowed)
    elif origin in (Union, UnionType):
        for branch in get_args(annotation):
            yield from _branches(branch, allowed)
    elif annotation is not NoneType:
        yield annotation


def _gather_bounds(metadata: Sequence[object], allowed: _Allowed) -> None:
    for entry in metadata:
        if isinstance(entry, FieldInfo):
            _gather_bounds(entry.metadata, allowed)
        for kind, name in ((Ge, "ge"), (Gt, "gt"), (Le, "le")):
            if isinstance(entry, kind):
                allowed.bounds[name] = float(getattr(entry, name))


FieldPath: TypeAlias = tuple[str, ...]


def checked_plan(
    data: Mapping[str, object], document: Document | None = None, origins: Mapping[FieldPath, FieldPath] | None = None
) -> Plan:
    """Return the plan of data in the present form; sections that are checked already stay as they are.

    Args:
        document: where the data stood, for messages.
        origins: where a value stood in the document, by its path in the plan, where they differ.

    Raises:
        PlanError: the data are not a plan.
    """
    source = document or Document(None)
    pinned = data.get(Key.SCENARIOS)
    scenarios = pinned.items() if isinstance(pinned, dict) else ()
    _check_specs(data, (), source)
    for scenario, section in scenarios:
        if isinstance(section, dict):
            _check_specs(section, (Key.SCENARIOS, scenario), source)
    try:
        plan = Plan.model_validate(data)
    except ValidationError as error:
        raise plan_error(error, source, origins or {}) from None
    with_tasks = {name: _with_task(section) for name, section in plan.scenarios.items()}
    return _with_task(plan if with_tasks == plan.scenarios else plan.model_copy(update={Key.SCENARIOS: with_tasks}))


def _with_task(plan: Plan) -> Plan:
    """Return a plan with the task of a classical algorithm where it has none."""
    return plan.model_copy(update={Key.TASK: "fit"}) if plan.task is None and is_classical(plan.model.name) else plan


def _check_specs(data: Mapping[str, object], above: tuple[str | int, ...], document: Document) -> None:
    for name in ("model", "hardware"):
        section = data.get(name)
        spec = section.get("spec") if isinstance(section, dict) else None
        if isinstance(spec, dict):
            _check_overrides(spec, (*above, name, "spec"), document)


def _check_overrides(value: object, path: tuple[str | int, ...], document: Document) -> None:
    """Refuse numbers in an override that no model and no machine has; the schema cannot know their names."""
    if len(path) > DEEPEST_NESTING:
        raise PlanError("nested too deeply", place=place_of(document, *path[:3]))
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            _check_overrides(entry, (*path, key), document)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value) or not 0 <= value <= LARGEST_TOKENS:
            raise PlanError(
                "not allowed", f"{value:.6g}", f"allowed: 0 to {LARGEST_TOKENS:.0e}", place_of(document, *path)
            )
    elif not isinstance(value, str | bool | None):
        raise PlanError("not allowed", type(value).__name__, "allowed: numbers, text, lists", place_of(document, *path))
