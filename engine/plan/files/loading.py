"""Plans from files, text and data; and the fields that settings name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeAlias

from capacity_tui.engine.catalog import Document, nearest, read_yaml
from capacity_tui.engine.errors import DocumentError, Place, PlanError
from capacity_tui.engine.files import typed_path
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import is_classical, load_plugins
from capacity_tui.engine.plan.consequences import DEFAULT
from capacity_tui.engine.plan.edit import Edited, edited
from capacity_tui.engine.plan.field_table import all_fields
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.plan.validation import checked_plan, place_of
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_number

KeyPath: TypeAlias = tuple[str, ...]
_OPTIMIZER: KeyPath = ("training", "optimizer")
OLDER_KEYS: Mapping[KeyPath, KeyPath] = {
    ("model", "optimization"): _OPTIMIZER,
    ("model", "learning_rate"): ("training", "learning_rate"),
    ("hardware", "parallel_devices"): ("hardware", "devices"),
}
# A classical algorithm keeps these in its spec, where its formulas look for them.
_TRAINING_MOVES: Mapping[KeyPath, KeyPath] = {
    ("model", "spec", "n"): ("training", "samples"),
    ("model", "spec", "n_tokens"): ("training", "tokens"),
    ("model", "spec", "optimizer"): _OPTIMIZER,
    ("model", "spec", "batch_size"): ("training", "micro_batch"),
    ("model", "spec", "epochs"): ("training", "epochs"),
    ("model", "spec", "precision"): ("training", "precision"),
    ("model", "spec", "seq_len"): ("training", "seq_len"),
}
_INFERENCE_MOVES: Mapping[KeyPath, KeyPath] = {
    ("model", "spec", "batch_size"): ("inference", "batch"),
    ("model", "spec", "precision"): ("inference", "weights"),
    ("model", "spec", "seq_len"): ("inference", "prompt_tokens"),
}
SPEC_NAMES: Mapping[str, str] = {old[-1]: ".".join(new) for old, new in _TRAINING_MOVES.items()}
"""Names that ``model.spec`` of a model that is trained in steps takes for fields of the plan, with those fields."""
_SAME_OPTIMIZER = {"adam": "adamw"}  # AdamW differs from Adam in how weights decay, not in what it keeps or computes


@dataclass(frozen=True, slots=True)
class Converted:
    """A plan's data in the present form."""

    data: dict[str, object]
    origins: Mapping[KeyPath, KeyPath] = field(default_factory=dict)  # where a moved value stood, by its present path


def from_planner_form(data: Mapping[str, object]) -> Converted:
    """Return plan data with the older form's keys where they belong now; none may stand in both places."""
    converted = _copied(data)
    origins: dict[KeyPath, KeyPath] = {}
    for old, new in _moves(converted).items():
        section = _mapping_at(converted, old[:-1])
        if section is None or old[-1] not in section:
            continue
        target = _mapping_at(converted, new[:-1], make=True)
        if target is None:
            continue
        if target.get(new[-1]) is not None:
            raise PlanError("given twice", f"also as {'.'.join(old)}", "keep one of them", Place(field=".".join(new)))
        target[new[-1]] = section.pop(old[-1])
        origins[new] = old
    _name_optimizer(converted)
    _join_epochs(converted, origins)
    return Converted(converted, origins)


def present_setting(data: Mapping[str, object], path: KeyPath, value: object) -> tuple[KeyPath, object]:
    """Return where a single value of the older form belongs now in a plan, and how it is written there."""
    present = _moves(dict(data)).get(path, path)
    if present == _OPTIMIZER and isinstance(value, str):
        value = _SAME_OPTIMIZER.get(value.lower(), value)
    return present, value


def _moves(data: dict[str, object]) -> dict[KeyPath, KeyPath]:
    model = data.get("model")
    if isinstance(model, dict) and (is_classical(model.get("name")) or _is_plugin(model)):
        return dict(OLDER_KEYS)
    return {**OLDER_KEYS, **(_INFERENCE_MOVES if data.get(Key.TASK) == "infer" else _TRAINING_MOVES)}


def names_model(data: object) -> bool:
    """Whether data name their model as plans alone do."""
    model = data.get("model") if isinstance(data, Mapping) else None
    return isinstance(model, Mapping) and not {"name", "config"}.isdisjoint(model)


def _is_plugin(model: Mapping[str, object]) -> bool:
    """Whether a model of another package reads the spec; only asked where its keys could be meant for training."""
    name, spec = model.get("name"), model.get("spec")
    moved = {path[-1] for path in _TRAINING_MOVES}
    return (
        isinstance(name, str)
        and isinstance(spec, dict)
        and not moved.isdisjoint(spec)
        and load_plugins().find(name) is not None
    )


