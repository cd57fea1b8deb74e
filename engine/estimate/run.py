"""What the runs of transformers, of networks and of serving have in common: layout, data and rates of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel

from capacity_tui.engine.catalog.rows import MIB, ScalingLaw
from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.data.supply import Supply
from capacity_tui.engine.estimate.timing.attention import AttentionRates
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import ParallelismSection
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import MICRO

SWAP, GATHER = "all_to_all", "all_gather"
_Numbers = TypeVar("_Numbers")
# How rows write what runs count in seconds and bytes.
_UNITS: Mapping[str, tuple[str, float]] = {"_seconds": ("_us", MICRO), "_bytes": ("_mib", MIB)}


@dataclass(frozen=True, slots=True)
class RunLayout:
    """How a run is spread over devices and their hosts."""

    # dp, tp, pp, cp, ep, etp: data, tensor, pipeline, context, expert and expert-tensor parallel sizes
    dp: Number = 1.0
    tp: Number = 1.0
    pp: Number = 1.0
    cp: Number = 1.0
    ep: Number = 1.0
    etp: Number = 1.0
    interleave: Number = 1.0  # pipeline chunks a device holds
    zero: Number = 0.0  # sharding stage 0 to 3
    shard: Number = 1.0  # ranks in one sharding group
    sequence_parallel: Number = 0.0  # 1 where norms are split over the tensor-parallel group
    # context_swap, context_gather: 1 where context parallelism swaps tokens for heads, or gathers keys and values
    context_swap: Number = 0.0
    context_gather: Number = 0.0
    # offload_optimizer, offload_parameters, offload_activations: 1 where kept in host memory
    offload_optimizer: Number = 0.0
    offload_parameters: Number = 0.0
    offload_activations: Number = 0.0


@dataclass(frozen=True, slots=True)
class RunData:
    """What a step of training works on, and in which portions."""

    micro_batch: Number  # sequences, or samples of a network, that a replica works on at once
    global_batch: Number  # those of an optimizer step
    local_batches: Number = 1.0  # times the pipeline is filled and emptied for a step
    sequences: Number = 1.0  # sequences of one sample
    seq_len: Number = 1.0  # tokens in a sequence
    document: Number = 0.0  # mean tokens of a document where attention stops at its ends; 0 where it spans the sequence
    dropout: Number | None = None  # what each block leaves out at random; None where the model's kind decides
    varied: Number = 0.0  # 1 where micro-batches differ in length
    # tokens of a sequence whose logits over the vocabulary the loss reads, all where there are more
    predicted: Number = np.inf
    tiles: Number = 1.0  # pieces of the sequence that feed-forwards work through one after another
    natural_routing: Number = 0.0  # 1 where tokens spread over experts as a trained router spreads them, 0 where evenly
    # what tokens teach a model of its kind; None where no law says, and for models that are not new
    law: ScalingLaw | None = None
    supply: Supply | None = None  # how its data reach the devices; None where the plan says nothing of them


@dataclass(frozen=True, slots=True)
class KernelRates:
    """What the kernels of a device reach."""

    peak: Number  # dense peak of the linear layers, FLOP/s
    gemm_reach: Number  # share of it that large products sustain
    attention_peak: Number  # dense peak of attention, and of what is never cast to a narrower type, FLOP/s
    attention_reach: Number  # share of it that large products sustain
    vector_peak: Number  # fp32 peak outside the matrix units, FLOP/s
    attention: AttentionRates  # what the kernel of attention reaches
    casts: Number = 0.0  # 1 where operands are cast to a narrower type before each product
    absorbed_reach: Number = 0.0  # share of the attention's peak over compressed keys of prompts; 0: they are expanded


def run_layout(section: ParallelismSection, device: Device, *, offloads_activations: bool = False) -> RunLayout:
    """Return the layout of a plan whose sizes are settled; what has no memory beside the host's offloads nothing."""
    has_host = device.has_own_memory
    return RunLayout(
        dp=float(section.dp or 1),
        tp=float(section.tp or 1),
        pp=float(section.pp or 1),
        cp=float(section.cp),
        ep=float(section.ep),
        etp=float(section.etp or 1),
        interleave=float(section.interleave),
        zero=float(section.zero or 0),
        shard=float(section.shard or 1),
        sequence_parallel=float(bool(section.sequence_parallel)),
        context_swap=float(section.context == SWAP),
        context_gather=float(section.context == GATHER),
        offload_optimizer=float(section.offload in {"optimizer", "parameters"}) * has_host,
        offload_parameters=float(section.offload == "parameters") * has_host,
        offload_activations=float(section.offload == "activations" or offloads_activations) * has_host,
    )


def numbers_of(kind: type[_Numbers], row: BaseModel, **given: Any) -> _Numbers:
    """Return a record of numbers: those that are given, the others as a row has them, in seconds and bytes.

    Args:
        kind: the record's class; ``x_seconds`` is read from ``x_us`` too, ``x_bytes`` from ``x_mib``.
        row: a row of the catalogue.
        given: numbers that are not the row's.
    """
    return kind(**{entry.name: _number(row, entry.name) for entry in fields(kind) if entry.name not in given}, **given)  # type: ignore[arg-type]


def _number(row: BaseModel, name: str) -> Number:
    """Return a number of a row; a fit puts arrays in the place of numbers, and they stay arrays."""
    written, scale = name, 1.0
    for ending, (other, unit) in _UNITS.items():
        if name.endswith(ending) and not hasattr(row, name):
            written, scale = name.removesuffix(ending) + other, unit
    value = getattr(row, written)
    return (float(value) if np.ndim(value) == 0 else np.asarray(value, dtype=float)) * scale
