"""Floating-point operations of a transformer per token, a multiplication and an addition counted as two; its cache."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.models.transformer.attention import AttendedTokens
from capacity_tui.engine.models.transformer.parameters import encoder_matmul_per_token, matmul_per_token, output_weights
from capacity_tui.engine.models.transformer.shape import TransformerShape
from capacity_tui.engine.numeric import Number, present


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


def attended_of_sequence(seq_len: Number, causal: bool) -> AttendedTokens:
    """Return how many entries a token attends to, the mean over a sequence."""
    return lambda limit, tokens_per_entry: mean_context(seq_len / tokens_per_entry, limit, causal)


def attended_at_end(context: Number) -> AttendedTokens:
    """Return how many entries the token after ``context`` tokens attends to."""

    def attended(limit: Number, tokens_per_entry: Number) -> Number:
        entries = context / tokens_per_entry
        visible: Number = np.minimum(limit + (1 - present(limit)) * entries, entries)
        return visible

    return attended


def forward_attention_flops(shape: TransformerShape, seq_len: Number, causal: bool = True) -> Number:
    """Attention operations of a forward pass per token, the mean over a sequence.

    Of an encoder-decoder, for one source and one target token, both sequences ``seq_len`` long.
    """
    attended = attended_of_sequence(seq_len, causal and shape.kind in ("decoder", "encoder-decoder"))
    everything = 2 * shape.heads * (shape.head_dim + shape.v_head_dim) * seq_len
    cross = present(shape.encoder_layers) * shape.layers * everything
    return shape.attention_kind.flops(attended) + cross + encoder_attention_flops(shape, seq_len)


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
    weights = matmul_per_token(shape) - encoder_matmul_per_token(shape)
    return 2 * weights + shape.attention_kind.flops(attended_at_end(context))


def kv_elements_per_token(shape: TransformerShape) -> Number:
    """Elements of keys and values one token adds to the cache, before any window drops it.

    An encoder keeps none; an encoder-decoder keeps as many of a source token for cross-attention.
    """
    if shape.kind not in ("decoder", "encoder-decoder"):
        return 0
    return (1 + present(shape.encoder_layers)) * shape.attention_kind.cached()


def cache_elements(shape: TransformerShape, context: Number) -> Number:
    """Elements kept of one sequence of ``context`` tokens when windowed layers drop what they cannot see.

    Includes an indexer's keys, and the state of linear attention, which does not grow.
    """
    kind = shape.attention_kind
    growing = kv_elements_per_token(shape) + kind.indexed()
    return growing * context + kind.in_windows(context) * (shape.kind == "decoder") + kind.state()
