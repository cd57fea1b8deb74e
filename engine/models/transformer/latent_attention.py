"""Attention through compressed keys and values: to low ranks, and to entries that stand for several tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np

from capacity_tui.engine.models.transformer.attention import (
    AttendedTokens,
    AttentionSizes,
    GlobalAttention,
    GroupedQuery,
    Indexer,
    LinearAttention,
    Matrix,
    Projection,
    StateSpace,
)
from capacity_tui.engine.numeric import Number, any_true, present, where
from capacity_tui.engine.record import dataclass


@dataclass(frozen=True, slots=True)
class Compression:
    """Keys compressed along the sequence, one shared key-value head, grouped output projection."""

    title: ClassVar[str] = "compressed attention"
    dense_layers: Number  # layers with a window only
    light_layers: Number  # layers that compress ``light_rate`` tokens into one entry and choose with an indexer
    light_rate: Number  # tokens an entry of a light layer stands for
    heavy_layers: Number  # layers that compress ``heavy_rate`` tokens into one entry and read all of them
    heavy_rate: Number  # tokens an entry of a heavy layer stands for
    output_groups: Number  # groups of heads in the output projection
    output_rank: Number  # width each group is projected to
    residual_streams: Number  # parallel residual streams mixed around each block (hyper-connections)


ATTENTION_PARTS: Mapping[str, type[LinearAttention | StateSpace | GlobalAttention | Indexer | Compression]] = {
    "linear": LinearAttention,
    "state_space": StateSpace,
    "full_attention": GlobalAttention,
    "indexer": Indexer,
    "compression": Compression,
}
"""Parts only some kinds of attention have, by the shape's field."""


@dataclass(frozen=True, kw_only=True)
class LatentSizes(AttentionSizes):
    """The sizes of a transformer that its attention follows from; 0 means absent.

    Without slots of its own, so that what follows from the sizes is kept with them once it was asked for.
    """

    q_lora_rank: Number = 0  # rank of the compressed queries
    kv_lora_rank: Number = 0  # rank of the compressed keys and values
    qk_nope_head_dim: Number = 0  # width of a latent head's part without position
    qk_rope_head_dim: Number = 0  # width of its part with rotary position
    compression: Compression | None = None

    @cached_property
    def attention_kind(self) -> GroupedQuery:
        """The kind of attention, which answers all that formulas ask."""
        if self.compression is not None:
            return Compressed(self, self.compression)
        return Latent(self) if any_true(self.kv_lora_rank) else GroupedQuery(self)


class _LowRank(GroupedQuery):
    """Attention whose queries, keys or values pass a low rank."""

    sizes: LatentSizes

    @property
    def latent_width(self) -> Number:
        """The ranks of queries, and of keys and values, and the rotary key."""
        return self.sizes.q_lora_rank + self.sizes.kv_lora_rank + self.sizes.qk_rope_head_dim


class Latent(_LowRank):
    """Multi-head latent attention: keys and values are cached as one compressed vector and a rotary key.

    DeepSeek-V2, arXiv:2405.04434, section 2.1. Queries pass a rank of ``q_lora_rank`` where there is one.
    """

    needed = ("qk_nope_head_dim", "qk_rope_head_dim")

    @property
    def query_width(self) -> Number:
        """Width of all queries (and keys after expansion) of a layer."""
        return self.sizes.heads * (self.sizes.qk_nope_head_dim + self.sizes.qk_rope_head_dim)

    @property
    def key_value_width(self) -> Number:
        """Width of the expanded keys and values of a token."""
        return self.query_width + self.value_width

    @property
    def key_value_heads(self) -> Number:
        """The number of query heads, after expansion."""
        return self.sizes.heads

    @property
    def cached_heads(self) -> Number:
        """The compressed vector is one: every device holds it."""
        return 1.0

    @property
    def score_width(self) -> Number:
        """Widths of a query head and of a value head."""
        return self.sizes.qk_nope_head_dim + self.sizes.qk_rope_head_dim + self.sizes.v_head_dim

    @property
    def absorbed_width(self) -> Number:
        """The compressed vector, as keys and as values, and the rotary key."""
        return 2.0 * self.sizes.kv_lora_rank + self.sizes.qk_rope_head_dim

    def layer_weights(self) -> Number:
        """Queries, keys and values through ranks, output, and an indexer's queries, key head and head weights."""
        sizes, index = self.sizes, self.sizes.indexer
        full = sizes.hidden * self.query_width
        low_rank = sizes.q_lora_rank * (sizes.hidden + self.query_width)
        query = low_rank + (1 - present(sizes.q_lora_rank)) * full
        down = sizes.hidden * (sizes.kv_lora_rank + sizes.qk_rope_head_dim)
        up = sizes.kv_lora_rank * sizes.heads * (sizes.qk_nope_head_dim + sizes.v_head_dim)
        whole = query + down + up + sizes.heads * sizes.v_head_dim * sizes.hidden
        if index is None:
            return whole
        return whole + sizes.q_lora_rank * index.heads * index.head_dim + sizes.hidden * (index.head_dim + index.heads)

    def layer_vectors(self) -> Number:
        """Norms of the compressed queries and of the compressed keys and values, and of the indexer's keys."""
        indexer = 0 if self.sizes.indexer is None else 2 * self.sizes.indexer.head_dim
        return self.sizes.q_lora_rank + self.sizes.kv_lora_rank + indexer

    def matrices(self) -> Iterator[Matrix]:
        """Yield the matrices of one attention of the mean layer."""
        sizes, hidden, low = self.sizes, self.sizes.hidden, present(self.sizes.q_lora_rank)
        yield Matrix("query down projection", hidden, sizes.q_lora_rank, low)
        yield Matrix("query up projection", low * sizes.q_lora_rank + (1 - low) * hidden, self.query_width, 1.0)
        yield Matrix("key and value down projection", hidden, sizes.kv_lora_rank + sizes.qk_rope_head_dim, 1.0)
        up = sizes.heads * (sizes.qk_nope_head_dim + sizes.v_head_dim)
        yield Matrix("key and value up projection", sizes.kv_lora_rank, up, 1.0)
        yield Matrix("attention output projection", self.value_width, hidden, 1.0)

    def projections(self, tp: Number) -> Iterator[Projection]:
        """Yield the products before attention: down to the ranks on every device, and up from them."""
        sizes = self.sizes
        rank = where(sizes.q_lora_rank > 0, sizes.q_lora_rank, 0.0)
        down = rank + sizes.kv_lora_rank + sizes.qk_rope_head_dim
        yield Projection("attention down projection", down, sizes.hidden)
        inputs = where(sizes.q_lora_rank > 0, sizes.q_lora_rank, sizes.hidden)
        yield Projection("query up projection", self.query_width / tp, inputs)
        up = sizes.heads * (sizes.qk_nope_head_dim + sizes.v_head_dim) / tp
        yield Projection("key and value up projection", up, sizes.kv_lora_rank)

    def decode_flops(self, attended: AttendedTokens) -> Number:
        """Absorbed projections: every head works on compressed keys and values, on all or on those an indexer chose."""
        sizes, index = self.sizes, self.sizes.indexer
        if index is None:
            return sizes.layers * 2.0 * sizes.heads * attended(0, 1) * self.absorbed_width
        chosen = 2.0 * sizes.heads * attended(index.top_k, 1) * self.absorbed_width
        return sizes.layers * (chosen + index.flops(attended(0, 1)))

    def layer_cached(self) -> Number:
        """The compressed vector and the rotary key: ``kv_lora_rank + qk_rope_head_dim``."""
        return self.sizes.kv_lora_rank + self.sizes.qk_rope_head_dim


