"""The weight matrices of a transformer's layers, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capacity_tui.engine.models.transformer.shape import TransformerShape, present
from capacity_tui.engine.numeric import Number


@dataclass(frozen=True, slots=True)
class Matrix:
    """Weight matrices of one kind.

    Attributes:
        name: what they are.
        rows: inputs.
        columns: outputs.
        number: how many a layer has, the mean over all layers.
        routed: whether they belong to experts.
    """

    name: str
    rows: Number
    columns: Number
    number: Number
    routed: bool = False


def layer_matrices(shape: TransformerShape) -> tuple[Matrix, ...]:
    """Return the matrices of the mean layer, with its share of an encoder.

    Layers of linear or compressed attention count as the model's ordinary ones.
    """
    return (*_attention(shape), *_feed_forward(shape))


def _attention(shape: TransformerShape) -> Iterator[Matrix]:
    hidden, value = shape.hidden, shape.heads * shape.v_head_dim
    if shape.latent:
        query = shape.heads * (shape.qk_nope_head_dim + shape.qk_rope_head_dim)
        low = present(shape.q_lora_rank)
        yield Matrix("query down projection", hidden, shape.q_lora_rank, low)
        yield Matrix("query up projection", low * shape.q_lora_rank + (1 - low) * hidden, query, 1.0)
        yield Matrix("key and value down projection", hidden, shape.kv_lora_rank + shape.qk_rope_head_dim, 1.0)
        up = shape.heads * (shape.qk_nope_head_dim + shape.v_head_dim)
        yield Matrix("key and value up projection", shape.kv_lora_rank, up, 1.0)
        yield Matrix("attention output projection", value, hidden, 1.0)
        return
    attentions = 1.0 + shape.encoder_layers / shape.layers + present(shape.encoder_layers)
    yield Matrix("query projection", hidden, shape.heads * shape.head_dim * (1 + shape.query_gate), attentions)
    yield Matrix("key projection", hidden, shape.kv_heads * shape.head_dim, attentions)
    yield Matrix("value projection", hidden, shape.kv_heads * shape.v_head_dim, attentions)
    yield Matrix("attention output projection", value, hidden, attentions)


def _feed_forward(shape: TransformerShape) -> Iterator[Matrix]:
    hidden, ups = shape.hidden, 1.0 + shape.gated
    dense = (shape.dense_layers + shape.encoder_layers) / shape.layers
    yield Matrix("feed-forward up projection", hidden, shape.ffn, dense * ups)
    yield Matrix("feed-forward down projection", shape.ffn, hidden, dense)
    moe = shape.moe_layers / shape.layers
    yield Matrix("router", hidden, shape.experts, moe)
    yield Matrix("shared expert, up projection", hidden, shape.shared_ffn, moe * shape.experts_shared * ups)
    yield Matrix("shared expert, down projection", shape.shared_ffn, hidden, moe * shape.experts_shared)
    yield Matrix("experts, up projection", hidden, shape.moe_ffn, moe * shape.experts * ups, routed=True)
    yield Matrix("experts, down projection", shape.moe_ffn, hidden, moe * shape.experts, routed=True)
