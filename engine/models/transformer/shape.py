"""The shape of a transformer: every number its parameters, operations and cache follow from."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.numeric import Number, any_true


def present(size: Number) -> Number:
    """Return 1 where a part has a size, 0 where it is absent."""
    return (size > 0) * 1.0


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Gated delta net, in the layers that do not attend to the whole context.

    Attributes:
        key_heads: query and key heads.
        value_heads: value heads; queries and keys are repeated up to them.
        key_dim: width of a query or key head.
        value_dim: width of a value head.
        kernel: taps of the causal convolution over queries, keys and values.
    """

    key_heads: Number
    value_heads: Number
    key_dim: Number
    value_dim: Number
    kernel: Number


@dataclass(frozen=True, slots=True)
class GlobalAttention:
    """Attention of the full-context layers where it differs from that of the windowed ones.

    Attributes:
        kv_heads: key and value heads.
        head_dim: width of a head.
        keys_are_values: one projection serves as keys and as values.
    """

    kv_heads: Number
    head_dim: Number
    keys_are_values: bool


@dataclass(frozen=True, slots=True)
class Indexer:
    """The small scorer that chooses which tokens sparse attention reads.

    Attributes:
        heads: query heads of the scorer.
        head_dim: width of one.
        top_k: entries kept for each query.
    """

    heads: Number
    head_dim: Number
    top_k: Number


@dataclass(frozen=True, slots=True)
class Compression:
    """Keys compressed along the sequence, one shared key-value head, grouped output projection.

    Attributes:
        dense_layers: layers with a window only.
        light_layers: layers that compress ``light_rate`` tokens into one entry and choose with an indexer.
        light_rate: tokens an entry of a light layer stands for.
        heavy_layers: layers that compress ``heavy_rate`` tokens into one entry and read all of them.
        heavy_rate: tokens an entry of a heavy layer stands for.
        output_groups: groups of heads in the output projection.
        output_rank: width each group is projected to.
        residual_streams: parallel residual streams mixed around each block (hyper-connections).
    """

    dense_layers: Number
    light_layers: Number
    light_rate: Number
    heavy_layers: Number
    heavy_rate: Number
    output_groups: Number
    output_rank: Number
    residual_streams: Number


