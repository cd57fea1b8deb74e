"""Model files on this machine: configurations, safetensors indexes and GGUF headers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.files import reading_error, typed_path
from capacity_tui.engine.models.gguf import GgufHeader, read_gguf
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
from capacity_tui.engine.record import dataclass

LARGEST_CONFIG = 4 * 2**20
"""Bytes a configuration may have; real ones have a few thousand."""
LARGEST_INDEX = 64 * 2**20
"""Bytes an index may have: it names every tensor, of which the largest models have some hundred thousand."""
LARGEST_TOTAL = 10**18
"""Bytes of weights an index may speak of."""

_REQUIRED = ("layers", "hidden", "heads", "vocab")
_TIED = "tie_word_embeddings"
TOWERS = ("vision_config", "audio_config")
_NESTED = ("text_config", "llm_config", "language_config")
_FULL = "full_attention"
_LAYER_TYPES = frozenset({_FULL, "sliding_attention", "chunked_attention", "linear_attention"})
_PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What a model file says.

    Attributes:
        shape: the model's sizes; ``shape.assumed`` names what the file leaves open.
        weights: how its weights are stored, in a plan's words (``bf16``, ``gptq-4``, ``q4_k_m`` ...).
        parameters: weights stored, counted tensor by tensor, where the file lists them.
        weight_bytes: their bytes, where the file says.
    """

    shape: TransformerShape
    weights: str | None = None
    parameters: int | None = None
    weight_bytes: int | None = None


def shape_from_huggingface(path: str | Path) -> TransformerShape:
    """Return the shape of the model a file describes; see ``read_model_file``."""
    return read_model_file(path).shape


def read_model_file(path: str | Path) -> ModelFile:
    """Read a ``config.json``, a safetensors index with one next to it, a ``.gguf``, or the folder of a model.

    Raises:
        StorageError: the file cannot be read.
        PlanError: it is not what its name says, or lacks a size; names file and key.
    """
    file = typed_path(str(path))
    try:
        file = file / "config.json" if file.is_dir() else file
    except OSError as error:
        raise reading_error(error, file) from error
    if file.suffix == ".safetensors":
        hint = "name the config.json beside it, the folder, or a model.safetensors.index.json"
        raise PlanError("holds weights, not the sizes of the model", hint=hint, place=Place(str(file)))
    if file.suffix == ".gguf":
        return _from_gguf(read_gguf(file), str(file))
    if not file.name.endswith(".index.json"):
        config = read_json(file, LARGEST_CONFIG)
        return ModelFile(shape_from_config(config, str(file)), stored_precision(config))
    index = read_json(file, LARGEST_INDEX)
    metadata = index.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(total, bool) or not isinstance(total, int | float) or not 0 <= total <= LARGEST_TOTAL:
        raise PlanError("no total size", place=Place(str(file), field="metadata.total_size"))
    config_file = file.parent / "config.json"
    config = read_json(config_file, LARGEST_CONFIG)
    shape = shape_from_config(config, str(config_file))
    return ModelFile(shape, stored_precision(config), weight_bytes=int(total))


def read_json(file: Path, largest: int) -> dict[str, Any]:
    """Return the mapping in a JSON file of bounded size."""
    place = Place(str(file))
    try:
        if file.exists() and not file.is_file():
            raise PlanError("not a file", hint="name a config.json, an index or a .gguf", place=place)
        with file.open("rb") as stream:
            content = stream.read(largest + 1)
    except (OSError, ValueError) as error:
        raise reading_error(error, file) from error
    if len(content) > largest:
        raise PlanError("too large for a model's description", f"more than {largest:,} bytes", place=place)
    try:
        data = json.loads(content)
    except json.JSONDecodeError as error:
        hint = "name a model's config.json, an index or a .gguf"
        raise PlanError("not JSON", error.msg, hint, Place(str(file), error.lineno)) from None
    except (ValueError, RecursionError) as error:
        reason = "not text" if isinstance(error, UnicodeDecodeError) else "nested too deeply"
        raise PlanError("not JSON", reason, "name a model's config.json, an index or a .gguf", place) from None
    if not isinstance(data, dict):
        raise PlanError("not a JSON object", hint="name a model's config.json", place=place)
    return data


def shape_from_config(config: Mapping[str, Any], file: str | None = None) -> TransformerShape:
    """Return the shape a model's configuration describes.

    Args:
        config: the content of a ``config.json``, with the parts that it nests.
        file: where it came from, named in errors.

    Raises:
        PlanError: a size is missing or is not a number, or no count is known of the class or of a part.
    """
    known, parts = load_traits().classes, load_model_parts()
    name, text = _class_name(config), _text_part(config)
    with_text = name in parts.classes and bool(text)
    part = parts.of_class(name, known) if with_text or not text else ModelPart()
    flat = _flattened(config, text, part)
    _refuse_unknown_parts(flat, file)
    counted_as = part.counted_as or _counted_as(name, text if with_text else {})
    if name and counted_as not in known:
        of_text = f" with a text of kind {printable(str(text.get('model_type')))}" if with_text else ""
        hint = "name its GGUF file, or its sizes in model.spec; or, in a copy, the class of a model that is built alike"
        raise PlanError(f"{name}{of_text}: a class whose weights are not known", hint=hint, place=Place(file))
    model = known.get(counted_as, ModelClass())
    computed = parts.fields(part, flat, file)
    values = _values(flat, model, file, computed)
    for condition in (*load_file_names().conditions, *model.conditions):
        _apply(condition, flat, values)
    values |= computed
    values["architecture"] = counted_as
    values["assumed"] = _assumed(flat, name, counted_as, part)
    return replace(resolve_shape(values, Place(file)), other_weights=parts.other_weights(part, flat, file))


