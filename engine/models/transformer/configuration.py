"""From the configuration of a published model, as its class reads it, to the shape of a transformer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.models.model_parts import NO_WEIGHTS, ModelPart, load_model_parts
from capacity_tui.engine.models.transformer.shape import (
    AT_LEAST_ONE,
    LARGEST_SIZE,
    PARTS,
    Condition,
    ModelClass,
    TransformerShape,
    load_file_names,
    load_traits,
    resolve_shape,
)
from capacity_tui.engine.printable import printable
from capacity_tui.engine.units import format_number

REQUIRED = ("layers", "hidden", "heads", "vocab")
_TIED = "tie_word_embeddings"
_MOST_NAMED = 8  # networks that a refusal names
TOWERS = ("vision_config", "audio_config")
_NESTED = ("text_config", "llm_config", "language_config")
_FULL = "full_attention"
_LAYER_TYPES = frozenset({_FULL, "sliding_attention", "chunked_attention", "linear_attention"})


def shape_from_config(config: Mapping[str, Any], file: str | None = None) -> TransformerShape:
    """Return the shape a model's configuration describes; see ``fields_from_config``."""
    return resolve_shape(fields_from_config(config, file), Place(file))


def fields_from_config(config: Mapping[str, Any], file: str | None = None) -> dict[str, Any]:
    """Return the fields of the shape that a model's configuration describes, as ``resolve_shape`` wants them.

    Args:
        config: the content of a ``config.json``, with the parts that it nests.
        file: where it came from, named in errors.

    Raises:
        PlanError: a size is missing or is not a number, or no count is known of the class or of a part.
    """
    known, parts = load_traits().classes, load_model_parts()
    name, text = _class_name(config), text_part(config)
    part = parts.of_class(name, known)
    like = str(part.like or name)
    # A class without a nested text is like none that has one.
    with_text = like in parts.classes and bool(text) and (like == name or like not in known)
    part, like = (part, like) if with_text or not text else (ModelPart(), name)
    flat = _flattened(config, text, part)
    _refuse_unknown_parts(flat, part, file)
    counted_as = part.counted_as or _counted_as(like, text if with_text else {})
    if name and counted_as not in known:
        of_text = f" with a text of kind {printable(str(text.get('model_type')))}" if with_text else ""
        raise PlanError(
            f"{name}{of_text}: a class whose weights are not known", hint=_instead(config), place=Place(file)
        )
    model = known.get(counted_as, ModelClass())
    computed = parts.fields(part, flat, file)
    values = _values(flat, model, file, computed)
    for condition in (*load_file_names().conditions, *model.conditions):
        _apply(condition, flat, values)
    values |= computed
    values["architecture"] = counted_as
    values["assumed"] = _assumed(flat, name, counted_as, part)
    values["tower_weights"] = parts.tower_weights(part, flat, file)
    return {**values, "other_weights": parts.other_weights(part, flat, file)}


def _instead(config: Mapping[str, Any]) -> str:
    """Return what a plan may name in place of a class that is not known: networks of its kind, else a file."""
    kind = str(config.get("model_type") or "").replace("_", "-")
    networks = [name for name in load_catalog().networks if kind and f"{name}-".startswith(f"{kind}-")]
    if networks:
        return f"name the network: {', '.join(networks[:_MOST_NAMED])}"
    return "name its GGUF file, or its sizes in model.spec; or, in a copy, the class of a model that is built alike"


def _flattened(config: Mapping[str, Any], text: Mapping[str, Any], part: ModelPart) -> dict[str, Any]:
    """Return a configuration with the keys of its text beside its own; whether its head is tied, it says itself."""
    flat = {**part.omitted, **config, **{key: value for key, value in text.items() if value is not None}}
    tied = config.get(_TIED, part.omitted.get(_TIED))
    return flat | ({_TIED: tied} if isinstance(tied, bool) else {})


def _refuse_unknown_parts(config: Mapping[str, Any], part: ModelPart, file: str | None) -> None:
    for key, words in load_file_names().refused.items():
        if config.get(key) and not part.counts(key):
            hint = "name its GGUF file, of which each tensor is counted"
            raise PlanError(f"{words}: weights that are not known", hint=hint, place=Place(file, field=key))


def _counted_as(name: str, text: Mapping[str, Any]) -> str:
    """Return the class whose structure a class has, of one with a part for its text that of this part."""
    counted_as = load_file_names().counted_as
    return counted_as.get(str(text.get("model_type") or name), "") if text else counted_as.get(name, name)


