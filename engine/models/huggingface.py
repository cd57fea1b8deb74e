"""Model files on this machine: configurations, safetensors indexes and GGUF headers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.files import reading_error, typed_path
from capacity_tui.engine.models.gguf import GgufHeader, read_gguf
from capacity_tui.engine.models.transformer.configuration import REQUIRED, first_size, shape_from_config, text_part
from capacity_tui.engine.models.transformer.shape import (
    AT_LEAST_ONE,
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


def stored_precision(config: Mapping[str, Any]) -> str | None:
    """Return how a configuration's weights are stored, in a plan's words; None where it does not say."""
    quantization = config.get("quantization_config")
    if not isinstance(quantization, dict):
        flat = {**text_part(config), **config}
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
        size = first_size(header.metadata, keys, file, smallest=int(field in AT_LEAST_ONE))
        if size is not None:
            values[field] = size
    if "tokenizer.ggml.tokens" in header.lengths:
        values.setdefault("vocab", header.lengths["tokenizer.ggml.tokens"])
    for field in REQUIRED:
        if field not in values:
            place = Place(file, field=f"{architecture}.{names.gguf_keys[field][0]}")
            raise PlanError("a size is missing", place=place)
    if "kv_lora_rank" in values:
        rotary_key, width_key = f"{architecture}.rope.dimension_count", f"{architecture}.attention.key_length"
        rotary = first_size(header.metadata, [rotary_key], file) or 0
        if values.get("head_dim", 0) <= rotary:
            raise PlanError("a size is missing, or not above the rotary one", place=Place(file, field=width_key))
        values |= {"qk_rope_head_dim": rotary, "qk_nope_head_dim": values["head_dim"] - rotary}
    values["tied_embeddings"] = "output.weight" not in header.tensor_names
    if model is None:
        values["assumed"] = (f"{architecture} built like Llama",)
    shape = resolve_shape(values, Place(file))
    return ModelFile(shape, header.quantization, header.parameters, header.weight_bytes)
