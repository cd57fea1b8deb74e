"""From a catalogue row and the plan's overrides to the shape of a transformer."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from capacity_tui.engine.catalog import nearest
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer.bare_family import family_fields
from capacity_tui.engine.models.transformer.by_count import with_feed_forward
from capacity_tui.engine.models.transformer.shape import TransformerShape
from capacity_tui.engine.models.transformer.shape_resolution import resolve_shape
from capacity_tui.engine.models.transformer.traits import class_fields, load_traits
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.units import parse_count, parse_length

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
    images = {name: _number(value, Place(field=f"model.spec.{key}"), False)
              for key, name in IMAGES.items() if (value := overrides.get(key)) is not None}  # fmt: skip
    changes = read_overrides({key: value for key, value in overrides.items() if key not in IMAGES})
    if row is None:
        base = family_fields(family, changes)
    else:
        base = {**class_fields(row.architecture)}
        base |= {name: value for name in sorted(COLUMNS) if (value := getattr(row, name, None)) is not None}
        base |= traits.models.get(row.id, {})
        if "vocab" not in base and "vision" not in base:
            base["vocab"] = traits.families["transformer_decoder"]["vocab"]
            base["assumed"] = (f"vocabulary of {base['vocab']:,} tokens",)
        if row.by_count:
            base = with_feed_forward(base, float(row.params_total or 0))
    if images and "vision" not in base:
        raise PlanError("only models of images have these", ", ".join(images), place=Place(field=Key.MODEL_SPEC))
    vision = {"vision": {**base["vision"], **images}} if images else {}
    return resolve_shape(_without_stale(base, changes) | changes | vision, Place(field=Key.MODEL_SPEC))


def read_overrides(overrides: Mapping[str, object]) -> dict[str, Any]:
    """Check the names and values of ``model.spec`` and return them under the shape's own names."""
    changes: dict[str, Any] = {}
    for key, value in overrides.items():
        name = ALIASES.get(key, key)
        place = Place(field=f"model.spec.{key}")
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
