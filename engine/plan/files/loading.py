"""Plans from files, text and data; and plans with single values changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel, ValidationError

from capacity_tui.engine.catalog.reading import DEEPEST_NESTING, Document, read_yaml
from capacity_tui.engine.errors import DocumentError, Place, PlanError
from capacity_tui.engine.files import typed_path
from capacity_tui.engine.plan.files.legacy_format import from_planner_form, is_classical, present_setting
from capacity_tui.engine.plan.files.validation_errors import place_of, plan_error
from capacity_tui.engine.plan.plan import Plan, counted_name
from capacity_tui.engine.plan.sections.training import FULL, METHODS
from capacity_tui.engine.schema.field_types import LARGEST_TOKENS

FieldPath: TypeAlias = tuple[str, ...]

CURRENT_VERSION = 1
_LENGTHS = ("tokens", "steps", "epochs")
MOST_VALUES = 10_000
"""Keys and entries a plan may have: lists of layers are the longest part of one."""


def load_plan(path: Path | str) -> Plan:
    """Return the plan of a YAML or JSON file; a model file it names may lie beside it.

    Raises:
        StorageError: the file cannot be read.
        DocumentError: it is too large, not text or not YAML.
        PlanError: it is not a plan: with file, line, field and what is allowed.
    """
    return plan_from_document(read_yaml(Path(path)), Path(path).parent)


def plan_from_document(document: Document, folder: Path | None = None) -> Plan:
    """Return the plan of a document that was read; a model file it names may lie in a folder.

    Raises:
        PlanError: it is not a plan: with file, line, field and what is allowed.
    """
    plan = _plan_from_document(document)
    if folder is None or not plan.model.config:
        return plan
    beside = folder / typed_path(plan.model.config)
    # What cannot be a file's name is refused where the file is read.
    with suppress(OSError):
        if beside.exists():
            return plan.model_copy(update={"model": plan.model.model_copy(update={"config": str(beside)})})
    return plan


def plan_from_text(text: str, name: str) -> Plan:
    """Return the plan of a YAML or JSON text; ``name`` stands for the file in errors.

    Raises:
        DocumentError: the text is not YAML.
        PlanError: it is not a plan.
    """
    return _plan_from_document(read_yaml(text, name))


def plan_from_data(data: object, name: str | None = None) -> Plan:
    """Return the plan of plain data, as ``Plan.data`` returns it or a file holds it.

    Raises:
        PlanError: the data are not a plan.
    """
    return _plan_from_document(Document(data, name))  # type: ignore[arg-type]  # anything may be tried


def apply_settings(plan: Plan, settings: Iterable[str]) -> Plan:
    """Return the plan with values set by texts such as ``training.micro_batch=4``.

    The values are YAML scalars or lists, all set together before the result is checked; keys of the older form
    stand for those that took their place, as in files.

    Raises:
        PlanError: a text is not of that form, or the result is not a plan.
    """
    entries = [_setting(setting) for setting in settings]
    wanted = _model_and_task(_with_all(plan, entries))
    return _validated(_with_all(plan, [present_setting(wanted, *entry) for entry in entries]), Document(None))


def _setting(text: str) -> tuple[FieldPath, object]:
    key, equals, written = text.partition("=")
    if not equals or not key.strip():
        raise PlanError("not a setting", repr(text), "write key=value, such as training.micro_batch=4")
    try:
        return tuple(key.strip().split(".")), read_yaml(written).data
    except DocumentError as error:
        raise PlanError(error.title, error.detail, "write a number, a word or a list", Place(field=key)) from error


def _with_all(plan: Plan, entries: Iterable[tuple[FieldPath, object]]) -> Mapping[str, object]:
    draft: Mapping[str, object] = dict(plan)
    for path, value in entries:
        draft = _with(draft, path, value)
    return draft


def _model_and_task(draft: Mapping[str, object]) -> dict[str, object]:
    """Return what decides where values of the older form belong."""
    model = draft.get("model")
    return {"task": draft.get("task"), "model": dict(model) if isinstance(model, BaseModel | dict) else {}}


def with_value(plan: Plan, path: str, value: object) -> Plan:
    """Return the plan with the value at a dotted path such as ``training.micro_batch`` replaced.

    Of ``tokens``, ``steps`` and ``epochs`` the one that is set replaces the others.

    Raises:
        PlanError: there is no such field, or it does not take the value.
    """
    return _validated(_with(dict(plan), tuple(path.split(".")), value), Document(None))


def place_in_document(document: Document, field: str | None) -> Place:
    """Return where a field stands in a plan's document, for what only shows once the plan is estimated."""
    data = document.data if isinstance(document.data, dict) else {}
    parts = tuple(field.split(".")) if field else ()
    return place_of(document, *from_planner_form(data).origins.get(parts, parts))


