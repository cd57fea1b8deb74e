"""Models that are known by the count of their parameters alone, as rows of the table of models."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog.names import key_of
from capacity_tui.engine.catalog.parsed import parse_shipped
from capacity_tui.engine.catalog.rows.architectures import Architecture
from capacity_tui.engine.units import format_count

_COUNT = re.compile(r"(\d+(?:\.\d+)?)([mbt])")
_UNITS = {"m": 1e6, "b": 1e9, "t": 1e12}
_MOST_HEADS = 1000
_ATTENTION = 2.0  # matrices of width by width for queries and for the output


def count_in(name: str) -> float | None:
    """Return the parameters that a name such as ``35B`` counts; None for other names, and beyond what is built."""
    match = None if name.strip().startswith("-") else _COUNT.fullmatch(key_of(name))
    count = float(match[1]) * _UNITS[match[2]] if match else 0.0
    return count if _proportions()["smallest"] <= count <= _proportions()["largest"] else None


def name_of_count(count: float) -> str:
    """Return the name under which a count is found: ``35b``."""
    unit = next((unit for unit in reversed(_UNITS) if count >= _UNITS[unit]), "m")
    return f"{count / _UNITS[unit]:.12g}{unit}"


def row_of_count(row_id: str, count: float, name: str = "") -> Architecture:
    """Return a dense decoder of the usual proportions; how wide its feed-forward is follows from the count.

    Args:
        row_id: id of the row.
        count: its parameters.
        name: what it is called; by its count where nothing is given.
    """
    usual = _proportions()
    embedding = next(per_layer for per_layer in usual["vocabularies"] if count <= per_layer["up_to"])
    tables = (1 if embedding["tied_embeddings"] else 2) * embedding["vocab"]
    width, shared = usual["width_per_layer"], usual["shared_heads"]

    def layers_of(heads: int) -> int:
        """Return the layers that a width leaves room for."""
        key_value: float = 2.0 * min(1.0, usual["kv_heads"] / heads)
        per_layer = (_ATTENTION + key_value + 3 * usual["feed_forward"]) * (heads * width) ** 2
        exact: float = (count - tables * heads * width) / per_layer
        multiple = int(usual["shared_layers"]) if exact >= usual["shared_layers"] else 1
        return max(1, multiple * round(exact / multiple))

    counts = (*range(1, shared), *range(shared, _MOST_HEADS, shared))
    heads = min(counts, key=lambda heads: abs(math.log(layers_of(heads) / heads)))
    return Architecture.model_validate(
        {
            "id": row_id,
            "name": name or f"{format_count(count)} parameters",
            "family": "by count",
            "kind": "decoder",
            "by_count": True,
            "params_total": round(count),
            "params_active": round(count),
            "layers": layers_of(heads),
            "hidden": heads * width,
            "heads": heads,
            "kv_heads": min(heads, usual["kv_heads"]),
            "head_dim": usual["head_dim"],
            "gated": True,
            "norm": "RMSNorm",
            "vocab": embedding["vocab"],
            "tied_embeddings": embedding["tied_embeddings"],
            "max_context": usual["max_context"],
            "source": usual["source"],
            "checked": usual["checked"],
            "confidence": "C",
            "notes": "a count of parameters alone: a dense decoder of the usual proportions stands for it",
        }
    )


@cache
def _proportions() -> Mapping[str, Any]:
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "model_proportions.yaml")
    return rows
