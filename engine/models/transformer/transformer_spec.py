"""What a plan may say about the sizes of a transformer that is given by its family alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import create_model

from capacity_tui.engine.models.spec import LARGEST_SIZE, Spec
from capacity_tui.engine.models.transformer.architecture import ALIASES
from capacity_tui.engine.models.transformer.traits import load_traits
from capacity_tui.engine.schema import Knob

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
