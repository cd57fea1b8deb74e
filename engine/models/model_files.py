"""Files of models: config.json as Hugging Face writes it, and the header of a GGUF file, read with bounds."""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.files import reading, reading_error, typed_path
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
from capacity_tui.engine.units import format_number

LARGEST_CONFIG = 4 * 2**20
_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_ENTRIES = 100_000


"""Metadata entries or tensors a header may have; the largest models have some thousands."""
_MOST_ELEMENTS = 2_000_000
"""Texts of all metadata arrays, or numbers of one; large vocabularies with their merges have some hundred thousand."""
_MOST_BYTES = 256 * 2**20  # Bytes before the weights; the largest vocabularies take some ten million
_LONGEST_NAME = 65_536
_LONGEST_TEXT = 2**20  # Bytes of one text; chat templates have some ten thousand
_LONGEST_LIST = 4096  # Arrays up to this length are kept, longer ones only measured
_MOST_DIMENSIONS = 8
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What stands before the weights of a GGUF file."""

    metadata: Mapping[str, Any]  # values by key; long arrays are left out
    lengths: Mapping[str, int]  # lengths of all arrays by key
    tensor_names: frozenset[str]
    parameters: int  # weights in all tensors
    weight_bytes: int  # bytes they take, without padding
    quantization: str  # mixture the file was quantized with, else the type most bytes are of


def read_gguf(file: Path) -> GgufHeader:
    """Read the header of a GGUF file (version 2 or 3, little-endian); raises PlanError where it is damaged."""
    try:
        if not file.is_file() and file.exists():
            raise PlanError("not a file", place=Place(str(file)))
        with file.open("rb") as stream:
            return _Reader(stream, str(file), file.stat().st_size).header()
    except OSError as error:
        raise reading_error(error, file) from error


class _Reader:
    """Reads one value after another, and knows the key it is at for errors."""

    def __init__(self, stream: BinaryIO, file: str, size: int) -> None:
        self.stream = stream
        self.file = file
        self.size = size
        self.key = ""
        self.lengths: dict[str, int] = {}
        self.texts = 0
        self.position = 0

    def header(self) -> GgufHeader:
        """Read the whole header."""
        if self._bytes(4) != _MAGIC:
            raise self._refusal("not a GGUF file")
        version = self._number("I")
        if version not in _VERSIONS:
            raise self._refusal("unknown GGUF version", f"{version}")
        tensors = self._count("Q", _MOST_ENTRIES)
        entries = self._count("Q", _MOST_ENTRIES)
        metadata: dict[str, Any] = {}
        for _ in range(entries):
            self.key = ""
            self.key = self._text(_LONGEST_NAME)
            value = self._value(int(self._number("I")))
            if value is not None:
                metadata[self.key] = value
        return self._with_tensors(metadata, tensors)

    def _with_tensors(self, metadata: dict[str, Any], tensors: int) -> GgufHeader:
        """Read the tensor descriptions and add them up."""
        types = load_file_names().gguf_types
        names, parameters, bytes_of = set(), 0, Counter[str]()
        for _ in range(tensors):
            self.key = "tensors"
            self.key = self._text(_LONGEST_NAME)
            names.add(self.key)
            dimensions = self._count("I", _MOST_DIMENSIONS)
            elements = math.prod(int(self._number("Q")) for _ in range(dimensions))
            kind = int(self._number("I"))
            if kind not in types:
                raise self._refusal("unknown tensor type", f"{kind}")
            self._number("Q")
            name, block_elements, block_bytes = types[kind]
            parameters += elements
            bytes_of[name] += elements // block_elements * block_bytes
        file_type = metadata.get("general.file_type")
        mixture = load_file_names().gguf_file_types.get(file_type) if isinstance(file_type, int) else None
        most = bytes_of.most_common(1)[0][0].casefold() if bytes_of else "unknown"
        total = bytes_of.total()
        return GgufHeader(metadata, self.lengths, frozenset(names), parameters, total, mixture or most)

    def _value(self, kind: int) -> Any:
        """Read a value of a kind; None for an array too long to keep."""
        if kind == _TEXT:
            return self._text(_LONGEST_TEXT)
        if kind == _ARRAY:
            return self._array()
        return self._number(self._code(kind))

    def _array(self) -> list[Any] | None:
        kind = int(self._number("I"))
        length = self._count("Q", _MOST_ELEMENTS)
        self.lengths[self.key] = length
        keep = length <= _LONGEST_LIST
        if kind == _TEXT:
            self.texts += length
            if self.texts > _MOST_ELEMENTS:
                raise self._refusal("too many texts", f"more than {format_number(_MOST_ELEMENTS)}")
            return self._list(lambda: self._text(_LONGEST_TEXT), length, keep)
        code = self._code(kind)
        if keep:
            return self._list(lambda: self._number(code), length, keep)
        self._skip(length * struct.calcsize(f"<{code}"))
        return None

    def _list(self, read: Callable[[], Any], length: int, keep: bool) -> list[Any] | None:
        if keep:
            return [read() for _ in range(length)]
        for _ in range(length):
            self._skip(self._count("Q", _LONGEST_TEXT))
        return None

    def _code(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise self._refusal("unknown kind of value", f"{kind}")
        return _SCALARS[kind]

    def _text(self, longest: int) -> str:
        return printable(self._bytes(self._count("Q", longest)).decode("utf-8", errors="replace"))

    def _count(self, code: str, largest: int) -> int:
        count = int(self._number(code))
        if count > largest:
            raise self._refusal("a count is out of range", format_number(count))
        return count

    def _number(self, code: str) -> float:
        number: float = struct.unpack(f"<{code}", self._bytes(struct.calcsize(f"<{code}")))[0]
        return number

    def _skip(self, count: int) -> None:
        self._advance(count)
        if self.position > self.size:
            raise self._refusal("the file ends early")
        self.stream.seek(count, 1)

    def _bytes(self, count: int) -> bytes:
        self._advance(count)
        content = self.stream.read(count)
        if len(content) < count:
            raise self._refusal("the file ends early")
        return content

    def _advance(self, count: int) -> None:
        self.position += count
        if self.position > _MOST_BYTES:
            raise self._refusal("the header is too long", f"more than {_MOST_BYTES // 2**20} MiB")

    def _refusal(self, title: str, detail: str = "") -> PlanError:
        return PlanError(title, detail, "fetch the file again", Place(self.file, field=self.key or None))


"""Bytes a configuration may have; real ones have a few thousand."""
LARGEST_INDEX = 64 * 2**20
"""Bytes an index may have: it names every tensor, of which the largest models have some hundred thousand."""
LARGEST_TOTAL = 10**18  # Bytes of weights an index may speak of
_PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What a model file says."""

    shape: TransformerShape  # the model's sizes; ``shape.assumed`` names what the file leaves open
    weights: str | None = None  # how its weights are stored, in a plan's words (``bf16``, ``gptq-4``, ``q4_k_m`` ...)
    parameters: int | None = None  # weights stored, counted tensor by tensor, where the file lists them
    weight_bytes: int | None = None  # their bytes, where the file says


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
    with reading(file):
        if file.exists() and not file.is_file():
            raise PlanError("not a file", hint="name a config.json, an index or a .gguf", place=place)
        with file.open("rb") as stream:
            content = stream.read(largest + 1)
    if len(content) > largest:
        raise PlanError("too large for a model's description", f"more than {format_number(largest)} bytes", place=place)
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
