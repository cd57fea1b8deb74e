"""What runs of transformers, of networks and of serving have in common: layout, data, numbers, rates of kernels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
from pydantic import BaseModel

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.catalog.rows import MIB, Framework, Optimizer, ScalingLaw
from capacity_tui.engine.cluster import Cluster, Device
from capacity_tui.engine.estimate.data.supply import Supply
from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.estimate.timing.roofline import (
    AttentionRates,
    gemm_bytes,
    gemm_rate,
    host_link_bandwidth,
    optimizer_bandwidth,
    reached_share,
)
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.models.transformer import Matrix
from capacity_tui.engine.numeric import Number, any_true, present, where
from capacity_tui.engine.plan import NO_MASTER, ParallelismSection, TrainingSection
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import FP32_BYTES, MICRO

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
    seq_len: Number = 1.0  # tokens in a sequence; of an encoder-decoder, of its source
    target: Number = 0.0  # tokens of an encoder-decoder's target; 0 where it has those of its source
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
    mfu: Number | None = None  # share of the peak that the model's own arithmetic reaches, where the plan holds it


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
    numbers = {
        name: _number(getattr(row, written)) * scale
        for name, (written, scale) in _written(cast("Hashable", kind), type(row)).items()
        if name not in given
    }
    return kind(**numbers, **given)


@cache
def _written(kind: type[Any], row_type: type[BaseModel]) -> Mapping[str, tuple[str, float]]:
    """Return how rows write each number of a record: the name there, and what it is multiplied with."""
    known = {entry.name: (entry.name, 1.0) for entry in fields(kind)}
    for name in known:
        for ending, (other, unit) in _UNITS.items():
            written = name.removesuffix(ending) + other
            if written != name and name.endswith(ending) and written in row_type.model_fields:
                known[name] = written, unit
    return known


def _number(value: Number) -> Number:
    """Return a number of a row as it is computed with; a fit puts arrays in the place of numbers."""
    return np.asarray(value, dtype=float) if isinstance(value, np.ndarray) and value.ndim else float(value)


# Memory traffic of an optimizer that runs one kernel for each operation, over that of one kernel for all.
SEPARATE_PASSES = counted("separate-optimizer-passes")
TYPE, WIDTH = "bf16", 2.0  # The type Newton-Schulz iterations run in, and its bytes


@dataclass(frozen=True, slots=True)
class OptimizerNumbers:
    """What an optimizer keeps for a parameter, in bytes, and does with it in a step, in bytes and FLOPs."""

    # states of a parameter of a matrix; of ``Numerics.averaged``, of matrices and vectors, the mean
    state_bytes: Number
    longer_side_bytes: Number  # states of an element of the longer side of a matrix, where it keeps no whole ones
    shorter_side_bytes: Number  # the same of the shorter side
    vector_state_bytes: Number  # states of a parameter of a norm or bias
    outer_state_bytes: Number  # states of a parameter of embedding or head
    temporary_bytes: Number  # what separate operations write aside for a parameter
    traffic: Number  # what it reads and writes for a parameter in a step
    outer_traffic: Number  # the same of embedding and head
    flops: Number  # element-wise operations for a parameter in a step
    newton_schulz_steps: Number  # iterations that orthogonalize the update of a matrix, 0 without
    assumed_rank: Number  # rank of its states where they have one that the plan does not say, else 0

    @property
    def multiplies_matrices(self) -> object:
        """Where the step multiplies whole matrices."""
        return np.asarray(self.newton_schulz_steps) > 0


@dataclass(frozen=True, slots=True)
class Numerics:
    """Bytes of numbers in a training run."""

    element_bytes: float  # an activation
    weight_bytes: float  # a parameter, between uses
    master_bytes: float  # its fp32 copy, 0 if none
    gradient_bytes: float  # a gradient as kept
    optimizer: OptimizerNumbers  # what the optimizer keeps and does

    def averaged(self, matrices: Iterable[Matrix], parameters: Number) -> Numerics:
        """Return the same with the mean states of so many parameters, most of them in some matrices."""
        weights: Number = 0.0
        sides: Number = 0.0
        states = self.optimizer
        for matrix in matrices:
            weights = weights + matrix.number * matrix.rows * matrix.columns
            longer, shorter = np.maximum(matrix.rows, matrix.columns), np.minimum(matrix.rows, matrix.columns)
            kept = states.longer_side_bytes * longer + states.shorter_side_bytes * shorter
            sides = sides + matrix.number * kept * present(matrix.columns)
        inside = np.minimum(weights, parameters)
        mean = mean_states(states.state_bytes, inside, sides, states.vector_state_bytes, parameters)
        return replace(self, optimizer=replace(states, state_bytes=mean))


def training_numerics(
    training: TrainingSection, row: Framework, catalog: Catalog, *, on_processor: bool = False
) -> Numerics:
    """Return the bytes of a training section whose fields are settled."""
    optimizer = catalog.optimizers.find(training.optimizer)
    kept = catalog.precisions.find(training.precision)
    full = kept.master_bytes == 0.0
    element_bytes = kept.activation_bytes
    mixed = training.master_weights != NO_MASTER and not full
    weight_bytes = kept.master_bytes if mixed and row.fp32_parameters else kept.weight_bytes
    master_bytes = kept.master_bytes if mixed and not row.fp32_parameters else 0.0
    gradients = training.gradients or (kept.wide if full else row.gradients)
    if training.master_weights == NO_MASTER and training.gradients is None and not full:
        gradients = kept.wide
    gradient_bytes = catalog.precisions.find(gradients).gradient_bytes
    lean = weight_bytes + master_bytes < FP32_BYTES
    narrowed = _narrowed(optimizer) if lean else 1.0
    matrix = optimizer.state_bytes * narrowed
    vector = matrix if optimizer.vector_state_bytes is None else optimizer.vector_state_bytes * narrowed
    rank = (training.optimizer_rank or optimizer.rank or 1) * narrowed
    values = 2.0 * (master_bytes or weight_bytes) + (element_bytes if master_bytes else 0.0)
    traffic = narrowed * optimizer.state_traffic_bytes + values + optimizer.gradient_passes * gradient_bytes
    in_one = optimizer.fused or row.fused_optimizer > 0 or (on_processor and row.fused_on_processor > 0)
    passes = 1.0 if in_one else SEPARATE_PASSES
    return Numerics(
        element_bytes=element_bytes,
        weight_bytes=weight_bytes,
        master_bytes=master_bytes,
        gradient_bytes=gradient_bytes,
        optimizer=OptimizerNumbers(
            state_bytes=matrix,
            longer_side_bytes=optimizer.longer_side_bytes * rank,
            shorter_side_bytes=optimizer.shorter_side_bytes * rank,
            vector_state_bytes=vector,
            outer_state_bytes=vector if optimizer.matrices_only else matrix,
            # Each operation runs over all parameters: the root of the second moment is as large as the moment itself.
            temporary_bytes=0.0 if in_one or not optimizer.states else matrix / optimizer.states,
            traffic=passes * traffic,
            # States are read and written, gradients read once.
            outer_traffic=passes * (2.0 * vector + values + gradient_bytes if optimizer.matrices_only else traffic),
            flops=optimizer.flops_per_parameter,
            newton_schulz_steps=float(optimizer.newton_schulz_steps or 0),
            assumed_rank=0.0 if training.optimizer_rank else float(optimizer.rank or 0),
        ),
    )


def _narrowed(optimizer: Optimizer) -> float:
    """Share of its states that an optimizer keeps where nothing is fp32: they follow the parameters' type."""
    if optimizer.state_bytes_bf16 is None:
        return 1.0
    return optimizer.state_bytes_bf16 / optimizer.state_bytes if optimizer.state_bytes else WIDTH / FP32_BYTES


