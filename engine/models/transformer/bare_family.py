"""What a transformer given by sizes alone has beside them: the kind of GPT-2, or that built since Llama."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from capacity_tui.engine.models.transformer.traits import load_traits

DECODER = "transformer_decoder"
NARROW = 4
"""Widths of the model that the feed-forward of a decoder without a gate has."""
VECTORS = {"LayerNorm": 2, "RMSNorm": 1}
"""Learned vectors of a norm: scale and shift, or scale alone."""
WORDS = {
    "gated": "a gated feed-forward",
    "norm": "RMSNorm",
    "learned_positions": "rotary positions",
    "tied_embeddings": "an untied output head",
    "biases": "no biases",
}


def is_modern(family: str, changes: Mapping[str, Any]) -> bool:
    """Tell whether sizes are those of a decoder built since Llama.

    Args:
        family: the family they are of.
        changes: ``model.spec`` of a plan, under the shape's own names.
    """
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
    found = dict(traits.families[family])
    if is_modern(family, changes):
        found |= traits.modern
        assumed = [WORDS[name] for name in traits.modern if name not in changes]
        if assumed:
            found["assumed"] = (f"{', '.join(assumed)}: the usual of such sizes",)
    found["norm_vectors"] = VECTORS.get(str(changes.get("norm", found["norm"])), found["norm_vectors"])
    return found