def _name_optimizer(data: dict[str, object]) -> None:
    training = data.get("training")
    if isinstance(training, dict) and isinstance(name := training.get("optimizer"), str):
        training["optimizer"] = _SAME_OPTIMIZER.get(name.lower(), name)


def _join_epochs(data: dict[str, object], origins: Mapping[KeyPath, KeyPath]) -> None:
    """Count tokens over all epochs: the older form gives the tokens of one."""
    training = data.get("training")
    if not isinstance(training, dict) or not {("training", "tokens"), ("training", "epochs")} <= origins.keys():
        return
    tokens, epochs = training["tokens"], training["epochs"]
    if isinstance(tokens, int | float) and isinstance(epochs, int | float):
        training["tokens"] = tokens * epochs
        del training["epochs"]


def _copied(data: Mapping[str, object]) -> dict[str, object]:
    """Return a copy two levels deep: deep enough for every move."""
    copy: dict[str, object] = {}
    for key, section in data.items():
        copy[key] = dict(section) if isinstance(section, dict) else section
    model = copy.get("model")
    if isinstance(model, dict) and isinstance(model.get("spec"), dict):
        model["spec"] = dict(model["spec"])
    return copy


def _mapping_at(data: dict[str, object], path: KeyPath, make: bool = False) -> dict[str, object] | None:
    """Return the mapping at a path; None where something else, or nothing, stands."""
    mapping = data
    for part in path:
        if make and mapping.get(part) is None:
            mapping[part] = {}
        inner = mapping.get(part)
        if not isinstance(inner, dict):
            return None
        mapping = inner
    return mapping


FieldPath: TypeAlias = tuple[str, ...]
CURRENT_VERSION = 1
MOST_VALUES = 10_000  # Keys and entries a plan may have: lists of layers are the longest part of one


def load_plan(path: Path | str) -> Plan:
    """Return the plan of a YAML or JSON file; a model file it names may lie next to it.

    Raises:
        StorageError: the file cannot be read.
        DocumentError: it is too large, not text or not YAML.
        PlanError: it is not a plan: with file, line, field and what is allowed.
    """
    return plan_from_document(read_yaml(Path(path)), Path(path).parent)


def plan_from_document(document: Document, folder: Path | None = None) -> Plan:
    """Return the plan of a document that was read; a model file it names may lie in a folder."""
    plan = _plan_from_document(document)
    if folder is None:
        return plan
    scenarios = {name: _with_local_config(scenario, folder) for name, scenario in plan.scenarios.items()}
    return _with_local_config(plan.model_copy(update={Key.SCENARIOS: scenarios}) if scenarios else plan, folder)


def _with_local_config(plan: Plan, folder: Path) -> Plan:
    """Return a plan with the model file that it names where that lies in a folder."""
    if not plan.model.config:
        return plan
    file = folder / typed_path(plan.model.config)
    # What cannot be a file's name is refused where the file is read.
    with suppress(OSError):
        if file.exists():
            return plan.model_copy(update={"model": plan.model.model_copy(update={"config": str(file)})})
    return plan


def plan_from_text(text: str, name: str) -> Plan:
    """Return the plan of a YAML or JSON text; ``name`` stands for the file in errors."""
    return _plan_from_document(read_yaml(text, name))


def plan_from_data(data: object, name: str | None = None) -> Plan:
    """Return the plan of plain data, as ``Plan.plain_data`` returns it or a file holds it.

    Raises:
        PlanError: the data are not a plan.
    """
    return _plan_from_document(Document(data, name))  # type: ignore[arg-type]  # anything may be tried


def apply_settings(plan: Plan, settings: Iterable[str]) -> Edited:
    """Return the plan with values set by texts such as ``training.micro_batch=4``, and what followed.

    The values are YAML scalars or lists, ``null`` for what was not written, all set together before the result is
    checked; keys of the older form stand for those that took their place, as in files.

    Raises:
        PlanError: a text is not of that form, or the result is not a plan.
    """
    entries = [_setting(setting) for setting in settings]
    requested = _model_and_task(plan, dict(entries))
    moved = (present_setting(requested, *entry) for entry in entries)
    return edited(plan, dict(_given(".".join(path), value) for path, value in moved))


def _given(path: str, value: object) -> tuple[str, object]:
    """Return a setting: ``null``, where a field always has a value, takes back what was written there."""
    known = all_fields().get(path)
    return path, DEFAULT if value is None and known is not None and known.default is not None else value