mean_states = formula()


def update_operators(
    numerics: Numerics, inner: Number, outer: Number, cluster: Cluster, offloaded: Number
) -> Iterator[Operator]:
    """Yield the element-wise kernels of an optimizer's step: read gradients and states, write parameters and states.

    Args:
        inner: trained parameters of the layers on the device.
        outer: those outside the layers.
        offloaded: 1 where the states lie in host memory.
    """
    device, optimizer, on_host = cluster.device, numerics.optimizer, np.asarray(offloaded) > 0
    # The processor that updates offloaded states is bound by its memory.
    arithmetic = where(on_host, np.inf, device.peak("fp32"))
    yield Operator(
        "optimizer",
        "optimizer",
        "step",
        "step",
        (inner + outer) * optimizer.flops,
        inner * optimizer.traffic + outer * optimizer.outer_traffic,
        arithmetic,
        optimizer_bandwidth(cluster, offloaded),
    )
    if any_true(on_host):
        # Gradients go down and parameters come up once a step, before and after the update.
        crossing = where(on_host, (inner + outer) * (numerics.gradient_bytes + numerics.element_bytes), 0.0)
        yield Operator(
            "gradients to the host and parameters back",
            "optimizer",
            "step",
            "step",
            0.0,
            crossing,
            1.0,
            host_link_bandwidth(device),
        )


def matrix_operators(
    optimizer: OptimizerNumbers, matrices: Iterable[Matrix], times: Number, device: Device
) -> Iterator[Operator]:
    """Yield the products of an optimizer's step with whole matrices, ``times`` those that a layer has."""
    if not any_true(optimizer.multiplies_matrices):
        return
    for matrix in matrices:
        if any_true(matrix.number * matrix.columns > 0):
            runs = optimizer.newton_schulz_steps * matrix.number * times
            yield from newton_schulz(matrix.name, matrix.rows, matrix.columns, runs, device)


def newton_schulz(name: str, rows: Number, columns: Number, runs: Number, device: Device) -> Iterator[Operator]:
    """Yield the three products of a Newton-Schulz iteration, by which Muon orthogonalizes the update of a matrix.

    One multiplies X by its transpose, squares that, and applies their sum to X: ``4 n² w + 2 n³`` FLOPs for a matrix of
    n × w elements, n the smaller (Jordan et al. 2024).

    Args:
        name: what the matrix is.
        runs: iterations of all such matrices on the device in one step.
    """
    reach, narrow, wide = device.efficiency, np.minimum(rows, columns), np.maximum(rows, columns)
    share = reached_share(device.gemm_reach(TYPE), reach.sustained, device.clock, 1.0, 1.0)

    def product(label: str, n: Number, k: Number) -> Operator:
        rate = gemm_rate(narrow, n, k, device.peak(TYPE), share, device.units, reach.wave_fill, reach.ramp_length)
        traffic = gemm_bytes(narrow, n, k, WIDTH)
        return Operator(
            f"Newton-Schulz, {name}, {label}",
            "optimizer",
            "step",
            "step",
            2.0 * narrow * n * k,
            traffic,
            rate,
            device.bandwidth * reach.stream,
            runs,
        )

    yield product("with itself", narrow, wide)
    yield product("squared", narrow, narrow)
    yield product("applied", wide, narrow)
