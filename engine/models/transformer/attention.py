"""Kinds of attention: what each weighs, computes and keeps of a sequence. Formulas ask the kind; none asks for a size.

Weights of matrices (multiplied by every token) and of vectors (biases, norms) are counted apart, as classes have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import ClassVar

import numpy as np

from capacity_tui.engine.numeric import Number, any_true, present
from capacity_tui.engine.record import dataclass

AttendedTokens = Callable[[Number, Number], Number]
"""Entries a token attends to, given the most it may (0: no limit) and the tokens that an entry stands for."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Weight matrices of one kind."""

    name: str
    rows: Number
    columns: Number
    number: Number  # how many a layer has, the mean over all layers
    routed: bool = False  # whether they belong to experts


@dataclass(frozen=True, slots=True)
class Projection:
    """A product of attention as kernels run it: ``inputs`` to ``outputs`` on one device, ``runs`` in the mean layer."""

    name: str
    outputs: Number
    inputs: Number
    runs: Number = 1.0


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Gated delta net, in the layers that do not attend to the whole context."""

    title: ClassVar[str] = "linear attention"
    key_heads: Number  # query and key heads
    value_heads: Number  # value heads; queries and keys are repeated up to them
    key_dim: Number  # width of a query or key head
    value_dim: Number  # width of a value head
    kernel: Number  # taps of the causal convolution over queries, keys and values

    def weights(self, hidden: Number) -> Number:
        """Weights of one: queries, keys, values, gate, two decays, convolution, output."""
        keys, values = self.key_heads * self.key_dim, self.value_heads * self.value_dim
        projections = hidden * (2 * keys + 2 * values + 2 * self.value_heads) + values * hidden
        return projections + (2 * keys + values) * self.kernel

    @property
    def vectors(self) -> Number:
        """Step bias and decay of each value head, and the scale of the gated norm."""
        return 2 * self.value_heads + self.value_dim

    @property
    def flops(self) -> Number:
        """Operations of one for a token: read, correct and query a state of key × value width, each 2."""
        return 6 * self.value_heads * self.key_dim * self.value_dim

    @property
    def state(self) -> Number:
        """Elements one keeps of a sequence of any length: the matrix and the convolution's taps."""
        matrix = self.value_heads * self.key_dim * self.value_dim
        width = 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
        return matrix + width * (self.kernel - 1)


@dataclass(frozen=True, slots=True)
class StateSpace:
    """A recurrence over a state of constant size (Mamba), or a short convolution, in the layers that do not attend."""

    title: ClassVar[str] = "layers with a state"
    matrices: Number  # weights of matrices of one layer, a convolution's taps among them
    vectors: Number  # its other weights
    flops: Number  # operations of one layer for a token, beside those of the matrices
    state: Number  # elements one layer keeps of a sequence of any length
    in_all_layers: Number | bool = False  # whether every layer has one, those that attend too

    def weights(self, hidden: Number) -> Number:  # noqa: ARG002 (as of linear attention)
        """Weights of matrices of one."""
        return self.matrices


@dataclass(frozen=True, slots=True)
class GlobalAttention:
    """Attention of the full-context layers where it differs from that of the windowed ones (Gemma 4)."""

    title: ClassVar[str] = "other heads in layers of full context"
    kv_heads: Number
    head_dim: Number
    keys_are_values: bool  # one projection serves as keys and as values


