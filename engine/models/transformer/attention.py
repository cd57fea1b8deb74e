"""Parameters, cache and operations of attention, one equation for each kind.

Weights of matrices (multiplied by every token) and of vectors (biases, norms) are counted apart.
Structures follow the model classes named in ``profiles/traits.yaml``.
"""

from __future__ import annotations

from capacity_tui.engine.models.transformer.shape import (
    Compression,
    Indexer,
    LinearAttention,
    TransformerShape,
    present,
)
from capacity_tui.engine.numeric import Number


def multi_head_weights(shape: TransformerShape) -> Number:
    """Weights of one multi-head, grouped-query or multi-query attention.

    ``hidden · heads · head_dim · (1 + gate) + hidden · kv_heads · (head_dim + v_head_dim)
    + heads · v_head_dim · hidden``: queries, keys and values, output.
    """
    query = shape.hidden * shape.heads * shape.head_dim * (1 + shape.query_gate)
    key_value = shape.hidden * shape.kv_heads * (shape.head_dim + shape.v_head_dim)
    output = shape.heads * shape.v_head_dim * shape.hidden
    return query + key_value + output


def multi_head_vectors(shape: TransformerShape) -> Number:
    """Biases, query and key norms, and sinks of one multi-head attention."""
    query_key = shape.heads * shape.head_dim + shape.kv_heads * shape.head_dim
    biases = ("qkv" in shape.biases) * (query_key + shape.kv_heads * shape.v_head_dim)
    biases = biases + ("output" in shape.biases) * shape.hidden
    norms = (shape.qk_norm == "head") * 2 * shape.head_dim + (shape.qk_norm == "full") * query_key
    return biases + norms + shape.attention_sinks * shape.heads


def global_weights(shape: TransformerShape) -> Number:
    """Weights of one full-context attention with head sizes of its own (Gemma 4)."""
    part = shape.full_attention
    if part is None:
        return multi_head_weights(shape)
    query_output = 2 * shape.hidden * shape.heads * part.head_dim
    return query_output + shape.hidden * part.kv_heads * part.head_dim * (2 - part.keys_are_values)


def global_vectors(shape: TransformerShape) -> Number:
    """Query and key norms of one such attention."""
    part = shape.full_attention
    return multi_head_vectors(shape) if part is None else (shape.qk_norm == "head") * 2 * part.head_dim


def latent_weights(shape: TransformerShape) -> Number:
    """Weights of one multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).

    Queries pass a rank of ``q_lora_rank`` where there is one; keys and values always pass ``kv_lora_rank``.
    """
    query_width = shape.heads * (shape.qk_nope_head_dim + shape.qk_rope_head_dim)
    full = shape.hidden * query_width
    low_rank = shape.q_lora_rank * (shape.hidden + query_width)
    query = low_rank + (1 - present(shape.q_lora_rank)) * full
    down = shape.hidden * (shape.kv_lora_rank + shape.qk_rope_head_dim)
    up = shape.kv_lora_rank * shape.heads * (shape.qk_nope_head_dim + shape.v_head_dim)
    output = shape.heads * shape.v_head_dim * shape.hidden
    return query + down + up + output + indexer_weights(shape.indexer, shape)


def latent_vectors(shape: TransformerShape) -> Number:
    """Norms of the compressed queries and of the compressed keys and values, and of the indexer's keys."""
    indexer = 0 if shape.indexer is None else 2 * shape.indexer.head_dim
    return shape.q_lora_rank + shape.kv_lora_rank + indexer


def indexer_weights(indexer: Indexer | None, shape: TransformerShape) -> Number:
    """Weights of the token selector of sparse attention: its queries, its one key head, its head weights."""
    if indexer is None:
        return 0
    query = shape.q_lora_rank * indexer.heads * indexer.head_dim
    return query + shape.hidden * (indexer.head_dim + indexer.heads)


def linear_weights(linear: LinearAttention, hidden: Number) -> Number:
    """Weights of one gated delta net: queries, keys, values, gate, two decays, convolution, output."""
    keys, values = linear.key_heads * linear.key_dim, linear.value_heads * linear.value_dim
    projections = hidden * (2 * keys + 2 * values + 2 * linear.value_heads) + values * hidden
    return projections + (2 * keys + values) * linear.kernel


def linear_vectors(linear: LinearAttention) -> Number:
    """Step bias and decay of each value head, and the scale of the gated norm."""
    return 2 * linear.value_heads + linear.value_dim


def compressed_weights(shape: TransformerShape, part: Compression) -> Number:
    """Weights of all compressed attentions of a model (DeepSeek-V4), with the mixing of residual streams.

    Each layer has low-rank queries, one key-value head and a grouped output; light layers add compressors
    of twice the head width for the entries and for the indexer, heavy layers one of the head width.
    """
    query_width = shape.heads * shape.head_dim
    query = shape.q_lora_rank * (shape.hidden + query_width)
    output = part.output_rank * query_width + part.output_groups * part.output_rank * shape.hidden
    each = query + shape.hidden * shape.head_dim + output
    streams = part.residual_streams
    mixing = 2 * (2 + streams) * streams * streams * shape.hidden
    heavy = 2 * shape.hidden * shape.head_dim
    light = 2 * heavy
    if shape.indexer is not None:
        index = shape.indexer
        light = light + 4 * shape.hidden * index.head_dim + shape.hidden * index.heads
        light = light + shape.q_lora_rank * index.heads * index.head_dim
    layers = shape.layers * (each + mixing) + part.light_layers * light + part.heavy_layers * heavy
    return layers + streams**2 * shape.hidden


def compressed_vectors(shape: TransformerShape, part: Compression) -> Number:
    """Norms, sinks, stream offsets and the compressors' position tables of all compressed attentions."""
    streams = part.residual_streams
    each = shape.q_lora_rank + shape.head_dim + shape.heads + 2 * ((2 + streams) * streams + 3)
    heavy = part.heavy_rate * shape.head_dim + shape.head_dim
    light = part.light_rate * 2 * shape.head_dim + shape.head_dim
    if shape.indexer is not None:
        light = light + (2 * part.light_rate + 1) * shape.indexer.head_dim
    return shape.layers * each + part.light_layers * light + part.heavy_layers * heavy + streams + 1


def attention_weights(shape: TransformerShape) -> Number:
    """Weights of matrices in the attention of all layers."""
    if shape.compression is not None:
        return compressed_weights(shape, shape.compression)
    if shape.latent:
        return shape.layers * latent_weights(shape)
    linear = 0 if shape.linear is None else shape.linear_layers * linear_weights(shape.linear, shape.hidden)
    windowed = shape.window_layers * multi_head_weights(shape)
    return windowed + shape.full_layers * global_weights(shape) + linear


def attention_vectors(shape: TransformerShape) -> Number:
    """Weights of vectors in the attention of all layers."""
    if shape.compression is not None:
        return compressed_vectors(shape, shape.compression)
    if shape.latent:
        return shape.layers * latent_vectors(shape)
    linear = 0 if shape.linear is None else shape.linear_layers * linear_vectors(shape.linear)
    return shape.window_layers * multi_head_vectors(shape) + shape.full_layers * global_vectors(shape) + linear
