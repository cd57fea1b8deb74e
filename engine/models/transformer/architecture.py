"""From a catalogue row and the plan's overrides to the shape of a transformer."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import create_model

from capacity_tui.engine.catalog import nearest
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.spec import LARGEST_SIZE, Spec
from capacity_tui.engine.models.transformer.configuration import fields_from_config, not_counted
from capacity_tui.engine.models.transformer.counts import count_parameters
from capacity_tui.engine.models.transformer.shape import TransformerShape, class_fields, load_traits, resolve_shape
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.schema import Knob
from capacity_tui.engine.units import format_count, format_number, parse_count, parse_length

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Architecture

ALIASES: Mapping[str, str] = {
    "d_model": "hidden",
    "hidden_size": "hidden",
    "n_layers": "layers",
    "num_layers": "layers",
    "n_heads": "heads",
    "num_heads": "heads",
    "n_kv_heads": "kv_heads",
    "d_ff": "ffn",
    "vocab_size": "vocab",
    "seq_len": "max_context",
    "num_experts": "experts",
    "top_k": "experts_active",
}

IMAGES = {"image_size": "image", "patch": "patch", "patch_size": "patch", "num_classes": "classes", "c_in": "channels"}
"""Keys about the images of a vision model, and what its shape calls them."""

SWITCHES = frozenset(field.name for field in fields(TransformerShape) if field.type == "bool") | {"learned_positions"}
NUMBERS = frozenset(field.name for field in fields(TransformerShape) if field.type == "Number")
WORDS = frozenset({"attention", "norm", "qk_norm"})
BIASES = ("qkv", "output", "mlp", "experts", "router", "head")
"""Projections that may have a bias; ``true`` stands for the first three."""

LENGTHS = frozenset({"max_context", "sliding_window"})
SPEC_KEYS = SWITCHES | NUMBERS | WORDS | {"biases"}
COLUMNS = (NUMBERS | SWITCHES | {"kind", "architecture", "attention"}) - {"positions"}


def shape_from_spec(
    row: Architecture | None, overrides: Mapping[str, object], family: str = "transformer_decoder"
) -> TransformerShape:
    """Return the shape of a catalogue architecture, or of a bare family, with the plan's overrides.

    Args:
        row: the catalogue's row; None takes the family's sizes.
        overrides: ``model.spec`` of the plan; numbers may be arrays that broadcast.
        family: ``transformer_decoder`` or ``transformer_encoder``, used without a row.

    Raises:
        PlanError: an unknown key, or sizes out of range or in contradiction.
    """
    traits = load_traits()
    images = {
        name: _number(value, Place(field=f"{Key.MODEL_SPEC}.{key}"), False)
        for key, name in IMAGES.items()
        if (value := overrides.get(key)) is not None
    }
    changes = read_overrides({key: value for key, value in overrides.items() if key not in IMAGES})
    if row is None:
        base = family_fields(family, changes)
    else:
        base = fields_from_config(row.config) if row.config else {**class_fields(row.architecture)}
        columns = () if row.config else sorted(COLUMNS)
        base |= {name: value for name in columns if (value := getattr(row, name, None)) is not None}
        base |= traits.models.get(row.id, {})
        if "vocab" not in base and "vision" not in base:
            base["vocab"] = traits.families["transformer_decoder"]["vocab"]
            base["assumed"] = (f"vocabulary of {format_number(base['vocab'])} tokens",)
        if row.left_out:
            base["assumed"] = (*base.get("assumed", ()), *not_counted([row.left_out]))
        if row.by_count:
            base = with_feed_forward(base, float(row.params_total or 0))
    if images and "vision" not in base:
        raise PlanError("only models of images have these", ", ".join(images), place=Place(field=Key.MODEL_SPEC))
    vision = {"vision": {**base["vision"], **images}} if images else {}
    return resolve_shape(_without_stale(base, changes) | changes | vision, Place(field=Key.MODEL_SPEC))


def shape_of(row: Architecture) -> TransformerShape:
    """Return the shape of a catalogue architecture, worked out once."""
    known = _SHAPES.get(row.id)
    if known is None or known[0] is not row:
        known = _SHAPES[row.id] = row, shape_from_spec(row, {})
    return known[1]


_SHAPES: dict[str, tuple[Architecture, TransformerShape]] = {}


def read_overrides(overrides: Mapping[str, object]) -> dict[str, Any]:
    """Check the names and values of ``model.spec`` and return them under the shape's own names."""
    changes: dict[str, Any] = {}
    for key, value in overrides.items():
        name = ALIASES.get(key, key)
        place = Place(field=f"{Key.MODEL_SPEC}.{key}")
        if name not in SPEC_KEYS:
            near = nearest(key, sorted(SPEC_KEYS | ALIASES.keys()), 1)
            raise PlanError("unknown key", hint=f"did you mean {near[0]}?" if near else "", place=place)
        if value is None:
            continue
        if name in SWITCHES:
            changes[name] = _switch(value, place)
        elif name in NUMBERS:
            changes[name] = _number(value, place, name in LENGTHS)
        elif name == "biases":
            changes[name] = _biases(value, place)
        else:
            changes[name] = str(value)
    return changes


