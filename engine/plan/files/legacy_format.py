"""The older plan form: batch size, epochs, precision and optimizer stand with the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.models import is_classical, load_plugins

Path: TypeAlias = tuple[str, ...]

_OPTIMIZER: Path = ("training", "optimizer")
OLDER_KEYS: Mapping[Path, Path] = {
    ("model", "optimization"): _OPTIMIZER,
    ("model", "learning_rate"): ("training", "learning_rate"),
    ("hardware", "parallel_devices"): ("hardware", "devices"),
}
# A classical algorithm keeps these in its spec, where its formulas look for them.
_TRAINING_MOVES: Mapping[Path, Path] = {
    ("model", "spec", "n"): ("training", "samples"),
    ("model", "spec", "n_tokens"): ("training", "tokens"),
    ("model", "spec", "optimizer"): _OPTIMIZER,
    ("model", "spec", "batch_size"): ("training", "micro_batch"),
    ("model", "spec", "epochs"): ("training", "epochs"),
    ("model", "spec", "precision"): ("training", "precision"),
    ("model", "spec", "seq_len"): ("training", "seq_len"),
}
_INFERENCE_MOVES: Mapping[Path, Path] = {
    ("model", "spec", "batch_size"): ("inference", "batch"),
    ("model", "spec", "precision"): ("inference", "weights"),
    ("model", "spec", "seq_len"): ("inference", "prompt_tokens"),
}
SPEC_NAMES: Mapping[str, str] = {old[-1]: ".".join(new) for old, new in _TRAINING_MOVES.items()}
"""Names that ``model.spec`` of a model that is trained in steps takes for fields of the plan, with those fields."""
# AdamW differs from Adam in how weights decay, not in what it keeps or computes.
_SAME_OPTIMIZER = {"adam": "adamw"}


@dataclass(frozen=True, slots=True)
class Converted:
    """A plan's data in the present form.

    Attributes:
        data: the data.
        origins: where a moved value stood, by its present path.
    """

    data: dict[str, object]
    origins: Mapping[Path, Path] = field(default_factory=dict)


def from_planner_form(data: Mapping[str, object]) -> Converted:
    """Return plan data with the older form's keys where they belong now; other keys are left alone.

    Raises:
        PlanError: a value is given in its old and in its new place.
    """
    converted = _copied(data)
    origins: dict[Path, Path] = {}
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


def present_setting(data: Mapping[str, object], path: Path, value: object) -> tuple[Path, object]:
    """Return where a single value of the older form belongs now, and how it is written there.

    Args:
        data: the plan it is meant for: its task, and its model's name and spec.
        path: where the older form has it; paths of the present form are returned as they are.
        value: the value.
    """
    present = _moves(dict(data)).get(path, path)
    if present == _OPTIMIZER and isinstance(value, str):
        value = _SAME_OPTIMIZER.get(value.lower(), value)
    return present, value


def _moves(data: dict[str, object]) -> dict[Path, Path]:
    model = data.get("model")
    if isinstance(model, dict) and (is_classical(model.get("name")) or _is_plugin(model)):
        return dict(OLDER_KEYS)
    return {**OLDER_KEYS, **(_INFERENCE_MOVES if data.get("task") == "infer" else _TRAINING_MOVES)}


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


def _join_epochs(data: dict[str, object], origins: Mapping[Path, Path]) -> None:
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


def _mapping_at(data: dict[str, object], path: Path, make: bool = False) -> dict[str, object] | None:
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