@dataclass(frozen=True, slots=True)
class Indexer:
    """The small scorer that chooses which entries sparse attention reads."""

    title: ClassVar[str] = "an indexer"
    heads: Number  # query heads of the scorer
    head_dim: Number  # width of one
    top_k: Number  # entries kept for each query

    def flops(self, entries: Number) -> Number:
        """Operations of scoring some entries for one token."""
        return 2 * self.heads * self.head_dim * entries


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSizes:
    """The sizes of a transformer that its attention follows from, without those of latent kinds; 0 means absent."""

    layers: Number  # blocks; of an encoder-decoder, of the decoder alone
    hidden: Number  # width of the residual stream
    heads: Number
    kv_heads: Number
    head_dim: Number  # width of a query and key head
    v_head_dim: Number  # width of a value head
    attention: str = "MHA"  # how keys and values are shared, as the catalogue says (``MHA``, ``GQA``, ``MLA`` ...)
    sliding_window: Number = 0  # tokens a windowed layer attends to
    full_attention_every: Number = 0  # every n-th layer attends to the whole context; 0: all alike
    shared_key_value_layers: Number = 0  # layers, the last ones, that read the keys and values of an earlier one
    # which projections have one: ``qkv``, ``output``, ``mlp``, ``experts``, ``router``, ``head``
    biases: frozenset[str] = frozenset()
    qk_norm: str = "none"  # ``none``, ``head`` (one scale a head width) or ``full`` (over all heads)
    attention_sinks: bool = False  # one learned logit a head
    query_gate: bool = False  # queries are twice as wide, half of them gating the output
    # indexer, linear, state_space, full_attention: parts only some kinds have
    indexer: Indexer | None = None
    linear: LinearAttention | None = None
    state_space: StateSpace | None = None
    full_attention: GlobalAttention | None = None

    @property
    def recurrent(self) -> LinearAttention | StateSpace | None:
        """What layers without a cache have in place of attention."""
        return self.linear or self.state_space

    @property
    def sharing(self) -> Number:
        """Share of the layers that read keys and values of an earlier one; windowed and full ones alike."""
        return self.shared_key_value_layers / self.layers

    @property
    def has_state_everywhere(self) -> bool:
        """Whether layers that attend have a state as well."""
        return self.state_space is not None and bool(self.state_space.in_all_layers)


def multi_head_weights(sizes: AttentionSizes) -> Number:
    """Weights of one multi-head, grouped-query or multi-query attention: queries, keys and values, output."""
    query = sizes.hidden * sizes.heads * sizes.head_dim * (1 + sizes.query_gate)
    key_value = sizes.hidden * sizes.kv_heads * (sizes.head_dim + sizes.v_head_dim)
    output = sizes.heads * sizes.v_head_dim * sizes.hidden
    return query + key_value + output


def multi_head_vectors(sizes: AttentionSizes) -> Number:
    """Biases, query and key norms, and sinks of one multi-head attention."""
    query_key = sizes.heads * sizes.head_dim + sizes.kv_heads * sizes.head_dim
    biases = ("qkv" in sizes.biases) * (query_key + sizes.kv_heads * sizes.v_head_dim)
    biases = biases + ("output" in sizes.biases) * sizes.hidden
    norms = (sizes.qk_norm == "head") * 2 * sizes.head_dim + (sizes.qk_norm == "full") * query_key
    return biases + norms + sizes.attention_sinks * sizes.heads