def _switch(value: object, place: Place) -> bool:
    if isinstance(value, bool):
        return value
    words = {"yes": True, "true": True, "no": False, "false": False}
    if str(value).casefold() not in words:
        raise PlanError("not a switch", reprlib.repr(value), "write true or false", place)
    return words[str(value).casefold()]


def _biases(value: object, place: Place) -> tuple[str, ...]:
    """Return which projections have a bias: all usual ones, none, or those named, such as ``qkv+output``."""
    if isinstance(value, bool) or str(value).casefold() in ("true", "false", "yes", "no", "none"):
        return BIASES[:3] if str(value).casefold() in ("true", "yes") else ()
    named = value if isinstance(value, list | tuple) else str(value).replace("+", " ").replace(",", " ").split()
    names = tuple(str(name) for name in named)
    if not set(names) <= set(BIASES):
        raise PlanError("not a bias", reprlib.repr(value), f"allowed: true, false, or of {', '.join(BIASES)}", place)
    return names


def _number(value: object, place: Place, is_length: bool) -> Number:
    if isinstance(value, np.ndarray):
        return value.astype(np.float64)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise PlanError("not a number", reprlib.repr(value), place=place)
    if isinstance(value, float) and not math.isfinite(value):
        raise PlanError("not a finite number", f"{value!r}", place=place)
    return parse_length(value, place=place) if is_length else parse_count(value, place=place)