def _setting(text: str) -> tuple[FieldPath, object]:
    key, equals, written = text.partition("=")
    if not equals or not key.strip():
        raise PlanError("not a setting", repr(text), "write key=value, such as training.micro_batch=4")
    try:
        return tuple(key.strip().split(".")), read_yaml(written).data
    except DocumentError as error:
        raise PlanError(error.title, error.detail, "write a number, a word or a list", Place(field=key)) from error


def _model_and_task(plan: Plan, entries: Mapping[FieldPath, object]) -> dict[str, object]:
    """Return what decides where values of the older form belong."""
    model = {**dict(plan.model), **{path[1]: value for path, value in entries.items() if path[:-1] == ("model",)}}
    spec = {path[2]: value for path, value in entries.items() if path[:-1] == ("model", "spec")}
    return {Key.TASK: entries.get((Key.TASK,), plan.task), "model": {**model, "spec": {**plan.model.spec, **spec}}}


def place_in_document(document: Document, field: str | None) -> Place:
    """Return the place of a field in a plan's document, for what only shows once the plan is estimated."""
    data = document.data if isinstance(document.data, dict) else {}
    parts = tuple(field.split(".")) if field else ()
    return place_of(document, *from_planner_form(data).origins.get(parts, parts))


def _plan_from_document(document: Document) -> Plan:
    data = document.data
    if not isinstance(data, dict):
        reason = "the plan is empty" if data is None else "a plan is a mapping of sections"
        hint = "begin with model: {name: ...}; `capacity-tui examples` has whole plans"
        raise PlanError(reason, hint=hint, place=Place(document.file, 1 if document.file else None))
    if len(document.lines) > MOST_VALUES:
        detail = f"{format_number(len(document.lines))} keys and entries"
        raise PlanError("too large for a plan", detail, f"allowed: {format_number(MOST_VALUES)}", Place(document.file))
    _check_version(data.get(Key.VERSION, CURRENT_VERSION), document)
    converted = _present_form(data, document, ())
    scenarios = converted.data.get(Key.SCENARIOS)
    if not isinstance(scenarios, dict):
        return checked_plan(converted.data, document, converted.origins)
    present: dict[str, object] = {}
    origins = dict(converted.origins)
    for name, scenario in scenarios.items():
        above = (Key.SCENARIOS, str(name))
        present[str(name)] = scenario
        if isinstance(scenario, dict):
            _check_version(scenario.get(Key.VERSION, CURRENT_VERSION), document, *above)
            inner = _present_form(scenario, document, above)
            origins |= {(*above, *path): (*above, *origin) for path, origin in inner.origins.items()}
            present[str(name)] = inner.data
    return checked_plan({**converted.data, Key.SCENARIOS: present}, document, origins)


def _present_form(data: Mapping[str, object], document: Document, above: FieldPath) -> Converted:
    """Return a plan's data, or those of a compared plan, in the present form."""
    try:
        return from_planner_form({**data, Key.VERSION: CURRENT_VERSION})
    except PlanError as error:
        field = error.place.field or ""
        place = place_of(document, *above, *field.split("."))
        raise PlanError(error.title, error.detail, error.hint, place) from None


def _check_version(version: object, document: Document, *above: str) -> None:
    """Accept every version there has been: the older form is read whatever number it carries."""
    place = place_of(document, *above, Key.VERSION)
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise PlanError("not allowed", repr(version)[:40], f"allowed: {CURRENT_VERSION}", place)
    if version > CURRENT_VERSION:
        raise PlanError(
            "written by a newer capacity-tui", f"version {version}", "update capacity-tui to read it", place
        )


_PROFILES = "capacity_tui.profiles"
_SUFFIX = ".yaml"
_SCHEMA_LINE = "# yaml-language-server:"
_COMMENT = "# "


def example_names() -> tuple[str, ...]:
    """Return the names of the example plans in alphabetical order."""
    names = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def example_text(name: str) -> str:
    """Return the YAML of an example, comments included, without the line that names its schema to editors."""
    known = example_names()
    stem = name.removesuffix(_SUFFIX)
    if stem not in known:
        close = nearest(stem, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
        raise PlanError("no example is called", repr(name[:100]), hint)
    text = (_folder() / f"{stem}{_SUFFIX}").read_text("utf-8")
    return text.partition("\n")[2] if text.startswith(_SCHEMA_LINE) else text


def example_title(name: str) -> str:
    """Return what an example is, from the first line of its comment."""
    return example_text(name).partition("\n")[0].removeprefix(_COMMENT)


def _folder() -> Traversable:
    return files(_PROFILES) / "examples"
