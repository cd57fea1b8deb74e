"""The feed-forward of a model that is known by the count of its parameters alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capacity_tui.engine.models.transformer.parameters import count_parameters
from capacity_tui.engine.models.transformer.shape_resolution import resolve_shape
from capacity_tui.engine.units import format_count, format_number

_TOLERANCE = 0.0005
_ROUNDEST = 128
"""Widths are multiples of a power of two, so that devices can share them: of the largest up to this one."""


def with_feed_forward(base: Mapping[str, Any], count: float) -> dict[str, Any]:
    """Return the sizes of a dense decoder with the width of the feed-forward that its count leaves.

    The count is met within 0.05 %: the width is a multiple of as large a power of two as keeps it so.

    Args:
        base: every other size, by the shape's names.
        count: parameters of the whole model.
    """
    narrow, wider = (float(count_parameters(resolve_shape({**base, "ffn": ffn})).total) for ffn in (1, 2))
    each = wider - narrow
    exact = 1 + (count - narrow) / each
    multiple = _ROUNDEST
    while multiple > 1 and multiple * each / 2 > _TOLERANCE * count:
        multiple //= 2
    ffn = max(1, multiple * round(exact / multiple))
    found = narrow + (ffn - 1) * each
    words = (
        f"a dense decoder of usual proportions for {format_count(count)} parameters ({format_number(found)} of them): "
        f"{base['layers']} layers, {format_number(base['hidden'])} wide, feed-forward {format_number(ffn)}, "
        f"{base['heads']} heads, {base['kv_heads']} of keys and values, vocabulary {format_number(base['vocab'])}"
    )
    return {**base, "ffn": ffn, "assumed": (*base.get("assumed", ()), words)}