@dataclass(frozen=True, slots=True)
class Vision:
    """Images in, classes out.

    Attributes:
        patch: side of a square patch, pixels.
        image: side of the square image, pixels.
        channels: colours.
        classes: outputs of the classifier.
    """

    patch: Number
    image: Number
    channels: Number
    classes: Number

    @property
    def patches(self) -> Number:
        """Patches in an image: (image / patch)²."""
        return (self.image // self.patch) ** 2


@dataclass(frozen=True, slots=True)
class TransformerShape:
    """Sizes of a transformer. Numeric fields may be arrays that broadcast; 0 means absent.

    Attributes:
        layers: blocks; of an encoder-decoder, of the decoder alone.
        hidden: width of the residual stream.
        heads: query heads.
        kv_heads: key and value heads.
        head_dim: width of a query and key head.
        v_head_dim: width of a value head.
        ffn: width of the feed-forward of dense layers.
        vocab: rows of the token embedding.
        kind: ``decoder``, ``encoder``, ``encoder-decoder`` or ``vit``.
        architecture: model class the shape follows, empty if none.
        attention: how keys and values are shared, as the catalogue says (``MHA``, ``GQA``, ``MLA`` ...).
        gated: whether feed-forwards have a gate projection beside the up projection.
        tied_embeddings: whether the output head is the token embedding.
        max_context: longest context, tokens.
        encoder_layers: blocks of the encoder of an encoder-decoder.
        sliding_window: tokens a windowed layer attends to.
        full_attention_every: of so many layers the last attends to the whole context; 0: all alike.
        q_lora_rank: rank of the compressed queries of latent attention.
        kv_lora_rank: rank of the compressed keys and values of latent attention.
        qk_nope_head_dim: width of a latent head's part without position.
        qk_rope_head_dim: width of its part with rotary position.
        experts: routed experts of a mixture layer.
        experts_active: routed experts a token visits.
        experts_shared: experts every token visits.
        moe_ffn: width of a routed expert.
        shared_ffn: width of a shared expert.
        first_dense_layers: leading layers without experts.
        moe_every: after those, every so-manieth layer has experts.
        norm: ``RMSNorm`` or ``LayerNorm``.
        norm_vectors: learned vectors of one norm: 1 scale, 2 scale and shift, 0 none.
        norms_per_layer: norms of width ``hidden`` in a block.
        outer_norms: norms of width ``hidden`` outside the blocks.
        biases: which projections have one: ``qkv``, ``output``, ``mlp``, ``experts``, ``router``, ``head``.
        qk_norm: ``none``, ``head`` (one scale a head width) or ``full`` (over all heads).
        attention_sinks: one learned logit a head.
        query_gate: queries are twice as wide, half of them gating the output.
        positions: rows of the learned position table.
        token_types: rows of the token type table.
        relative_buckets: buckets of the relative position bias of each stack.
        embedding_width: width of the token embedding where it differs from ``hidden``.
        pooler: a dense layer over the first token.
        shared_expert_gate: the shared expert's output is scaled by a learned gate.
        router_scales: the router scales its input and each expert's output.
        indexer, linear, full_attention, compression, vision: parts only some models have.
        assumed: what the shape takes for granted because its source does not say.
    """

    layers: Number
    hidden: Number
    heads: Number
    kv_heads: Number
    head_dim: Number
    v_head_dim: Number
    ffn: Number
    vocab: Number
    kind: str = "decoder"
    architecture: str = ""
    attention: str = "MHA"
    gated: bool = True
    tied_embeddings: bool = False
    max_context: Number = 0
    encoder_layers: Number = 0
    sliding_window: Number = 0
    full_attention_every: Number = 0
    q_lora_rank: Number = 0
    kv_lora_rank: Number = 0
    qk_nope_head_dim: Number = 0
    qk_rope_head_dim: Number = 0
    experts: Number = 0
    experts_active: Number = 0
    experts_shared: Number = 0
    moe_ffn: Number = 0
    shared_ffn: Number = 0
    first_dense_layers: Number = 0
    moe_every: Number = 1
    norm: str = "RMSNorm"
    norm_vectors: Number = 1
    norms_per_layer: Number = 2
    outer_norms: Number = 1
    biases: frozenset[str] = frozenset()
    qk_norm: str = "none"
    attention_sinks: bool = False
    query_gate: bool = False
    positions: Number = 0
    token_types: Number = 0
    relative_buckets: Number = 0
    embedding_width: Number = 0
    pooler: bool = False
    shared_expert_gate: bool = False
    router_scales: bool = False
    indexer: Indexer | None = None
    linear: LinearAttention | None = None
    full_attention: GlobalAttention | None = None
    compression: Compression | None = None
    vision: Vision | None = None
    assumed: tuple[str, ...] = ()

    @property
    def moe_layers(self) -> Number:
        """Layers with routed experts."""
        return present(self.experts) * ((self.layers - self.first_dense_layers) // self.moe_every)

    @property
    def dense_layers(self) -> Number:
        """Layers with one feed-forward for all tokens."""
        return self.layers - self.moe_layers

    @property
    def full_layers(self) -> Number:
        """Layers that attend to the whole context."""
        if self.linear is None and not any_true(self.sliding_window):
            return self.layers
        every = self.full_attention_every
        return present(every) * (self.layers // (every + 1 - present(every)))

    @property
    def window_layers(self) -> Number:
        """Layers whose attention stops at the sliding window."""
        return 0 if self.linear is not None else self.layers - self.full_layers

    @property
    def linear_layers(self) -> Number:
        """Layers with a state of constant size in place of a cache."""
        return 0 if self.linear is None else self.layers - self.full_layers

    @property
    def latent(self) -> bool:
        """Whether keys and values are cached as one compressed vector (multi-head latent attention)."""
        return any_true(self.kv_lora_rank) and self.compression is None

    @property
    def token_width(self) -> Number:
        """Width of the token embedding."""
        return self.embedding_width + (1 - present(self.embedding_width)) * self.hidden