def _flattened(config: Mapping[str, Any], text: Mapping[str, Any], part: ModelPart) -> dict[str, Any]:
    """Return a configuration with the keys of its text beside its own; whether its head is tied, it says itself."""
    flat = {**part.omitted, **config, **{key: value for key, value in text.items() if value is not None}}
    tied = config.get(_TIED, part.omitted.get(_TIED))
    return flat | ({_TIED: tied} if isinstance(tied, bool) else {})


def _refuse_unknown_parts(config: Mapping[str, Any], file: str | None) -> None:
    for key, words in load_file_names().refused.items():
        if config.get(key):
            hint = "name its GGUF file, of which each tensor is counted"
            raise PlanError(f"{words}: weights that are not known", hint=hint, place=Place(file, field=key))


def _counted_as(name: str, text: Mapping[str, Any]) -> str:
    """Return the class whose structure a class has, of one with a part for its text that of this part."""
    counted_as = load_file_names().counted_as
    return counted_as.get(str(text.get("model_type") or name), "") if text else counted_as.get(name, name)


def _text_part(config: Mapping[str, Any]) -> dict[str, Any]:
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
        size = _first_size(config, keys, file, smallest=int(field in AT_LEAST_ONE))
        if size is not None:
            values[field] = size
        elif field in _REQUIRED and field not in values and "vision" not in values:
            hint = f"expected one of {', '.join(keys)}"
            raise PlanError("a size is missing", hint=hint, place=Place(file, field=keys[0]))
    for part, keys_of in names.part_keys.items():
        read = {field: _first_size(config, keys, file) for field, keys in keys_of.items()}
        sizes = {**values.get(part, {}), **{field: size for field, size in read.items() if size is not None}}
        if {field.name for field in fields(PARTS[part])} <= sizes.keys():
            values[part] = sizes
    return values | _layer_pattern(config, values) | _compressed_layers(config, values)


def _first_size(config: Mapping[str, Any], keys: list[str], file: str | None, smallest: int = 0) -> float | None:
    """Return the first size present; of a list with one entry a layer, the mean."""
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        sizes = value if isinstance(value, list) and value else [value]
        if any(isinstance(size, bool) or not isinstance(size, int | float) for size in sizes):
            raise PlanError("not a number", f"{value!r:.60}", place=Place(file, field=key))
        if not all(smallest <= size <= LARGEST_SIZE for size in sizes):
            allowed = f"allowed: {smallest} to {LARGEST_SIZE:,}"
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
    if part.other_weights != NO_WEIGHTS and left_out.keys() & set(TOWERS):
        left_out = {key: words for key, words in left_out.items() if key not in TOWERS}
        return ("pictures and sound not counted: their towers' weights alone", *_left_out(left_out))
    if not name:
        return ("a model without a class built like Llama", *_left_out(left_out))
    alike = name == counted_as or part != ModelPart()
    return (*(() if alike else (f"{name} counted as {counted_as}",)), *_left_out(left_out))


def _left_out(words: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{part} not counted" for part in words.values())


def stored_precision(config: Mapping[str, Any]) -> str | None:
    """Return how a configuration's weights are stored, in a plan's words; None where it does not say."""
    quantization = config.get("quantization_config")
    if not isinstance(quantization, dict):
        flat = {**_text_part(config), **config}
        dtype = flat.get("torch_dtype") or flat.get("dtype")
        return _PRECISIONS.get(str(dtype))
    if quantization.get("load_in_4bit"):
        return printable(str(quantization.get("bnb_4bit_quant_type") or "nf4"))
    if quantization.get("load_in_8bit"):
        return "int8"
    method, bits = quantization.get("quant_method"), quantization.get("bits")
    return printable(f"{method}-{bits}" if bits else str(method)) if method else None


def _from_gguf(header: GgufHeader, file: str) -> ModelFile:
    """Turn a GGUF header into a shape, exact counts and the name of its quantization."""
    names = load_file_names()
    architecture = str(header.metadata.get("general.architecture", ""))
    counted_as = names.counted_as.get(architecture, architecture)
    model = load_traits().classes.get(counted_as)
    values: dict[str, Any] = {**(model or ModelClass()).fields, "architecture": counted_as}
    for field, suffixes in names.gguf_keys.items():
        keys = [f"{architecture}.{suffix}" for suffix in suffixes]
        size = _first_size(header.metadata, keys, file, smallest=int(field in AT_LEAST_ONE))
        if size is not None:
            values[field] = size
    if "tokenizer.ggml.tokens" in header.lengths:
        values.setdefault("vocab", header.lengths["tokenizer.ggml.tokens"])
    for field in _REQUIRED:
        if field not in values:
            place = Place(file, field=f"{architecture}.{names.gguf_keys[field][0]}")
            raise PlanError("a size is missing", place=place)
    if "kv_lora_rank" in values:
        rotary_key, width_key = f"{architecture}.rope.dimension_count", f"{architecture}.attention.key_length"
        rotary = _first_size(header.metadata, [rotary_key], file) or 0
        if values.get("head_dim", 0) <= rotary:
            raise PlanError("a size is missing, or not above the rotary one", place=Place(file, field=width_key))
        values |= {"qk_rope_head_dim": rotary, "qk_nope_head_dim": values["head_dim"] - rotary}
    values["tied_embeddings"] = "output.weight" not in header.tensor_names
    if model is None:
        values["assumed"] = (f"{architecture} built like Llama",)
    shape = resolve_shape(values, Place(file))
    return ModelFile(shape, header.quantization, header.parameters, header.weight_bytes)