class GroupedQuery:
    """Multi-head, grouped-query or multi-query attention: over a window, over all, or linear in some layers."""

    needed: ClassVar[tuple[str, ...]] = ()  # Further sizes that must be at least 1

    def __init__(self, sizes: AttentionSizes) -> None:
        self.sizes = sizes

    @property
    def window(self) -> Number:
        """Most tokens that a token of a windowed layer attends to; 0 without windows."""
        return self.sizes.sliding_window

    @cached_property
    def full_layers(self) -> Number:
        """Layers that attend to the whole context."""
        every = self.sizes.full_attention_every
        all_attend = self.sizes.recurrent is None or (self.sizes.has_state_everywhere and not every)
        if all_attend and not any_true(self.window):
            return self.sizes.layers
        return present(every) * (self.sizes.layers // (every + 1 - present(every)))

    @cached_property
    def window_layers(self) -> Number:
        """Layers whose attention stops at the window."""
        return 0 if self.sizes.recurrent is not None else self.sizes.layers - self.full_layers

    @cached_property
    def linear_layers(self) -> Number:
        """Layers with a state of constant size in place of a cache."""
        others = 0 if self.sizes.has_state_everywhere else self.full_layers
        return 0 if self.sizes.recurrent is None else self.sizes.layers - others

    @property
    def attending_share(self) -> Number:
        """Share of the layers that attend to other tokens."""
        return (self.full_layers + self.window_layers) / self.sizes.layers

    def mean_attended(self, full: Number, windowed: Number) -> Number:
        """Mean over the layers of tokens that full-context layers, and windowed ones, attend to."""
        return (self.full_layers * full + self.window_layers * windowed) / self.sizes.layers

    @property
    def query_width(self) -> Number:
        """Width of all queries (and keys after expansion) of a layer."""
        return self.sizes.heads * self.sizes.head_dim

    @property
    def value_width(self) -> Number:
        """Width of the attention output before its projection."""
        return self.sizes.heads * self.sizes.v_head_dim

    @property
    def key_value_width(self) -> Number:
        """Width of the keys and values of a token that attention reads."""
        return self.sizes.kv_heads * (self.sizes.head_dim + self.sizes.v_head_dim)

    @property
    def latent_width(self) -> Number:
        """Width of what is kept to expand queries, keys and values from again, beside the layer's input."""
        return 0.0

    @property
    def key_value_heads(self) -> Number:
        """Heads of keys and values that attention reads."""
        return self.sizes.kv_heads

    @property
    def cached_heads(self) -> Number:
        """Heads of the cache that devices can share out; beyond these they hold copies."""
        return self.sizes.kv_heads

    def weights(self) -> Number:
        """Weights of matrices in the attention of all layers."""
        own = self.window_layers * self.layer_weights() + self.full_layers * self.full_layer_weights()
        shared = self.sizes.sharing * self.sizes.hidden * self._all_cached()
        return self._with_linear(own - shared, lambda linear: linear.weights(self.sizes.hidden))

    def vectors(self) -> Number:
        """Weights of vectors in the attention of all layers."""
        windowed = self.window_layers * self.layer_vectors()
        return self._with_linear(windowed + self.full_layers * self.full_layer_vectors(), lambda linear: linear.vectors)

    def layer_weights(self) -> Number:
        """Weights of matrices of a windowed layer."""
        return multi_head_weights(self.sizes)

    def full_layer_weights(self) -> Number:
        """Weights of matrices of a layer of full context."""
        sizes, part = self.sizes, self.sizes.full_attention
        if part is None:
            return self.layer_weights()
        query_output = 2 * sizes.hidden * sizes.heads * part.head_dim
        return query_output + sizes.hidden * part.kv_heads * part.head_dim * (2 - part.keys_are_values)

    def layer_vectors(self) -> Number:
        """Weights of vectors of a windowed layer."""
        return multi_head_vectors(self.sizes)

    def full_layer_vectors(self) -> Number:
        """Weights of vectors of a layer of full context."""
        part = self.sizes.full_attention
        return self.layer_vectors() if part is None else (self.sizes.qk_norm == "head") * 2 * part.head_dim

    def matrices(self) -> Iterator[Matrix]:
        """Yield the matrices of one attention of the mean layer; linear and compressed ones count as ordinary ones."""
        sizes, hidden = self.sizes, self.sizes.hidden
        yield Matrix("query projection", hidden, sizes.heads * sizes.head_dim * (1 + sizes.query_gate), 1.0)
        yield Matrix("key projection", hidden, sizes.kv_heads * sizes.head_dim, 1.0)
        yield Matrix("value projection", hidden, sizes.kv_heads * sizes.v_head_dim, 1.0)
        yield Matrix("attention output projection", self.value_width, hidden, 1.0)

    def projections(self, tp: Number) -> Iterator[Projection]:
        """Yield the products before attention in a layer split over ``tp`` devices; gates and state spaces run more."""
        outputs, hidden = self.query_width + self.key_value_width, self.sizes.hidden
        runs = np.maximum(self.weights() / self.sizes.layers / hidden - self.value_width, 0.0) / outputs
        yield Projection("query, key and value projection", outputs / tp, hidden, runs)

    @property
    def score_width(self) -> Number:
        """Widths of a query head and of a value head, in a windowed layer."""
        return self.sizes.head_dim + self.sizes.v_head_dim

    @property
    def absorbed_width(self) -> Number:
        """The same where heads attend to what the cache holds, as it is."""
        return self.score_width

    def flops(self, attended: AttendedTokens) -> Number:
        """Operations of scores and weighted values in all layers, for one token.

        A layer takes ``2 · attended · heads · (query width + value width)``.
        """
        windowed = self.sizes.heads * self.score_width * attended(self.window, 1)
        full = self.full_layers * self.full_layer_flops(attended)
        return self._with_linear(2 * self.window_layers * windowed + full, lambda linear: linear.flops)

    def recurrence_flops(self) -> Number:
        """Operations of the states of all layers, for one token, among those of ``flops``."""
        return self._with_linear(0, lambda linear: linear.flops)

    def full_layer_flops(self, attended: AttendedTokens) -> Number:
        """Operations of one layer that may attend to everything; an indexer narrows it to its best entries."""
        sizes, index = self.sizes, self.sizes.indexer
        width = self.score_width if sizes.full_attention is None else 2 * sizes.full_attention.head_dim
        if index is None:
            return 2 * sizes.heads * width * attended(0, 1)
        return 2 * sizes.heads * width * attended(index.top_k, 1) + index.flops(attended(0, 1))

    def decode_flops(self, attended: AttendedTokens) -> Number:
        """Operations of all layers for a token that an engine generates from the cache."""
        return self.flops(attended)

    def scores(self, attended: AttendedTokens) -> Number:
        """Attention scores in all layers, for one token: where they are stored, all are before an indexer chooses."""
        windowed = self.window_layers * attended(self.window, 1)
        return self.sizes.heads * (windowed + self.full_layers * attended(0, 1))

    def cached(self) -> Number:
        """Elements of keys and values that one token adds to the cache of all layers, before any window drops it."""
        return (1 - self.sizes.sharing) * self._all_cached()

    def _all_cached(self) -> Number:
        """Elements of keys and values of one token that all layers attend to."""
        return self.window_layers * self.layer_cached() + self.full_layers * self.full_layer_cached()

    def layer_cached(self) -> Number:
        """Elements a windowed layer keeps of a token: ``kv_heads · (head_dim + v_head_dim)``."""
        return self.key_value_width

    def full_layer_cached(self) -> Number:
        """Elements a layer of full context keeps of a token.

        Rotary positions turn keys only, so both are kept even where one projection makes them.
        """
        part = self.sizes.full_attention
        return self.layer_cached() if part is None else 2 * part.kv_heads * part.head_dim

    def indexed(self) -> Number:
        """Elements of the indexer's keys that one token adds to the cache of all layers."""
        return 0 if self.sizes.indexer is None else self.sizes.layers * self.sizes.indexer.head_dim

    def in_windows(self, context: Number) -> Number:
        """Elements that windows hold beside ``cached`` of all tokens; negative where windows drop some of those."""
        windows = (1 - self.sizes.sharing) * self.window_layers * self.layer_cached()
        return windows * (np.minimum(context, self.window) - context)

    def state(self) -> Number:
        """Elements kept of a sequence of any length."""
        return self._with_linear(0, lambda linear: linear.state)

    def _with_linear(self, rest: Number, of_layer: Callable[[LinearAttention | StateSpace], Number]) -> Number:
        recurrent = self.sizes.recurrent
        return rest if recurrent is None else rest + self.linear_layers * of_layer(recurrent)
