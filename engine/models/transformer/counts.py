"""What a transformer counts: parameters part by part, weight matrices, FLOPs per token (two a multiply-add), cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import TypeVar

import numpy as np

from capacity_tui.engine.models.transformer.attention import (
    AttendedTokens,
    Matrix,
    multi_head_vectors,
    multi_head_weights,
)
from capacity_tui.engine.models.transformer.shape import TransformerShape
from capacity_tui.engine.numeric import Number, any_true, present
from capacity_tui.engine.record import dataclass

Count = TypeVar("Count")


def _kept(count: Callable[[TransformerShape], Count]) -> Callable[[TransformerShape], Count]:
    """Keep what is counted of a shape with it: one estimate asks for the same a dozen times."""
    name = count.__name__

    @wraps(count)
    def counted(shape: TransformerShape) -> Count:
        known = vars(shape)
        if name not in known:
            known[name] = count(shape)
        counts: Count = known[name]
        return counts

    return counted


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Parameters of a transformer by part; every count is of single weights, of a block as a token meets it.

    Where several blocks share one set of weights, it is stored once and read in each of them.
    """

    token_embedding: Number  # the token table, or the patch projection of a vision model
    position_embedding: Number  # learned positions, token types, relative biases, class token
    head: Number  # the output projection; 0 when tied to the token embedding
    final: Number  # norms outside the blocks and the pooler
    layers: Number  # blocks (of the decoder)
    layer_uses: Number  # blocks that share one set of weights
    dense_layers: Number  # of these, blocks with one feed-forward
    moe_layers: Number  # of these, blocks with experts
    attention: Number  # attention of all blocks, with biases and inner norms
    mlp_per_dense_layer: Number  # feed-forward of a dense block
    norms_per_layer: Number  # norms around attention and feed-forward of a block
    router_per_moe_layer: Number  # router and gate of the shared expert
    expert: Number  # one routed expert
    experts: Number  # routed experts of a mixture block
    experts_active: Number  # those a token visits
    shared_experts_per_layer: Number  # experts every token visits
    cross_attention_per_layer: Number  # attention of a decoder block to the encoder
    encoder: Number  # the whole encoder of an encoder-decoder
    extra: Number  # projections around a narrower embedding
    other_weights: Number  # towers of pictures and sound, what joins them to the text, and heads
    matmul_per_token: Number  # weights a token is multiplied with in a forward pass

    @property
    def attention_per_layer(self) -> Number:
        """Attention of one block, the mean where blocks differ."""
        return self.attention / self.layers

    @property
    def read(self) -> Number:
        """Parameters that a token meets in all layers without their routed experts."""
        blocks = self.layers * (self.norms_per_layer + self.cross_attention_per_layer)
        mixture = self.moe_layers * (self.router_per_moe_layer + self.shared_experts_per_layer)
        return self.attention + blocks + self.dense_layers * self.mlp_per_dense_layer + mixture

    @property
    def dense_per_layer(self) -> Number:
        """Parameters that are stored for the mean layer without its routed experts."""
        return self.read / self.layer_uses / self.layers

    @property
    def outside_layers(self) -> Number:
        """Everything that belongs to no decoder block."""
        ends = self.token_embedding + self.position_embedding + self.head + self.final
        return ends + self.encoder + self.extra + self.other_weights

    @property
    def inside_layers(self) -> Number:
        """Everything in blocks, those of an encoder included."""
        return self.total - self.outside_layers + self.encoder

    @property
    def routed(self) -> Number:
        """Weights of all routed experts."""
        return self.moe_layers * self.experts * self.expert

    @property
    def inactive(self) -> Number:
        """Weights of routed experts that a token does not visit."""
        return self.moe_layers * (self.experts - self.experts_active) * self.expert

    @property
    def total(self) -> Number:
        """All weights."""
        experts = self.moe_layers * self.experts * self.expert
        return self.outside_layers + self.read / self.layer_uses + experts

    @property
    def active(self) -> Number:
        """Weights a token uses, the whole token embedding among them."""
        return self.total - self.inactive


def feed_forward(hidden: Number, ffn: Number, gated: bool, biased: bool) -> Number:
    """Weights of a feed-forward: ``(2 + gated) · hidden · ffn``, and its biases."""
    return (2 + gated) * hidden * ffn + biased * ((1 + gated) * ffn + hidden)


def token_embedding(shape: TransformerShape) -> Number:
    """Weights of the token table, or of the projection of image patches."""
    if shape.vision is not None:
        return shape.vision.channels * shape.vision.patch**2 * shape.hidden + shape.hidden
    return shape.vocab * shape.token_width


def position_embedding(shape: TransformerShape) -> Number:
    """Weights of positions, token types, relative biases (one table a stack) and the tokens beside patches."""
    stacks = 1 + present(shape.encoder_layers)
    image = 0 if shape.vision is None else shape.vision.patches + 2 * shape.vision.extra_tokens
    rows = shape.positions + shape.token_types + image
    return rows * shape.hidden + stacks * shape.relative_buckets * shape.heads


