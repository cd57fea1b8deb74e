"""The part of a plan about what is trained beside a frozen base."""

from __future__ import annotations

from typing import Annotated, Literal

from capacity_tui.engine.keys import Key
from capacity_tui.engine.schema.field_meta import Follows, Knob
from capacity_tui.engine.schema.field_types import TRANSFORMER, Count, Section

FULL = "full"
METHODS = (FULL, "lora", "qlora", "dora")
METHOD_NAMED = (Follows(Key.TRAINING_METHOD, "method", "the adapter says which method it is"),)


class Adapter(Section):
    """Low-rank adapters: only they are trained."""

    kind: Annotated[
        Literal["lora", "qlora", "dora"],
        Knob(
            "Adapter",
            "choice",
            "adapter",
            choices=METHODS[1:],
            families=TRANSFORMER,
            role="job",
            follows=METHOD_NAMED,
            shown=False,
        ),
    ] = "lora"
    rank: Annotated[
        Count,
        Knob(
            "Rank",
            "power-of-two",
            "adapter",
            minimum=1,
            maximum=1024,
            families=TRANSFORMER,
            role="job",
        ),
    ] = 16
    targets: Annotated[
        Literal["all", "attention", "mlp", "query+value"],
        Knob(
            "Targets",
            "choice",
            "adapter",
            choices=("all", "attention", "mlp", "query+value"),
            families=TRANSFORMER,
            role="job",
        ),
    ] = "all"
    train_embeddings: Annotated[
        bool,
        Knob(
            "Train embeddings",
            "switch",
            "adapter",
            families=TRANSFORMER,
            role="job",
        ),
    ] = False


def adapter_of(method: object) -> Adapter | None:
    """Return the usual adapter of a method; none where all weights are trained."""
    return None if method in (None, FULL) else Adapter.model_validate({"kind": method})


def kind_of(adapter: object, otherwise: object) -> object:
    """Return the kind of an adapter as given; another where it gives none."""
    if isinstance(adapter, Adapter):
        return adapter.kind
    return adapter.get("kind", otherwise) if isinstance(adapter, dict) else otherwise
