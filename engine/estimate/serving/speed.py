"""Prefill and decode of a batch: which kernels and collectives they run, and how passes go through the stages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity_tui.engine.catalog.counts import counted
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.serving.memory import tokens_per_pass
from capacity_tui.engine.estimate.serving.operators import Pass, decode_pass, pass_operators, prefill_pass
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.timing.collectives import (
    all_reduce_seconds,
    all_to_all_seconds,
    point_to_point_seconds,
)
from capacity_tui.engine.estimate.work import Collective, PassSchedule, Phase
from capacity_tui.engine.numeric import Number, any_true

# Steps of a small all-reduce in which every device reads from all others, in hops of the link.
SMALL_BASE, SMALL_STEP = 1.0, counted("small-all-reduce-hops")


@equation(
    "latency = hop · (1 + 1.4 · log2(devices)) + payload · (devices - 1) / link",
    unit="s",
    source="one-shot all-reduce; published latencies of small all-reduces",
)
def one_shot_all_reduce(payload: Number, devices: Number, hop: Number, link: Number) -> Number:
    """Seconds of an all-reduce of few bytes, in which each device reads from all others at once.

    Args:
        payload: bytes each device holds.
        devices: devices of the group.
        hop: seconds of one step of the link.
        link: bandwidth of the link, B/s.
    """
    latency = hop * (SMALL_BASE + SMALL_STEP * np.log2(np.maximum(devices, 1.0)))
    return latency + payload * (devices - 1.0) / link


def tensor_parallel_collective(run: ServingRun, rows: Number) -> Collective:
    """Return the two all-reduces of every layer: small ones in one shot, large ones around a ring."""
    device = run.cluster.device
    payload = rows * run.shape.hidden * run.element_bytes
    ring = all_reduce_seconds(payload, run.tp, 1.0, run.cluster)
    link = device.link_bandwidth * device.efficiency.collective_share
    small = one_shot_all_reduce(payload, run.tp, device.efficiency.collective_hop_seconds, link)
    each = np.where(run.tp <= run.cluster.direct_devices, np.minimum(ring, small), ring)
    count = np.where(run.tp > 1, 2.0 * run.shape.layers, 0.0)
    return Collective("all-reduce of activations", "tensor_parallel", each, count, bytes=payload)


def expert_parallel_collective(run: ServingRun, rows: Number) -> Collective:
    """Return the sending of tokens to their experts and back, in every layer that has them."""
    payload = rows / run.tp * run.shape.experts_active * run.shape.hidden * run.element_bytes
    each = all_to_all_seconds(payload, run.ep, run.etp, run.cluster)
    count = np.where(run.ep > 1, 2.0 * run.counts.moe_layers, 0.0)
    return Collective("all-to-all of tokens", "expert_parallel", each, count, bytes=payload)


def _collectives(run: ServingRun, rows: Number) -> Iterator[Collective]:
    if any_true(run.tp > 1):
        yield tensor_parallel_collective(run, rows)
    if any_true(run.ep > 1):
        yield expert_parallel_collective(run, rows)


def _hand_over(run: ServingRun, rows: Number) -> Number:
    """Seconds in which the activations of one pass go from stage to stage."""
    send = point_to_point_seconds(rows * run.shape.hidden * run.element_bytes / run.tp, run.tp, run.cluster)
    return np.where(run.pp > 1, (run.pp - 1.0) * (send + run.runtime.stage_seconds), 0.0)


def _schedule(run: ServingRun, step: Pass, passes: Number, waves: Number, overlap: Number) -> PassSchedule:
    runtime = run.runtime
    return PassSchedule(
        passes=passes,
        waves=waves,
        stages=run.pp,
        overlap=overlap,
        hand_over=_hand_over(run, step.rows),
        kernels=(runtime.kernels_per_layer + runtime.unpack_kernels) * run.shape.layers,
        kernel_gap=runtime.kernel_gap * run.cluster.device.efficiency.kernel_launch_seconds,
    )


def prefill(run: ServingRun) -> Phase:
    """Reading until the whole batch has its first token, its prompts cut to the engine's chunks."""
    tokens = run.batch * run.prompt
    passes = np.ceil(tokens / tokens_per_pass(run))
    step = prefill_pass(run, tokens / passes)
    return Phase(
        "prefill",
        pass_operators(run, step, run.runtime.prefill),
        tuple(_collectives(run, step.rows)),
        _schedule(run, step, passes, passes, run.runtime.stage_overlap),
        run.runtime.host_seconds,
        run.runtime.step_seconds,
    )


def decode(run: ServingRun) -> Phase:
    """One decode step of the whole batch, at the mean context.

    Stages work side by side on parts of the batch, every stage on each of them in turn while one passes all stages;
    one sequence passes them one after another.
    """
    groups = np.minimum(run.pp, run.batch)
    step = decode_pass(run, run.batch / groups)
    return Phase(
        "decode",
        pass_operators(run, step, 1.0),
        tuple(_collectives(run, step.rows)),
        _schedule(run, step, groups, 1.0, 0.0),
        run.runtime.host_seconds,
        run.runtime.step_seconds,
        runs=run.decode_steps,
    )