def head(shape: TransformerShape) -> Number:
    """Weights of the output projection that are not the token embedding's."""
    if shape.vision is not None:
        return shape.vision.classes * (shape.hidden + 1)
    own = (not shape.tied_embeddings) * shape.vocab * shape.token_width
    return own + ("head" in shape.biases) * shape.vocab


def final(shape: TransformerShape) -> Number:
    """Weights of the norms outside the blocks and of the pooler."""
    return shape.outer_norms * shape.norm_vectors * shape.hidden + shape.pooler * shape.hidden * (shape.hidden + 1)


def norms_per_layer(shape: TransformerShape) -> Number:
    """Weights of the norms of a block."""
    return shape.norms_per_layer * shape.norm_vectors * shape.hidden


def mlp_per_dense_layer(shape: TransformerShape) -> Number:
    """Weights of the feed-forward of a block without experts."""
    return feed_forward(shape.hidden, shape.ffn, shape.gated, "mlp" in shape.biases)


def router_per_moe_layer(shape: TransformerShape) -> Number:
    """Weights of the router and of the shared expert's gate."""
    vectors = ("router" in shape.biases) * shape.experts + shape.router_scales * (shape.hidden + shape.experts)
    return shape.experts * shape.hidden + vectors + shape.shared_expert_gate * shape.hidden


def expert(shape: TransformerShape) -> Number:
    """Weights of one routed expert."""
    return feed_forward(shape.hidden, shape.moe_ffn, shape.gated, "experts" in shape.biases)


def shared_experts_per_layer(shape: TransformerShape) -> Number:
    """Weights of the experts that every token visits."""
    return shape.experts_shared * feed_forward(shape.hidden, shape.shared_ffn, shape.gated, False)


def cross_attention_per_layer(shape: TransformerShape) -> Number:
    """Weights of a decoder block's attention to the encoder, with its norm."""
    attention = multi_head_weights(shape) + multi_head_vectors(shape) + shape.norm_vectors * shape.hidden
    return present(shape.encoder_layers) * attention


def generates(shape: TransformerShape) -> bool:
    """Return whether a model writes an answer, token by token; encoders of text and of images alone read."""
    return shape.kind in ("decoder", "encoder-decoder")


def encoder(shape: TransformerShape) -> Number:
    """Weights of the encoder of an encoder-decoder, with its final norm."""
    attention = multi_head_weights(shape) + multi_head_vectors(shape)
    block = attention + mlp_per_dense_layer(shape) + norms_per_layer(shape)
    return shape.encoder_layers * block + present(shape.encoder_layers) * shape.norm_vectors * shape.hidden


def embedding_projections(shape: TransformerShape) -> Number:
    """Weights that widen a narrower token embedding and narrow the output again."""
    differs = present((shape.embedding_width - shape.hidden) ** 2)
    return differs * 2 * shape.embedding_width * shape.hidden


@_kept
def matmul_per_token(shape: TransformerShape) -> Number:
    """Weights a token is multiplied with in a forward pass: matrices only, the head also when tied."""
    bare = replace(shape, biases=frozenset(), router_scales=False, qk_norm="none", attention_sinks=False)
    mixture = router_per_moe_layer(bare) + shared_experts_per_layer(bare)
    mixture = mixture + shape.experts_active * expert(bare)
    blocks = bare.attention_kind.weights() + shape.dense_layers * mlp_per_dense_layer(bare) + shape.moe_layers * mixture
    cross = shape.layers * present(shape.encoder_layers) * (multi_head_weights(bare) - cross_key_value_weights(shape))
    encoded = encoder_matmul_per_token(bare)
    return blocks + cross + encoded + embedding_projections(shape) + output_weights(bare)


def cross_key_value_weights(shape: TransformerShape) -> Number:
    """Weights that make the keys and values of a decoder block's attention to the encoder."""
    return shape.hidden * shape.kv_heads * (shape.head_dim + shape.v_head_dim)


@_kept
def encoder_matmul_per_token(shape: TransformerShape) -> Number:
    """Weights a source token is multiplied with: the encoder, and the keys and values the decoder attends to."""
    bare = replace(shape, biases=frozenset()) if shape.biases else shape
    blocks = shape.encoder_layers * (multi_head_weights(bare) + mlp_per_dense_layer(bare))
    return blocks + shape.layers * present(shape.encoder_layers) * cross_key_value_weights(shape)


def output_weights(shape: TransformerShape) -> Number:
    """Weights of what follows or precedes the blocks that each token is multiplied with."""
    if shape.vision is not None:
        return shape.vision.channels * shape.vision.patch**2 * shape.hidden
    return (not shape.is_encoder) * shape.vocab * shape.token_width