def text_part(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a multimodal model's text decoder, empty if there is none."""
    parts = [config[key] for key in _NESTED if isinstance(config.get(key), dict)]
    return parts[0] if parts else {}


def _values(
    config: Mapping[str, Any], model: ModelClass, file: str | None, computed: Mapping[str, Any]
) -> dict[str, Any]:
    """Collect the shape's fields: a class's own, overlaid by what the configuration says; not those ``computed``."""
    names = load_file_names()
    values = {**model.omitted, **model.fields, **computed}
    for field, usual in names.config_keys.items():
        if field in computed:
            continue
        keys = [model.keys[field], *usual] if field in model.keys else usual
        size = first_size(config, keys, file, smallest=int(field in AT_LEAST_ONE))
        if size is not None:
            values[field] = size
        elif field in REQUIRED and field not in values and "vision" not in values:
            hint = f"expected one of {', '.join(keys)}"
            raise PlanError("a size is missing", hint=hint, place=Place(file, field=keys[0]))
    for part, keys_of in names.part_keys.items():
        read = {field: first_size(config, keys, file) for field, keys in keys_of.items()}
        sizes = {**values.get(part, {}), **{field: size for field, size in read.items() if size is not None}}
        if {field.name for field in fields(PARTS[part]) if field.default is MISSING} <= sizes.keys():
            values[part] = sizes
    return values | _layer_pattern(config, values) | _compressed_layers(config, values)


def first_size(config: Mapping[str, Any], keys: list[str], file: str | None, smallest: int = 0) -> float | None:
    """Return the first size present; of a list with one entry a layer, the mean."""
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        sizes = value if isinstance(value, list) and value else [value]
        if any(isinstance(size, bool) or not isinstance(size, int | float) for size in sizes):
            raise PlanError("not a number", f"{value!r:.60}", place=Place(file, field=key))
        if not all(smallest <= size <= LARGEST_SIZE for size in sizes):
            allowed = f"allowed: {smallest} to {format_number(LARGEST_SIZE)}"
            raise PlanError("out of range", f"{value!r:.60}", allowed, Place(file, field=key))
        return sizes[0] if len(set(sizes)) == 1 else sum(sizes) / len(sizes)
    return None


def _layer_pattern(config: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return how often a layer attends to everything, from a list with one kind a layer."""
    kinds = config.get("layer_types")
    if not isinstance(kinds, list) or not kinds or not set(map(str, kinds)) <= _LAYER_TYPES:
        return {}
    full = kinds.count(_FULL)
    if full == len(kinds):
        return {"sliding_window": 0}
    first = kinds.index(_FULL) + 1 if full else 0
    regular = full and values["layers"] // first == full
    return {"full_attention_every": first if regular or not full else len(kinds) / (full + 0.5)}


def _compressed_layers(config: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many layers compress lightly, heavily or not, from a list with one ratio a layer."""
    ratios, part = config.get("compress_ratios"), values.get("compression")
    if part is None or not isinstance(ratios, list):
        return {}
    counted = ratios[: int(values["layers"])]
    kinds = {"dense_layers": 0, "light_layers": part["light_rate"], "heavy_layers": part["heavy_rate"]}
    return {"compression": {**part, **{field: counted.count(ratio) for field, ratio in kinds.items()}}}


def _apply(condition: Condition, config: Mapping[str, Any], values: dict[str, Any]) -> None:
    """Change the fields a condition changes, if it holds."""
    if not condition.holds(config):
        return
    biases = set(values.get("biases", ())) | set(condition.fields.get("biases", ()))
    values.update(condition.fields)
    values["biases"] = biases - set(condition.without)


def _class_name(config: Mapping[str, Any]) -> str:
    """Return the model class a configuration names, else its model type."""
    architectures = config.get("architectures")
    if isinstance(architectures, list) and architectures:
        return printable(str(architectures[0]))
    return printable(str(config.get("model_type") or ""))


def _assumed(config: Mapping[str, Any], name: str, counted_as: str, part: ModelPart) -> tuple[str, ...]:
    """Name what the counts take for granted or leave out."""
    left_out = {key: words for key, words in load_file_names().uncounted.items() if config.get(key)}
    if part.left_out:
        left_out[part.left_out] = part.left_out
    if part.other_weights != NO_WEIGHTS and left_out.keys() & set(TOWERS):
        left_out = {key: words for key, words in left_out.items() if key not in TOWERS}
        return ("pictures and sound not counted: their towers' weights alone", *not_counted(left_out.values()))
    if not name:
        return ("a model without a class built like Llama", *not_counted(left_out.values()))
    alike = name == counted_as or part != ModelPart()
    return (*(() if alike else (f"{name} counted as {counted_as}",)), *not_counted(left_out.values()))


def not_counted(parts: Iterable[str]) -> tuple[str, ...]:
    """Say what the counts leave out."""
    return tuple(f"{part} not counted" for part in parts)
