"""Floating-point operations of a transformer, per token; a multiplication and an addition are two."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from capacity_tui.engine.models.transformer.parameters import encoder_matmul_per_token, matmul_per_token, output_weights
from capacity_tui.engine.models.transformer.shape import Compression, TransformerShape, present
from capacity_tui.engine.numeric import Number

# Entries a token visits, given the most it may (0: no limit) and the tokens an entry stands for.
Efficiency = Callable[[Number, Number], Number]


def mean_context(seq_len: Number, window: Number = 0, causal: bool = True) -> Number:
    """Mean tokens a token attends to, itself among them.

    Causal: ``w − w (w − 1) / (2 s)`` with ``w = min(window, s)``, which is ``(s + 1) / 2`` without a window.

    Args:
        seq_len: tokens in the sequence.
        window: most tokens a token may see; 0 for no limit.
        causal: whether a token sees only earlier ones.
    """
    limit: Number = np.minimum(window + (1 - present(window)) * seq_len, seq_len)
    return limit - causal * limit * (limit - 1) / (2 * seq_len)


def attention_flops(shape: TransformerShape, reach: Efficiency) -> Number:
    """Operations of scores and weighted values in all layers, for one token.

    A layer takes ``2 · context · heads · (query width + value width)``, with the context its kind reaches.
    """
    if shape.compression is not None:
        return compressed_attention_flops(shape, shape.compression, reach)
    windowed = shape.heads * (shape.head_dim + shape.v_head_dim) * reach(shape.sliding_window, 1)
    flops = 2 * shape.window_layers * windowed + shape.full_layers * full_attention_flops(shape, reach)
    if shape.linear is not None:
        flops = flops + shape.linear_layers * linear_attention_flops(shape)
    return flops


def full_attention_flops(shape: TransformerShape, reach: Efficiency) -> Number:
    """Operations of one layer that may attend to everything; an indexer narrows it to its best entries."""
    width = shape.head_dim + shape.v_head_dim
    if shape.latent:
        width = shape.qk_nope_head_dim + shape.qk_rope_head_dim + shape.v_head_dim
    if shape.full_attention is not None:
        width = 2 * shape.full_attention.head_dim
    if shape.indexer is None:
        return 2 * shape.heads * width * reach(0, 1)
    index = shape.indexer
    return 2 * shape.heads * width * reach(index.top_k, 1) + 2 * index.heads * index.head_dim * reach(0, 1)


def linear_attention_flops(shape: TransformerShape) -> Number:
    """Operations of one gated delta net: read, correct and query a state of key × value width, each 2."""
    linear = shape.linear
    return 0 if linear is None else 6 * linear.value_heads * linear.key_dim * linear.value_dim


def compressed_attention_flops(shape: TransformerShape, part: Compression, reach: Efficiency) -> Number:
    """Operations of all compressed attentions: a window in each layer, and compressed entries in most."""
    entry = 4 * shape.heads * shape.head_dim
    window = shape.layers * entry * reach(shape.sliding_window, 1)
    heavy = part.heavy_layers * entry * reach(0, part.heavy_rate)
    if shape.indexer is None:
        return window + heavy + part.light_layers * entry * reach(0, part.light_rate)
    index = shape.indexer
    scores = 2 * index.heads * index.head_dim * reach(0, part.light_rate)
    return window + heavy + part.light_layers * (entry * reach(index.top_k, part.light_rate) + scores)


def forward_attention_flops(shape: TransformerShape, seq_len: Number, causal: bool = True) -> Number:
    """Attention operations of a forward pass per token, the mean over a sequence.

    Of an encoder-decoder, for one source and one target token, both sequences ``seq_len`` long.
    """
    looks_back = causal and shape.kind in ("decoder", "encoder-decoder")

    def reach(limit: Number, tokens_per_entry: Number) -> Number:
        return mean_context(seq_len / tokens_per_entry, limit, looks_back)

    everything = 2 * shape.heads * (shape.head_dim + shape.v_head_dim) * seq_len
    cross = present(shape.encoder_layers) * shape.layers * everything
    return attention_flops(shape, reach) + cross + encoder_attention_flops(shape, seq_len)


def forward_flops_per_token(shape: TransformerShape, seq_len: Number, causal: bool = True) -> Number:
    """Operations of a forward pass per token: twice the weights it meets, and its share of attention.

    A backward pass takes twice as many.

    Args:
        shape: the model.
        seq_len: tokens in the sequence.
        causal: whether a decoder's masked half is skipped; False counts every pair, as PaLM's convention
            (arXiv:2204.02311, appendix B) does.
    """
    return 2 * matmul_per_token(shape) + forward_attention_flops(shape, seq_len, causal)


def prompt_flops(shape: TransformerShape, prompt: Number, logits: Number = 1.0) -> Number:
    """Operations of reading one prompt; of an encoder-decoder its encoder alone.

    Args:
        shape: the model.
        prompt: tokens of the prompt.
        logits: of them, those that reach the output head.
    """
    if shape.kind == "encoder-decoder":
        return prompt * (2 * encoder_matmul_per_token(shape) + encoder_attention_flops(shape, prompt))
    causal = shape.kind == "decoder"
    head = (shape.kind == "decoder") * output_weights(shape)
    return prompt * (forward_flops_per_token(shape, prompt, causal) - 2 * head) + 2 * head * logits


def encoder_attention_flops(shape: TransformerShape, seq_len: Number) -> Number:
    """Attention operations of the encoder of an encoder-decoder, for one source token."""
    return shape.encoder_layers * 2 * shape.heads * (shape.head_dim + shape.v_head_dim) * seq_len


def decode_flops_per_token(shape: TransformerShape, context: Number) -> Number:
    """Operations of generating one token when ``context`` tokens are visible to it, source tokens among them."""

    def reach(limit: Number, tokens_per_entry: Number) -> Number:
        entries = context / tokens_per_entry
        visible: Number = np.minimum(limit + (1 - present(limit)) * entries, entries)
        return visible

    return 2 * (matmul_per_token(shape) - encoder_matmul_per_token(shape)) + attention_flops(shape, reach)