class Compressed(_LowRank):
    """Compressed attention (DeepSeek-V4): a window in each layer, and entries that stand for several tokens in most.

    Each layer has low-rank queries, one key-value head and a grouped output.
    """

    def __init__(self, sizes: LatentSizes, part: Compression) -> None:
        super().__init__(sizes)
        self.part = part

    def weights(self) -> Number:
        """Weights of matrices in all layers, with the mixing of residual streams.

        Light layers add compressors of twice the head width for the entries and for the indexer, heavy layers one of
        the head width.
        """
        sizes, part, index = self.sizes, self.part, self.sizes.indexer
        query = sizes.q_lora_rank * (sizes.hidden + self.query_width)
        output = part.output_rank * self.query_width + part.output_groups * part.output_rank * sizes.hidden
        layer = query + sizes.hidden * sizes.head_dim + output
        streams = part.residual_streams
        mixing = 2 * (2 + streams) * streams * streams * sizes.hidden
        heavy = 2 * sizes.hidden * sizes.head_dim
        light = 2 * heavy
        if index is not None:
            light = light + 4 * sizes.hidden * index.head_dim + sizes.hidden * index.heads
            light = light + sizes.q_lora_rank * index.heads * index.head_dim
        layers = sizes.layers * (layer + mixing) + part.light_layers * light + part.heavy_layers * heavy
        return layers + streams**2 * sizes.hidden

    def vectors(self) -> Number:
        """Norms, sinks, stream offsets and the compressors' position tables of all layers."""
        sizes, part, streams = self.sizes, self.part, self.part.residual_streams
        layer = sizes.q_lora_rank + sizes.head_dim + sizes.heads + 2 * ((2 + streams) * streams + 3)
        heavy = part.heavy_rate * sizes.head_dim + sizes.head_dim
        light = part.light_rate * 2 * sizes.head_dim + sizes.head_dim
        if sizes.indexer is not None:
            light = light + (2 * part.light_rate + 1) * sizes.indexer.head_dim
        return sizes.layers * layer + part.light_layers * light + part.heavy_layers * heavy + streams + 1

    def flops(self, attended: AttendedTokens) -> Number:
        """Operations for one token: a window in each layer, and compressed entries in most."""
        sizes, part, index = self.sizes, self.part, self.sizes.indexer
        entry = 4 * sizes.heads * sizes.head_dim
        window = sizes.layers * entry * attended(self.window, 1)
        heavy = part.heavy_layers * entry * attended(0, part.heavy_rate)
        if index is None:
            return window + heavy + part.light_layers * entry * attended(0, part.light_rate)
        scores = index.flops(attended(0, part.light_rate))
        return window + heavy + part.light_layers * (entry * attended(index.top_k, part.light_rate) + scores)

    def scores(self, attended: AttendedTokens) -> Number:
        """Attention scores in all layers, for one token: those of the window and of the entries."""
        part = self.part
        light = part.light_layers * attended(0, part.light_rate)
        heavy = part.heavy_layers * attended(0, part.heavy_rate)
        return self.sizes.heads * (self.sizes.layers * attended(self.window, 1) + light + heavy)

    def cached(self) -> Number:
        """Elements that one token adds to the cache: the share of an entry that it makes up; windows are constant."""
        part = self.part
        entries = part.light_layers / part.light_rate + part.heavy_layers / part.heavy_rate
        return entries * self.sizes.head_dim

    def indexed(self) -> Number:
        """Elements of the indexer's keys that one token adds to the cache: one key an entry."""
        part, index = self.part, self.sizes.indexer
        return 0 if index is None else part.light_layers * index.head_dim / part.light_rate

    def in_windows(self, context: Number) -> Number:
        """Elements that the windows of all layers hold, one vector a token."""
        return self.sizes.layers * self.sizes.head_dim * np.minimum(context, self.window)
