"""The part of a plan about what is trained beside a frozen base."""

from __future__ import annotations

from typing import Literal

from capacity_tui.engine.schema import Count, Section

FULL = "full"
METHODS = (FULL, "lora", "qlora", "dora")


class Adapter(Section):
    """Low-rank adapters: only they are trained."""

    kind: Literal["lora", "qlora", "dora"] = "lora"
    rank: Count = 16
    targets: Literal["all", "attention", "mlp", "query+value"] = "all"
    train_embeddings: bool = False


def adapter_of(method: object) -> Adapter | None:
    """Return the usual adapter of a method; none where all weights are trained."""
    return None if method in (None, FULL) else Adapter.model_validate({"kind": method})


def kind_of(adapter: object, otherwise: object) -> object:
    """Return the kind of an adapter as given; another where it gives none."""
    if isinstance(adapter, Adapter):
        return adapter.kind
    return adapter.get("kind", otherwise) if isinstance(adapter, dict) else otherwise
