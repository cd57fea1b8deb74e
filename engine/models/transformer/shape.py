"""The shape of a transformer: every number its parameters, operations and cache follow from."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.models.transformer.latent_attention import LatentSizes
from capacity_tui.engine.numeric import Number, present


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerShape(LatentSizes):
    """Sizes of a transformer: those of its attention, and these. Numeric fields may be arrays; 0 means absent.

    Attributes:
        ffn: width of the feed-forward of dense layers.
        vocab: rows of the token embedding.
        kind: ``decoder``, ``encoder``, ``encoder-decoder`` or ``vit``.
        architecture: model class the shape follows, empty if none.
        gated: whether feed-forwards have a gate projection beside the up projection.
        tied_embeddings: whether the output head is the token embedding.
        max_context: longest context, tokens.
        encoder_layers: blocks of the encoder of an encoder-decoder.
        experts: routed experts of a mixture layer.
        experts_active: routed experts a token visits.
        experts_shared: experts every token visits.
        moe_ffn: width of a routed expert.
        shared_ffn: width of a shared expert.
        first_dense_layers: leading layers without experts.
        moe_every: after those, every n-th layer has experts.
        norm: ``RMSNorm`` or ``LayerNorm``.
        norm_vectors: learned vectors of one norm: 1 scale, 2 scale and shift, 0 none.
        norms_per_layer: norms of width ``hidden`` in a block.
        outer_norms: norms of width ``hidden`` outside the blocks.
        positions: rows of the learned position table.
        token_types: rows of the token type table.
        relative_buckets: buckets of the relative position bias of each stack.
        embedding_width: width of the token embedding where it differs from ``hidden``.
        pooler: a dense layer over the first token.
        shared_expert_gate: the shared expert's output is scaled by a learned gate.
        router_scales: the router scales its input and each expert's output.
        vision: images in, classes out; of vision models.
        assumed: what the shape takes for granted because its source does not say.
    """

    ffn: Number
    vocab: Number
    kind: str = "decoder"
    architecture: str = ""
    gated: bool = True
    tied_embeddings: bool = False
    max_context: Number = 0
    encoder_layers: Number = 0
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
    positions: Number = 0
    token_types: Number = 0
    relative_buckets: Number = 0
    embedding_width: Number = 0
    pooler: bool = False
    shared_expert_gate: bool = False
    router_scales: bool = False
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
    def token_width(self) -> Number:
        """Width of the token embedding."""
        return self.embedding_width + (1 - present(self.embedding_width)) * self.hidden