@_kept
def count_parameters(shape: TransformerShape) -> ParameterCounts:
    """Count the parameters of a shape, part by part."""
    return ParameterCounts(
        token_embedding=token_embedding(shape),
        position_embedding=position_embedding(shape),
        head=head(shape),
        final=final(shape),
        layers=shape.layers,
        dense_layers=shape.dense_layers,
        moe_layers=shape.moe_layers,
        layer_uses=shape.layer_uses,
        attention=shape.attention_kind.weights() + shape.attention_kind.vectors(),
        mlp_per_dense_layer=mlp_per_dense_layer(shape),
        norms_per_layer=norms_per_layer(shape),
        router_per_moe_layer=router_per_moe_layer(shape),
        expert=expert(shape),
        experts=shape.experts,
        experts_active=shape.experts_active,
        shared_experts_per_layer=shared_experts_per_layer(shape),
        cross_attention_per_layer=cross_attention_per_layer(shape),
        encoder=encoder(shape),
        extra=embedding_projections(shape),
        other_weights=shape.other_weights,
        matmul_per_token=matmul_per_token(shape),
    )


def layer_matrices(shape: TransformerShape) -> tuple[Matrix, ...]:
    """Return the matrices of the mean layer, with its share of an encoder."""
    attention: Iterator[Matrix] = shape.attention_kind.matrices()
    if any_true(shape.encoder_layers > 0):
        attentions = 1.0 + shape.encoder_layers / shape.layers + present(shape.encoder_layers)
        attention = (replace(matrix, number=attentions) for matrix in attention)
    return (*attention, *feed_forward_matrices(shape))


def feed_forward_matrices(shape: TransformerShape) -> Iterator[Matrix]:
    """Yield the matrices of the feed-forward and the experts of the mean layer, with its share of an encoder."""
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


def mean_context(seq_len: Number, window: Number = 0, causal: bool = True) -> Number:
    """Mean tokens a token attends to, itself among them.

    Causal: ``w − w (w − 1) / (2 s)`` with ``w = min(window, s)``, which is ``(s + 1) / 2`` without a window.

    Args:
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


def forward_attention_flops(
    shape: TransformerShape, seq_len: Number, causal: bool = True, target: Number | None = None
) -> Number:
    """Attention operations of a forward pass per token, the mean over a sequence.

    Of an encoder-decoder, for a source token with its share of the target.

    Args:
        seq_len: tokens of a sequence; of an encoder-decoder, of the source.
        target: tokens of an encoder-decoder's target; as many as of the source by default.
    """
    written = seq_len if target is None else target
    attended = attended_of_sequence(written, causal and generates(shape))
    everything = 2 * shape.heads * (shape.head_dim + shape.v_head_dim) * seq_len
    cross = present(shape.encoder_layers) * shape.layers * everything
    decoder = shape.attention_kind.flops(attended) + cross
    return written / seq_len * decoder + encoder_attention_flops(shape, seq_len)


def forward_flops_per_token(
    shape: TransformerShape, seq_len: Number, causal: bool = True, target: Number | None = None
) -> Number:
    """Operations of a forward pass per token: twice the weights it meets, and its share of attention.

    A backward pass takes twice as many.

    Args:
        seq_len: tokens of a sequence; of an encoder-decoder, of the source.
        causal: whether a decoder's masked half is skipped; False counts every pair, as PaLM's convention
            (arXiv:2204.02311, appendix B) does.
        target: tokens of an encoder-decoder's target; as many as of the source by default.
    """
    encoded = encoder_matmul_per_token(shape)
    share = 1.0 if target is None else target / seq_len
    weights = encoded + share * (matmul_per_token(shape) - encoded)
    return 2 * weights + forward_attention_flops(shape, seq_len, causal, target)


def prompt_flops(shape: TransformerShape, prompt: Number, logits: Number = 1.0) -> Number:
    """Operations of reading one prompt, with ``logits`` of it to the head; of an encoder-decoder its encoder alone."""
    if shape.kind == "encoder-decoder":
        return prompt * (2 * encoder_matmul_per_token(shape) + encoder_attention_flops(shape, prompt))
    causal = shape.is_decoder
    head = shape.is_decoder * output_weights(shape)
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
    if not generates(shape):
        return 0
    return (1 + present(shape.encoder_layers)) * shape.attention_kind.cached()


def cache_elements(shape: TransformerShape, context: Number) -> Number:
    """Elements kept of one sequence of ``context`` tokens when windowed layers drop what they cannot see.

    Includes an indexer's keys, and the state of linear attention, which does not grow. Of an encoder-decoder, source
    tokens among them: each has keys and values for one of the two attentions, cross or self.
    """
    kind = shape.attention_kind
    growing = generates(shape) * kind.cached() + kind.indexed()
    return growing * context + kind.in_windows(context) * shape.is_decoder + kind.state()
