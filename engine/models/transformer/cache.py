"""What a transformer keeps of a sequence between tokens: keys and values, or a state."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.models.transformer.shape import Compression, TransformerShape, present
from capacity_tui.engine.numeric import Number


def kv_elements_per_layer(shape: TransformerShape) -> Number:
    """Elements a windowed or ordinary layer keeps of a token: ``kv_heads · (head_dim + v_head_dim)``.

    Latent attention keeps the compressed vector and the rotary key: ``kv_lora_rank + qk_rope_head_dim``.
    """
    if shape.latent:
        return shape.kv_lora_rank + shape.qk_rope_head_dim
    return shape.kv_heads * (shape.head_dim + shape.v_head_dim)


def kv_elements_per_full_layer(shape: TransformerShape) -> Number:
    """Elements a layer that attends to everything keeps of a token."""
    part = shape.full_attention
    if part is None:
        return kv_elements_per_layer(shape)
    # Rotary positions turn keys only, so both are kept even where one projection makes them.
    return 2 * part.kv_heads * part.head_dim


def kv_elements_per_token(shape: TransformerShape) -> Number:
    """Elements of keys and values one token adds to the cache, before any window drops it.

    An encoder keeps none; an encoder-decoder keeps as many of a source token for cross-attention.
    Compressed attention adds the share of an entry that a token makes up; its window is constant.
    """
    if shape.kind not in ("decoder", "encoder-decoder"):
        return 0
    if shape.compression is not None:
        return _compressed_elements_per_token(shape, shape.compression)
    windowed = shape.window_layers * kv_elements_per_layer(shape)
    sources = 1 + present(shape.encoder_layers)
    return sources * (windowed + shape.full_layers * kv_elements_per_full_layer(shape))


def indexer_elements_per_token(shape: TransformerShape) -> Number:
    """Elements of the indexer's keys one token adds to the cache, on top of keys and values."""
    if shape.indexer is None:
        return 0
    if shape.compression is not None:
        return shape.compression.light_layers * shape.indexer.head_dim / shape.compression.light_rate
    return shape.layers * shape.indexer.head_dim


def _compressed_elements_per_token(shape: TransformerShape, part: Compression) -> Number:
    entries = part.light_layers / part.light_rate + part.heavy_layers / part.heavy_rate
    return entries * shape.head_dim


def cache_elements(shape: TransformerShape, context: Number) -> Number:
    """Elements kept of one sequence of ``context`` tokens when windowed layers drop what they cannot see.

    Includes the indexer's keys, and the state of linear attention, which does not grow.
    """
    window: Number = np.minimum(context, shape.sliding_window)
    if shape.compression is not None:
        held = shape.layers * shape.head_dim * window
    else:
        held = shape.window_layers * kv_elements_per_layer(shape) * (window - context)
    growing = kv_elements_per_token(shape) + indexer_elements_per_token(shape)
    return growing * context + held * (shape.kind == "decoder") + state_elements(shape)


def state_elements(shape: TransformerShape) -> Number:
    """Elements of the state linear attention keeps of a sequence: the matrix and the convolution's taps."""
    linear = shape.linear
    if linear is None:
        return 0
    matrix = linear.value_heads * linear.key_dim * linear.value_dim
    width = 2 * linear.key_heads * linear.key_dim + linear.value_heads * linear.value_dim
    return shape.linear_layers * (matrix + width * (linear.kernel - 1))
