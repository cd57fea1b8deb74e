"""Layouts and settings to choose from, evaluated together in one vectorised call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.estimate.timing.schedule import step_time
from capacity_tui.engine.estimate.transformer.resolve import resolve_recompute
from capacity_tui.engine.estimate.transformer.run import Recompute, TransformerRun
from capacity_tui.engine.estimate.transformer.training import training_work
from capacity_tui.engine.plan.layout_rules import EQUAL_STAGES, Layout, possible

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Choice = Mapping[str, object]

CHECKPOINTING = ("none", "selective-ops", "full")
LARGEST_MICRO_BATCH = 64
MOST_STAGES = 64


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Every candidate with what decides between them; arrays run over candidates.

    Attributes:
        choices: plan fields of each candidate.
        allocated: peak bytes the allocator counts.
        reserved: bytes the driver's tool would show.
        host: host bytes for one device.
        tokens_per_second: over all devices.
        recomputed: candidates that compute less again come first among equals.
    """

    choices: tuple[Choice, ...]
    allocated: Floats
    reserved: Floats
    host: Floats
    tokens_per_second: Floats
    recomputed: Floats


def powers_of_two(most: float) -> tuple[int, ...]:
    """Return 1, 2, 4 ... up to ``most``; at least 1."""
    return tuple(2**power for power in range(max(0, int(np.log2(max(most, 1.0)))) + 1))


def divisors(number: int) -> tuple[int, ...]:
    """Return the whole numbers that divide a positive one, in order."""
    small = [size for size in range(1, int(number**0.5) + 1) if number % size == 0]
    return tuple(sorted({*small, *(number // size for size in small)}))


def layouts(
    layout: Layout, inside: int, tensor: bool, pipeline: bool, replicas: int | None, *, equal: bool = True
) -> tuple[Choice, ...]:
    """Return the tensor- and pipeline-parallel sizes that can be, the smaller models first.

    Args:
        layout: the plan's, whose own sizes serve where nothing is open or nothing else can be.
        inside: devices of a node, which tensor parallelism stays in.
        tensor: whether the tensor-parallel size is open.
        pipeline: whether the number of stages is open.
        replicas: data-parallel replicas where the plan gives them.
        equal: whether all stages must have as many layers.
    """
    sizes = divisors(int(layout.devices))
    tensors = [size for size in sizes if size <= inside] if tensor else [int(layout.tp)]
    most = min(int(layout.layers), MOST_STAGES)
    pipelines = [size for size in sizes if size <= most] if pipeline else [int(layout.pp)]
    pairs = sorted(product(tensors, pipelines), key=lambda pair: (pair[0] * pair[1], pair[1]))
    tp, pp = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    dp = np.floor(layout.devices / (tp * pp * layout.cp)) if replicas is None else np.full(tp.shape, float(replicas))
    etp = layout.etp if layout.ep > 1 else tp
    spread = replace(layout, tp=tp, pp=pp, dp=np.maximum(dp, 1.0), etp=etp, micro_batches=0.0)
    found = [
        pair
        for pair, can_be in zip(pairs, possible(spread, *((EQUAL_STAGES,) if equal else ())), strict=True)
        if can_be
    ]
    found = found or [(int(layout.tp), int(layout.pp))]
    return tuple({"parallelism.tp": size, "parallelism.pp": stages} for size, stages in found)


def each(path: str, values: Iterable[object]) -> tuple[Choice, ...]:
    """Return one choice for each value of a plan field."""
    return tuple({path: value} for value in values)


def candidates(options: Iterable[tuple[Choice, ...]]) -> tuple[Choice, ...]:
    """Return every combination of one choice from each option."""
    return tuple(
        {path: value for choice in combination for path, value in choice.items()} for combination in product(*options)
    )


def evaluate(run: TransformerRun, choices: tuple[Choice, ...], replica_batch: int | None) -> Evaluated:
    """Evaluate all candidates in one call.

    Args:
        run: the run whose other fields stay.
        choices: what differs, by plan field.
        replica_batch: sequences of a replica for one step, None to keep the plan's global batch.
    """
    varied = vary(run, choices, replica_batch)
    work = training_work(varied, None)
    time = step_time(work)
    size = (len(choices),)
    allocated = np.zeros(size)
    for part in work.memory.values():
        allocated = allocated + part
    again = np.array([CHECKPOINTING.index(str(c.get("training.checkpointing", "none"))) for c in choices])
    return Evaluated(
        choices=choices,
        allocated=allocated,
        reserved=np.broadcast_to(allocated * (1.0 + work.fragmentation) + work.context_bytes, size),
        host=np.broadcast_to(work.host_bytes, size),
        tokens_per_second=np.broadcast_to(work.units_per_step / time.seconds, size),
        recomputed=again.astype(np.float64),
    )


def vary(run: TransformerRun, choices: tuple[Choice, ...], replica_batch: int | None) -> TransformerRun:
    """Return the run with the fields of all choices as arrays."""

    def column(name: str, default: float) -> Floats:
        return np.array([float(str(choice.get(name, default))) for choice in choices])

    def chosen(name: str, value: object) -> Floats:
        return np.array([float(choice.get(name) == value) for choice in choices])

    tp, pp = column("parallelism.tp", float(run.tp)), column("parallelism.pp", float(run.pp))
    dp = np.maximum(np.floor(run.cluster.devices / (tp * pp * run.cp)), 1.0)
    micro_batch = column("training.micro_batch", float(run.micro_batch))
    batch = run.global_batch if replica_batch is None else dp * np.maximum(replica_batch, micro_batch)
    zero = column("parallelism.zero", float(run.zero))
    recompute = run.recompute
    if any("training.checkpointing" in choice for choice in choices):
        found = [resolve_recompute(str(choice["training.checkpointing"])) for choice in choices]
        recompute = Recompute(**{name: np.array([getattr(one, name) for one in found]) for name in Recompute.__slots__})
    offload = any("parallelism.offload" in choice for choice in choices)
    return replace(
        run,
        seq_len=column("training.seq_len", float(run.seq_len)),
        micro_batch=micro_batch,
        global_batch=np.maximum(batch, dp),
        tp=tp,
        pp=pp,
        dp=dp,
        etp=np.where(run.ep > 1, run.etp, tp),
        zero=zero,
        shard=np.minimum(run.shard, dp * run.cp),
        sequence_parallel=np.where(tp == run.tp, run.sequence_parallel, np.where(tp > 1, 1.0, 0.0)),
        recompute=recompute,
        offload_optimizer=chosen("parallelism.offload", "optimizer") if offload else run.offload_optimizer,
    )
