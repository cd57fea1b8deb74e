"""The shape of a transformer, which parameters, operations and cache follow from, and the traits of its model class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.models.transformer.latent_attention import ATTENTION_PARTS, LatentSizes
from capacity_tui.engine.numeric import Number, any_true, present
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_number

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """What a configuration key changes when it has a certain value."""

    key: str
    value: object  # the value it must have
    unless: str = ""  # another key that, when true, keeps the condition from holding
    fields: Fields = field(default_factory=dict)  # shape fields it sets; biases are added to those there are
    without: tuple[str, ...] = ()  # biases it takes away

    def holds(self, config: Fields) -> bool:
        """Return whether a configuration meets the condition."""
        return self.key in config and config[self.key] == self.value and not config.get(self.unless, False)


@dataclass(frozen=True, slots=True)
class ModelClass:
    """What one model class adds to Llama's structure."""

    fields: Fields = field(default_factory=dict)
    # configuration keys that differ from the usual ones, by shape field
    keys: Mapping[str, str] = field(default_factory=dict)
    omitted: Fields = field(default_factory=dict)  # sizes its published configurations leave out
    conditions: tuple[Condition, ...] = ()  # what further configuration keys change


@dataclass(frozen=True, slots=True)
class Traits:
    """Shape fields by family, of decoders of the modern kind, by model class and by catalogue id."""

    wide: frozenset[str]  # kinds and classes of models that are published in 32 bits
    narrow: frozenset[str]  # models of these that are published in 16 all the same

    families: Mapping[str, Fields]
    modern: Fields
    classes: Mapping[str, ModelClass]
    models: Mapping[str, Fields]


@dataclass(frozen=True, slots=True)
class FileNames:
    """How model files name what a shape needs: the content of ``profiles/model_files.yaml``."""

    config_keys: Mapping[str, list[str]]  # configuration keys by shape field
    part_keys: Mapping[str, Mapping[str, list[str]]]  # configuration keys by part and its field
    conditions: tuple[Condition, ...]  # what any class's configuration may switch
    uncounted: Mapping[str, str]  # what the counts leave out, by the key that announces it
    refused: Mapping[str, str]  # what no count stands for, likewise
    counted_as: Mapping[str, str]  # class by other class, model type or GGUF architecture
    gguf_keys: Mapping[str, list[str]]  # GGUF metadata keys by shape field
    gguf_types: Mapping[int, tuple[str, int, int]]  # name, elements and bytes of a block, by number of the tensor type
    gguf_file_types: Mapping[int, str]  # name of a quantization mixture by its number


@cache
def load_traits() -> Traits:
    """Read the traits that come with the program."""
    content = _read("traits.yaml")
    classes = {name: _model_class(entry) for name, entry in content["classes"].items()}
    wide, narrow = (frozenset(content[f"published_in_{bits}_bits"]) for bits in (32, 16))
    return Traits(wide, narrow, content["families"], content["modern"], classes, content["models"])


@cache
def load_file_names() -> FileNames:
    """Read the names model files use."""
    content = _read("model_files.yaml")
    return FileNames(
        config_keys=content["config_keys"],
        part_keys=content["part_keys"],
        conditions=_conditions(content["when"]),
        uncounted=content["uncounted"],
        refused=content["refused"],
        counted_as=content["counted_as"],
        gguf_keys=content["gguf_keys"],
        gguf_types={row[0]: (name, row[1], row[2]) for name, row in content["gguf_types"].items()},
        gguf_file_types={number: name for name, number in content["gguf_file_types"].items()},
    )


def class_fields(name: str | None) -> Fields:
    """Return the shape fields of a model class; none for an unknown class."""
    return load_traits().classes.get(name or "", ModelClass()).fields


def _model_class(entry: Fields) -> ModelClass:
    fields = {name: value for name, value in entry.items() if name not in ("keys", "omitted", "when")}
    return ModelClass(fields, entry.get("keys", {}), entry.get("omitted", {}), _conditions(entry.get("when", [])))


