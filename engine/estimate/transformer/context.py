"""Context parallelism: what devices that share a sequence exchange for attention, and what that holds in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.timing.collectives import all_gather_seconds, all_to_all_seconds
from capacity_tui.engine.estimate.timing.roofline import operator_seconds
from capacity_tui.engine.estimate.transformer.attention import attention_operators
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.work import Collective, HidingPass, Operator
from capacity_tui.engine.numeric import Number, any_true, where

FORWARD_EXCHANGES, BACKWARD_EXCHANGES = counted("context-exchanges"), counted("context-exchanges-backward")
RING_BUFFERS = counted("ring-buffers")


@equation(
    "share = min(most, kernels · (1 - 1 / ring) / exchange)",
    unit="",
    source="Liu et al. 2023: a piece travels while the one before is worked on, which hides no more than that takes",
    units={"kernels": "s", "exchange": "s"},
    origins={"most": "coefficients.context-overlap"},
)
def hidden_by_pieces(most: Number, kernels: Number, ring: Number, exchange: Number) -> Number:
    """Share of a ring's exchange that attention over the other pieces hides.

    Args:
        most: share that hides at best.
        kernels: seconds of attention over all pieces.
        ring: devices that share a sequence.
        exchange: seconds that all pieces travel.
    """
    return np.minimum(most, kernels * (1.0 - 1.0 / ring) / exchange)


@equation(
    "bytes = tokens · (ring · buffers · cache + gathered · (group - 1) · cache + swapped · (outputs + cache))",
    unit="B",
    source="pieces under way; keys and values of all devices; or queries, keys, values and outputs of other tokens",
    units={"cache": "B", "outputs": "B"},
    origins={"buffers": "counts.ring-buffers"},
)
def exchange_bytes(
    tokens: Number,
    ring: Number,
    buffers: Number,
    cache: Number,
    gathered: Number,
    group: Number,
    swapped: Number,
    outputs: Number,
) -> Number:
    """Bytes that the exchange of the layer at work holds beside what the layer keeps.

    Args:
        tokens: tokens of a micro-batch on the device.
        ring: 1 where pieces go round.
        buffers: pieces under way at a time.
        cache: bytes of a token's keys and values on the device.
        gathered: 1 where every device collects all keys and values.
        group: devices that share a sequence.
        swapped: 1 where tokens are swapped for heads.
        outputs: bytes of a token's queries and outputs on the device.
    """
    return tokens * (ring * buffers * cache + gathered * (group - 1.0) * cache + swapped * (outputs + cache))


def context_collectives(run: TransformerRun) -> Iterator[Collective]:
    """Keys and values travel around the group or are gathered, or tokens are swapped for heads; gradients go back."""
    layout = run.layout
    if not any_true(layout.cp > 1):
        return
    again = run.recompute.full_layers
    if any_true(layout.context_swap < 1):
        yield from _keys_and_values(run, again)
    if any_true(layout.context_swap > 0):
        yield from _swaps(run, again)


def _keys_and_values(run: TransformerRun, again: Number) -> Iterator[Collective]:
    layout = run.layout
    payload = run.tokens * layout.cp * _cache_bytes(run)
    seconds = where(layout.cp > 1, all_gather_seconds(payload, layout.cp, layout.tp, run.cluster), 0.0)
    layers = run.layers_per_stage * (1.0 - layout.context_swap)
    forward, backward, *_ = attention_operators(run)
    passes: tuple[tuple[str, HidingPass, Operator, float, Number], ...] = (
        ("exchange of keys and values", "forward", forward, FORWARD_EXCHANGES, 1.0 + again),
        ("exchange of keys, values and gradients", "backward", backward, BACKWARD_EXCHANGES, 1.0),
    )
    for name, beside, kernel, times, count in passes:
        travelling = np.maximum(times * seconds, np.finfo(float).tiny)
        hidden = hidden_by_pieces(run.software.context_overlap, operator_seconds(kernel), run.ring, travelling)
        yield Collective(name, "context_parallel", times * seconds, layers * count, hidden, bytes=times * payload,
                         hides_behind=beside, group=layout.cp, stride=layout.tp)  # fmt: skip


def _swaps(run: TransformerRun, again: Number) -> Iterator[Collective]:
    """Queries, keys and values go to the devices of their heads, outputs come back; backward the other way."""
    layout = run.layout
    copies = np.maximum(1.0, layout.cp * layout.tp / run.shape.kv_heads)
    each = run.tokens * run.numerics.element_bytes / layout.tp
    payloads = (each * run.query_width, each * run.value_width, run.tokens * _cache_bytes(run) * copies)
    seconds = sum((all_to_all_seconds(payload, layout.cp, layout.tp, run.cluster) for payload in payloads), start=0.0)
    count = run.layers_per_stage * layout.context_swap * (2.0 + again)
    yield Collective("all-to-all of tokens for heads", "context_parallel", seconds, count, bytes=sum(payloads),
                     group=layout.cp, stride=layout.tp)  # fmt: skip


def exchange_memory(run: TransformerRun) -> Number:
    """Bytes that the exchange of the layer at work holds."""
    layout = run.layout
    if not any_true(layout.cp > 1):
        return 0.0
    ring, shared = where(run.ring > 1, 1.0, 0.0), where(layout.cp > 1, 1.0, 0.0)
    outputs = run.numerics.element_bytes * (run.query_width + run.value_width) / layout.tp
    return exchange_bytes(run.tokens, ring, RING_BUFFERS, _cache_bytes(run), layout.context_gather * shared, layout.cp,
                          layout.context_swap * shared, outputs)  # fmt: skip


def _cache_bytes(run: TransformerRun) -> Number:
    """Bytes of the keys and values of a token on the device."""
    return run.shape.kv_heads * (run.shape.head_dim + run.shape.v_head_dim) * run.numerics.element_bytes / run.layout.tp