def _without_stale(base: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Drop sizes of the base that only followed from a size the plan changes."""
    stale: set[str] = set()
    if {"hidden", "heads"} & changes.keys() and base.get("hidden") == base["heads"] * base.get("head_dim", 0):
        stale.add("head_dim")
    if "heads" in changes and base.get("kv_heads") == base["heads"]:
        stale.add("kv_heads")
    if "hidden" in changes and base.get("ffn") == 4 * base["hidden"]:
        stale.add("ffn")
    return {name: value for name, value in base.items() if name not in stale}


BEST_USES = {
    "transformer_decoder": "text that goes on: language models, chat, code",
    "transformer_encoder": "text as a whole: classes, similarity, search",
}


class TransformerSpec(Spec):
    """Sizes of a transformer; what is not given is the family's, or follows from the others."""

    complexity: ClassVar[str] = "O(layers · (tokens · hidden² + tokens² · hidden)) a sequence"
    other_names = ALIASES


def _size(label: str, help_text: str, unit: str = "") -> Knob:
    return Knob(label, "power-of-two", "model", unit, 1, LARGEST_SIZE, help=help_text)


KNOBS = {
    "layers": Knob("Layers", "integer", "model", "", 1, 10_000, help="blocks"),
    "hidden": _size("Hidden", "width of the residual stream"),
    "heads": Knob("Heads", "integer", "model", "", 1, 4096, help="query heads; divide the width"),
    "kv_heads": Knob("KV heads", "integer", "model", "", 1, 4096, help="key and value heads; as many as heads"),
    "ffn": _size("Feed-forward", "width of the feed-forward; 4 times the hidden width"),
    "vocab": _size("Vocabulary", "rows of the token embedding", "tok"),
    "max_context": replace(_size("Context", "longest context; 128k is 131072", "tok"), is_length=True),
    "gated": Knob("Gated", "switch", "model", help="a gate projection beside the up projection"),
    "tied_embeddings": Knob("Tied", "switch", "model", help="the output head is the token embedding"),
    "norm": Knob("Norm", "choice", "model", choices=("RMSNorm", "LayerNorm"), help="kind of the norms"),
    "learned_positions": Knob(
        "Learned positions", "switch", "model", help="a table of positions; rotary ones have none"
    ),
    "biases": Knob(
        "Biases", "switch", "model", help="whether projections have biases; files may name some: qkv+output"
    ),
    "experts": Knob("Experts", "power-of-two", "model", "", 1, 4096, help="routed experts; a dense model has none"),
    "experts_active": Knob("Active", "integer", "model", "", 1, 4096, help="routed experts a token visits"),
}


@cache
def transformer_spec_type(family: str, *, modern: bool = False) -> type[TransformerSpec]:
    """Return the class of a bare family's sizes, with the family's defaults, or those of the modern kind."""
    traits = load_traits()
    sizes = {**traits.families[family], **(traits.modern if modern else {})}
    sizes["biases"] = bool(sizes["biases"])
    fields: dict[str, Any] = {name: (Annotated[_type(knob), knob], sizes.get(name)) for name, knob in KNOBS.items()}
    return create_model(family, __base__=TransformerSpec, __doc__=f"Transformer {sizes['kind']} of any size.", **fields)


def _type(knob: Knob) -> Any:
    return {"switch": bool, "choice": str}.get(knob.kind, int | None)


DECODER = "transformer_decoder"
NARROW = 4  # Widths of the model that the feed-forward of a decoder without a gate has
VECTORS = {"LayerNorm": 2, "RMSNorm": 1}  # Learned vectors of a norm: scale and shift, or scale alone

ASSUMED = {
    "gated": "a gated feed-forward",
    "norm": "RMSNorm",
    "learned_positions": "rotary positions",
    "tied_embeddings": "an untied output head",
    "biases": "no biases",
}


def is_modern(family: str, changes: Mapping[str, Any]) -> bool:
    """Return whether sizes are those of a decoder built since Llama; ``changes`` are ``model.spec`` of a plan."""
    if family != DECODER or changes.get("gated") is False:
        return False
    if changes.get("gated") or any(np.any(changes.get(name, 0)) for name in ("experts", "kv_lora_rank")):
        return True
    base = load_traits().families[family]
    heads, hidden = (changes.get(name, base[name]) for name in ("heads", "hidden"))
    fewer = np.any(np.less(changes.get("kv_heads", heads), heads))
    return bool(fewer or np.any(np.less(changes.get("ffn", NARROW * hidden), NARROW * hidden)))


def family_fields(family: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a family that go with the sizes that a plan gives, and what is assumed of them."""
    traits = load_traits()
    values = dict(traits.families[family])
    if is_modern(family, changes):
        values |= traits.modern
        assumed = [ASSUMED[name] for name in traits.modern if name not in changes]
        if assumed:
            values["assumed"] = (f"{', '.join(assumed)}: the usual of such sizes",)
    values["norm_vectors"] = VECTORS.get(str(changes.get("norm", values["norm"])), values["norm_vectors"])
    return values


_TOLERANCE = 0.0005
_ROUNDEST = 128  # Widths are multiples of a power of two, so that devices can share them: of the largest up to this one


def with_feed_forward(base: Mapping[str, Any], count: float) -> dict[str, Any]:
    """Return the sizes of a dense decoder with the width of the feed-forward that its count leaves.

    The count is met within 0.05 %: the width is a multiple of as large a power of two as keeps it so.

    Args:
        base: every other size, by the shape's names.
        count: parameters of the whole model.
    """
    narrow, wider = (float(count_parameters(resolve_shape({**base, "ffn": ffn})).total) for ffn in (1, 2))
    per_width = wider - narrow
    exact = 1 + (count - narrow) / per_width
    multiple = _ROUNDEST
    while multiple > 1 and multiple * per_width / 2 > _TOLERANCE * count:
        multiple //= 2
    ffn = max(1, multiple * round(exact / multiple))
    total = narrow + (ffn - 1) * per_width
    words = (
        f"a dense decoder of usual proportions for {format_count(count)} parameters ({format_number(total)} of them): "
        f"{base['layers']} layers, {format_number(base['hidden'])} wide, feed-forward {format_number(ffn)}, "
        f"{base['heads']} heads, {base['kv_heads']} of keys and values, vocabulary {format_number(base['vocab'])}"
    )
    return {**base, "ffn": ffn, "assumed": (*base.get("assumed", ()), words)}