def _conditions(entries: list[dict[str, Any]]) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            entry["key"], entry["is"], entry.get("unless", ""), entry.get("fields", {}), tuple(entry.get("without", ()))
        )
        for entry in entries
    )


def _read(name: str) -> dict[str, Any]:
    return parse_shipped(name)


@dataclass(frozen=True, slots=True)
class Vision:
    """Images in, classes out."""

    patch: Number  # side of a square patch, pixels
    image: Number  # side of the square image, pixels
    channels: Number  # colours
    classes: Number = 0  # outputs of the classifier
    extra_tokens: Number = 1  # tokens that stand with the patches: one for the class, registers
    frames: Number = 1  # pictures of a film whose patches are read together

    @property
    def patches(self) -> Number:
        """Patches in what is read: (image / patch)², of each frame."""
        return self.frames * (self.image // self.patch) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerShape(LatentSizes):
    """Sizes of a transformer: those of its attention, and these. Numeric fields may be arrays; 0 means absent."""

    ffn: Number  # width of the feed-forward of dense layers
    vocab: Number  # rows of the token embedding
    kind: str = "decoder"  # ``decoder``, ``encoder``, ``encoder-decoder`` or ``vit``
    architecture: str = ""  # model class the shape follows, empty if none
    gated: bool = True  # whether feed-forwards have a gate projection beside the up projection
    tied_embeddings: bool = False  # whether the output head is the token embedding
    max_context: Number = 0
    encoder_layers: Number = 0  # blocks of the encoder of an encoder-decoder
    source_positions: Number = 0  # tokens that an encoder of sound always reads
    experts: Number = 0  # routed experts of a mixture layer
    experts_active: Number = 0  # routed experts a token visits
    experts_shared: Number = 0  # experts every token visits
    moe_ffn: Number = 0  # width of a routed expert
    shared_ffn: Number = 0  # width of a shared expert
    first_dense_layers: Number = 0  # leading layers without experts
    plain_layers: Number = 0  # layers without any feed-forward
    moe_every: Number = 1  # after those, every n-th layer has experts
    norm: str = "RMSNorm"  # ``RMSNorm`` or ``LayerNorm``
    norm_vectors: Number = 1  # learned vectors of one norm: 1 scale, 2 scale and shift, 0 none
    norms_per_layer: Number = 2  # norms of width ``hidden`` in a block
    outer_norms: Number = 1  # norms of width ``hidden`` outside the blocks
    positions: Number = 0  # rows of the learned position table
    token_types: Number = 0  # rows of the token type table
    relative_buckets: Number = 0  # buckets of the relative position bias of each stack
    embedding_width: Number = 0  # width of the token embedding where it differs from ``hidden``
    pooler: bool = False  # a dense layer over the first token
    shared_expert_gate: bool = False  # the shared expert's output is scaled by a learned gate
    fused_experts: bool = False  # a layer's experts are one tensor, no modules that adapters stand beside
    split_for_packing: bool = False  # Transformers makes modules of them where it packs weights
    router_scales: bool = False  # the router scales its input and each expert's output
    # weights that no other size stands for: towers of pictures and sound, what joins them, heads
    other_weights: Number = 0
    tower_weights: Number = 0  # of them, those of towers
    # how often a token passes the weights of a layer; ALBERT's one layer, used twelve times, is twelve
    layer_uses: Number = 1
    vision: Vision | None = None  # images in, classes out; of vision models
    assumed: tuple[str, ...] = ()  # what the shape takes for granted because its source does not say

    @property
    def fixed_length(self) -> int:
        """Tokens that it always reads: its sound, or the patches of an image and its class; 0 where a plan says."""
        if self.vision is not None:
            return int(self.vision.patches + self.vision.extra_tokens)
        return int(self.source_positions)

    @property
    def is_decoder(self) -> bool:
        """Whether a token attends to those before it alone."""
        return self.kind == "decoder"

    @property
    def is_encoder(self) -> bool:
        """Whether it reads a text whole and writes none."""
        return self.kind == "encoder"

    @property
    def moe_layers(self) -> Number:
        """Layers with routed experts."""
        return present(self.experts) * ((self.layers - self.first_dense_layers) // self.moe_every)

    @property
    def moe_share(self) -> Number:
        """Share of the layers that have routed experts."""
        return self.moe_layers / self.layers

    @property
    def active_ffn(self) -> Number:
        """Width of the feed-forward a token passes in the mean layer."""
        routed = self.experts_active * self.moe_ffn + self.experts_shared * self.shared_ffn
        return (1.0 - self.moe_share) * self.ffn + self.moe_share * routed

    @property
    def dense_layers(self) -> Number:
        """Layers with one feed-forward for all tokens."""
        return self.layers - self.moe_layers - self.plain_layers

    @property
    def token_width(self) -> Number:
        """Width of the token embedding."""
        return self.embedding_width + (1 - present(self.embedding_width)) * self.hidden


LARGEST_SIZE = 10**9  # Bound of every size: far beyond anything built, and no product of sizes overflows
AT_LEAST_ONE = ("layers", "hidden", "heads", "kv_heads", "head_dim", "v_head_dim", "ffn", "moe_every", "layer_uses")
"""Sizes that every transformer has: 0 stands for absent elsewhere, here it would be no model."""

LARGEST: Mapping[str, int] = {"layers": 10**6, "encoder_layers": 10**6, "heads": 10**5, "hidden": 10**7}
"""Closer bounds of the sizes that are multiplied with each other."""

_WEIGHTS = ("other_weights", "tower_weights")
PARTS: Mapping[str, type] = {**ATTENTION_PARTS, "vision": Vision}


def resolve_shape(values: Mapping[str, Any], where: Place | None = None) -> TransformerShape:
    """Fill in what follows from other sizes, check the result, and return it as a shape.

    Args:
        values: fields of the shape by name, parts as mappings, with ``learned_positions`` and
            ``position_padding`` in place of ``positions``.
        where: the file or the plan's field the values came from, named in errors.

    Raises:
        PlanError: sizes are missing, out of range, or contradict each other.
    """
    known = {**values}
    where = where or Place()
    for name, value in known.items():
        if name not in _WEIGHTS:  # counts, and less than nothing where layers share weights
            _check_range(name, value, LARGEST_SIZE, where)
    for name in ("layers", "hidden", "heads"):
        if name not in known:
            raise PlanError("a size is missing", place=_at(where, name))
    _complete_attention(known, where)
    _complete_feed_forward(known)
    known.setdefault("vocab", 0)
    if known.get("kind") == "encoder-decoder":
        known.setdefault("encoder_layers", known["layers"])
    padding = known.pop("position_padding", 0)
    if known.pop("learned_positions", False):
        known.setdefault("positions", known.get("max_context", 0) + padding)
    parts = {name: PARTS[name](**known[name]) for name in PARTS if isinstance(known.get(name), Mapping)}
    shape = TransformerShape(**known | parts | {"biases": frozenset(known.get("biases", ()))})
    _check(shape, where)
    return shape


def _complete_attention(known: dict[str, Any], where: Place) -> None:
    """Fill in heads and their widths: ``hidden / heads`` unless latent attention gives its own."""
    latent = bool(np.any(known.get("kv_lora_rank", 0)))
    known.setdefault("kv_heads", known["heads"])
    if "head_dim" not in known and latent:
        known["head_dim"] = known.get("qk_nope_head_dim", 0) + known.get("qk_rope_head_dim", 0)
    if "head_dim" not in known:
        known["head_dim"] = _quotient(known["hidden"], known["heads"], "heads", where)
    known.setdefault("v_head_dim", known["head_dim"])
    known.setdefault("attention", _sharing(known["heads"], known["kv_heads"], latent))


def _complete_feed_forward(known: dict[str, Any]) -> None:
    """Fill in widths: 4 · hidden, or with a gate 8/3 · hidden to a multiple of 256; two experts active."""
    mixture = bool(np.any(known.get("experts", 0)))
    gated = known.setdefault("gated", True)
    known.setdefault("ffn", 256 * np.ceil(known["hidden"] * 8 / 3 / 256) if gated else 4 * known["hidden"])
    if mixture and "experts_active" not in known:
        known["experts_active"] = np.minimum(known["experts"], 2.0)[()]
        known["assumed"] = (*known.get("assumed", ()), "two experts active")
    known.setdefault("moe_ffn", known["ffn"] if mixture else 0)
    known.setdefault("shared_ffn", known["moe_ffn"])


def _at(where: Place, name: str) -> Place:
    """Return the place of one size within a file or a plan's field."""
    return Place(where.file, where.line, f"{where.field}.{name}" if where.field else name)


def _quotient(whole: Number, part: Number, name: str, where: Place) -> Number:
    """Divide without a remainder, or say which field does not divide."""
    if np.any(np.less(part, 1)) or np.any(np.mod(whole, np.maximum(part, 1))):
        detail = (
            f"{format_number(float(whole))} by {format_number(float(part))}"
            if np.ndim(whole) == np.ndim(part) == 0
            else ""
        )
        raise PlanError("the width does not divide into heads", detail, "give head_dim", _at(where, name))
    return whole // part


def _check(shape: TransformerShape, where: Place) -> None:
    """Refuse sizes outside their range or in contradiction."""
    for name, largest in LARGEST.items():
        _check_range(name, getattr(shape, name), largest, where)
    for name in ("layers", "hidden", "heads", "kv_heads", "head_dim"):
        size = getattr(shape, name)
        if np.any(np.less(size, 1)) or np.any(np.mod(size, 1)):
            raise PlanError("not a whole number of at least 1", place=_at(where, name))
    for name, needed in _needed(shape).items():
        if any_true(needed * np.less(getattr(shape, name), 1)):
            raise PlanError("too small", hint="allowed: at least 1", place=_at(where, name))
    for name in PARTS:
        _check_part(name, getattr(shape, name), where)
    conflicts = {
        "kv_heads": (np.any(np.mod(shape.heads, shape.kv_heads)), "heads is not a multiple of kv_heads"),
        "experts_active": (np.any(shape.experts_active > shape.experts), "more experts active than exist"),
        "first_dense_layers": (np.any(shape.first_dense_layers > shape.layers), "more of them than layers"),
        "plain_layers": (np.any(shape.dense_layers < 0), "more of them than layers without experts"),
    }
    for name, (conflict, title) in conflicts.items():
        if conflict:
            raise PlanError(title, place=_at(where, name))


def _needed(shape: TransformerShape) -> dict[str, Number]:
    """Return 1 for sizes that must be at least 1, by what the shape has."""
    routed = present(shape.experts)
    needed: dict[str, Number] = dict.fromkeys(AT_LEAST_ONE, 1.0)
    needed |= {"experts_active": routed, "moe_ffn": routed, "shared_ffn": routed * present(shape.experts_shared)}
    return needed | {"vocab": float(shape.vision is None)} | dict.fromkeys(shape.attention_kind.needed, 1.0)


def _check_part(name: str, part: object, where: Place) -> None:
    """Refuse a part without one of its sizes; only its kinds of layers may be absent, and sizes that have a default."""
    if not is_dataclass(part):
        return
    for entry in fields(part):
        size = getattr(part, entry.name)
        is_optional = entry.name.endswith("_layers") or entry.default is not MISSING
        if not is_optional and not isinstance(size, bool) and np.any(np.less(size, 1)):
            raise PlanError("too small", hint="allowed: at least 1", place=_at(where, f"{name}.{entry.name}"))


def _check_range(name: str, value: object, largest: int, where: Place) -> None:
    """Refuse a size that is negative, not finite or larger than a bound."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.ndarray):
        return
    if not np.all((value >= 0) & (value <= largest)):
        raise PlanError("out of range", f"0 to {format_number(largest)}", place=_at(where, name))


def _sharing(heads: Number, kv_heads: Number, latent: bool) -> str:
    """Name how queries share keys and values; of arrays, the general case."""
    if latent or np.all(np.equal(heads, kv_heads)):
        return "MLA" if latent else "MHA"
    return "MQA" if np.all(np.equal(kv_heads, 1)) else "GQA"