def with_hardware(plan: Plan, name: str) -> Plan:
    """Return the plan on other hardware, such as ``8xH100-SXM`` or ``rtx-4090``.

    What belonged to the old hardware goes: its overrides, its links, and a ``dp`` that filled its devices.

    Raises:
        PlanError: the count is not one.
    """
    draft = _with(dict(plan), ("hardware",), {"name": name.strip()})
    draft = _with(draft, ("parallelism", "dp"), None)
    return _validated(_with(draft, ("parallelism", "shard"), None), Document(None))


def _plan_from_document(document: Document) -> Plan:
    data = document.data
    if not isinstance(data, dict):
        what = "the plan is empty" if data is None else "a plan is a mapping of sections"
        hint = "begin with model: {name: ...}; `capacity-tui examples` has whole plans"
        raise PlanError(what, hint=hint, place=Place(document.file, 1 if document.file else None))
    if len(document.lines) > MOST_VALUES:
        detail = f"{len(document.lines):,} keys and entries"
        raise PlanError("too large for a plan", detail, f"allowed: {MOST_VALUES:,}", Place(document.file))
    _check_version(data.get("version", CURRENT_VERSION), document)
    try:
        converted = from_planner_form({**data, "version": CURRENT_VERSION})
    except PlanError as error:
        field = error.place.field or ""
        raise PlanError(error.title, error.detail, error.hint, place_of(document, *field.split("."))) from None
    return _validated(converted.data, document, converted.origins)


def _check_version(version: object, document: Document) -> None:
    """Accept every version there has been: the older form is read whatever number it carries."""
    place = place_of(document, "version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise PlanError("not allowed", repr(version)[:40], f"allowed: {CURRENT_VERSION}", place)
    if version > CURRENT_VERSION:
        raise PlanError(
            "written by a newer capacity-tui",
            f"version {version}",
            "update capacity-tui to read it",
            place,
        )


def _validated(
    data: Mapping[str, object],
    document: Document,
    origins: Mapping[FieldPath, FieldPath] | None = None,
) -> Plan:
    for name in ("model", "hardware"):
        section = data.get(name)
        spec = section.get("spec") if isinstance(section, dict) else None
        if isinstance(spec, dict):
            _check_overrides(spec, (name, "spec"), document)
    try:
        plan = Plan.model_validate(data)
    except ValidationError as error:
        raise plan_error(error, document, origins or {}) from None
    if plan.task is None and is_classical(plan.model.name):
        return plan.model_copy(update={"task": "fit"})
    return plan


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
                "not allowed",
                f"{value:.6g}",
                f"allowed: 0 to {LARGEST_TOKENS:.0e}",
                place_of(document, *path),
            )
    elif not isinstance(value, str | bool | None):
        raise PlanError("not allowed", type(value).__name__, "allowed: numbers, text, lists", place_of(document, *path))


def _with(node: object, path: FieldPath, value: object, above: FieldPath = ()) -> dict[str, object]:
    """Return the mapping of a section, changed at a path; sections beside the path stay as they are."""
    if not isinstance(node, BaseModel | dict | None):
        raise PlanError("has no keys of its own", place=Place(field=".".join(above)))
    mapping = _written(node)
    key, *rest = path
    here = (*above, key)
    mapping[key] = _with(dict(node or {}).get(key), tuple(rest), value, here) if rest else value
    if above == ("training",) and key in _LENGTHS and value is not None:
        mapping.update({other: None for other in _LENGTHS if other != key})
    if here == ("hardware", "name") and counted_name(value):
        mapping["devices"] = None
    if above == ("training",) and key == "method":
        mapping["adapter"] = _adapter_of(value, mapping.get("adapter"))
    if here == ("training", "adapter") and rest in ([], ["kind"]):
        mapping["method"] = None
    if here == ("model",):
        _follow_model(mapping)
    return mapping


def _written(node: BaseModel | dict[str, object] | None) -> dict[str, object]:
    """Return the keys of a section that somebody wrote: a default stays one, which modes may go beyond."""
    if isinstance(node, BaseModel) and not isinstance(node, Plan):
        return {name: value for name, value in node if name in node.model_fields_set}
    return dict(node or {})


def _adapter_of(method: object, adapter: object) -> object:
    """Return the adapter of a method: as it was but of that kind, none for training all weights."""
    if method not in METHODS or method == FULL:
        return None
    return {**(dict(adapter) if isinstance(adapter, BaseModel) else {}), "kind": method}


def _follow_model(mapping: dict[str, object]) -> None:
    """Let the task follow the model between classical algorithms and the rest."""
    model = mapping["model"]
    name = model.get("name") if isinstance(model, dict) else None
    if is_classical(name) or mapping.get("task") == "fit":
        mapping["task"] = None
