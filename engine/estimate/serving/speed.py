"""Seconds of prefill and decode, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.serving.memory import tokens_per_pass
from capacity_tui.engine.estimate.serving.operators import Pass, decode_pass, pass_operators, prefill_pass
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.timing.collectives import (
    all_reduce_seconds,
    all_to_all_seconds,
    point_to_point_seconds,
)
from capacity_tui.engine.estimate.timing.roofline import operator_seconds
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.numeric import Number

PARTS = ("compute", "attention", "tensor_parallel", "expert_parallel", "pipeline_bubble", "data_parallel", "optimizer",
         "overhead")  # fmt: skip
# Steps of a small all-reduce in which every device reads from all others, in hops of the link: 1 + 1.4 · log2(devices)
# gives 2.4, 3.8 and 5.2 for 2, 4 and 8 devices; measured latencies of 8 KiB are 2.4 to 5.3 hops on A100 and H100.
SMALL_BASE, SMALL_STEP = 1.0, 1.4


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """Seconds of prefill, or of all decode steps.

    Attributes:
        seconds: the whole phase.
        parts: exposed seconds by part; they sum to ``seconds``.
        operators: its kernels.
    """

    seconds: Number
    parts: Mapping[str, Number]
    operators: tuple[Operator, ...]


@equation(
    "overhead = max(kernels · gap, kernels · host - device) + step",
    unit="s",
    source="gaps between kernels; a device idles when the host launches more slowly than it computes",
    part="computation.parts.overhead",
)
def pass_overhead(kernels: Number, gap: Number, host: Number, device: Number, step: Number) -> Number:
    """Seconds of one forward pass in which the device waits for kernels to start.

    Args:
        kernels: kernels of the pass.
        gap: seconds between two of them on the device.
        host: seconds the host takes to launch one.
        device: seconds the device computes.
        step: seconds of host time of a pass, whatever its kernels.
    """
    return np.maximum(kernels * gap, kernels * host - device) + step


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


def tensor_parallel_seconds(run: ServingRun, rows: Number) -> Number:
    """Seconds of the two all-reduces of every layer: small ones in one shot, large ones around a ring."""
    device = run.cluster.device
    payload = rows * run.shape.hidden * run.element_bytes
    ring = all_reduce_seconds(payload, run.tp, 1.0, run.cluster)
    link = device.link_bandwidth * device.efficiency.collective_share
    small = one_shot_all_reduce(payload, run.tp, device.efficiency.collective_hop_seconds, link)
    each = np.where(run.tp <= run.cluster.direct_devices, np.minimum(ring, small), ring)
    return np.where(run.tp > 1, 2.0 * run.shape.layers * each, 0.0)


def expert_parallel_seconds(run: ServingRun, rows: Number) -> Number:
    """Seconds of sending tokens to their experts and back, in every layer that has them."""
    payload = rows / run.tp * run.shape.experts_active * run.shape.hidden * run.element_bytes
    each = all_to_all_seconds(payload, run.ep, run.etp, run.cluster)
    return np.where(run.ep > 1, 2.0 * run.counts.moe_layers * each, 0.0)


def _pass_parts(run: ServingRun, operators: tuple[Operator, ...], rows: Number) -> dict[str, Number]:
    """Return the seconds of one pass through all stages, by part."""
    parts: dict[str, Number] = {}
    for part in ("compute", "attention"):
        chosen = (operator for operator in operators if operator.part == part)
        parts[part] = sum((operator_seconds(each) * each.count for each in chosen), start=0.0)
    parts["tensor_parallel"] = tensor_parallel_seconds(run, rows)
    parts["expert_parallel"] = expert_parallel_seconds(run, rows)
    busy = sum(parts.values(), start=0.0)
    runtime = run.runtime
    kernels = (runtime.kernels_per_layer + runtime.unpack_kernels) * run.shape.layers
    gap = runtime.kernel_gap * run.cluster.device.efficiency.kernel_launch_seconds
    parts["overhead"] = pass_overhead(kernels, gap, runtime.host_seconds, busy, runtime.step_seconds)
    return parts


def _hand_over(run: ServingRun, rows: Number) -> Number:
    """Seconds in which the activations of one pass go from stage to stage."""
    send = point_to_point_seconds(rows * run.shape.hidden * run.element_bytes / run.tp, run.tp, run.cluster)
    return np.where(run.pp > 1, (run.pp - 1.0) * (send + run.runtime.stage_seconds), 0.0)


@equation(
    "seconds = through / stages · (overlap · (passes + stages - 1) + (1 - overlap) · passes · stages)",
    unit="s",
    source="passes follow each other through the stages, as far as the engine overlaps them",
)
def pipelined(through: Number, stages: Number, passes: Number, overlap: Number) -> Number:
    """Seconds of several passes of which each takes ``through`` seconds through all stages.

    Args:
        through: seconds of one pass through all stages.
        stages: pipeline stages.
        passes: passes.
        overlap: share of them that the engine overlaps.
    """
    return through / stages * (overlap * (passes + stages - 1.0) + (1.0 - overlap) * passes * stages)


def _phase(run: ServingRun, step: Pass, share: Number, passes: Number, overlap: Number) -> PhaseTime:
    """Return the time of equal passes; what a stage does not work is the pipeline's part."""
    operators = pass_operators(run, step, share)
    each = _pass_parts(run, operators, step.rows)
    through = sum(each.values(), start=0.0)
    parts: dict[str, Number] = {name: seconds * passes / run.pp for name, seconds in each.items()}
    whole = pipelined(through, run.pp, passes, overlap) + _hand_over(run, step.rows)
    parts["pipeline_bubble"] = whole - through * passes / run.pp
    counted = tuple(replace(operator, count=operator.count * passes) for operator in operators)
    return PhaseTime(whole, parts, counted)


def prefill(run: ServingRun) -> PhaseTime:
    """Seconds until the whole batch has its first token, its prompts cut to the engine's chunks."""
    tokens = run.batch * run.prompt
    passes = np.ceil(tokens / tokens_per_pass(run))
    step = prefill_pass(run, tokens / passes)
    return _phase(run, step, run.runtime.prefill, passes, run.runtime.stage_overlap)


def decode(run: ServingRun) -> PhaseTime:
    """Seconds of one decode step of the whole batch, at the mean context.

    Stages work side by side on parts of the batch; one sequence passes them one after another.
    """
    groups = np.minimum(run.pp, run.batch)
    time = _phase(run, decode_pass(run, run.batch / groups), 1.0, 1.0, 0.0)
    # Every stage is busy for each part of the batch in turn, while one part passes all stages.
    parts: dict[str, Number] = {name: seconds * groups for name, seconds in time.parts.items()}
    del parts["pipeline_bubble"]
    parts["pipeline_bubble"] = time.seconds - sum(parts.values(), start=0.0)
    counted = tuple(replace(operator, count=operator.count * groups) for operator in time.operators)
    return PhaseTime(time.seconds, parts, counted)
