"""Prefill and decode of a batch: which kernels and collectives they run, and how passes go through the stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from capacity_tui.engine.catalog.counts import counted
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.serving.memory import tokens_per_pass
from capacity_tui.engine.estimate.serving.operators import (
    Pass,
    decode_pass,
    mixed_operators,
    pass_operators,
    prefill_pass,
)
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.timing.collectives import (
    all_reduce_seconds,
    all_to_all_seconds,
    point_to_point_seconds,
)
from capacity_tui.engine.estimate.work import Collective, Operator, PassSchedule, Phase
from capacity_tui.engine.numeric import Number, any_true, where

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
    tokens = run.batch * run.fresh
    passes = np.ceil(tokens / tokens_per_pass(run))
    step = prefill_pass(run, tokens / passes)
    schedule = _schedule(run, step, passes, passes, run.runtime.stage_overlap)
    operators = pass_operators(run, step, run.runtime.prefill)
    return _phase("prefill", run, step, operators, schedule, run.batch / passes)


def decode(run: ServingRun) -> Phase:
    """One decode step of the whole batch, at the mean context.

    Stages work side by side on parts of the batch, every stage on each of them in turn while one passes all stages;
    one sequence passes them one after another.
    """
    return decode_phase("decode", run, run.decode_steps, run.guessing.tokens)


def draft(run: ServingRun) -> Phase:
    """The draft's guesses, each as a share of a pass that gives every sequence one token."""
    return decode_phase("draft", run, run.decode_steps * run.guessing.drafts, 0.0)


def decode_phase(name: Literal["decode", "draft"], run: ServingRun, runs: Number, guesses: Number) -> Phase:
    """Return steps of decode.

    Args:
        name: what they are.
        run: the run.
        runs: how many.
        guesses: tokens of each sequence that a pass checks beside its next one.
    """
    groups = np.minimum(run.pp, run.running)
    step = decode_pass(run, run.running / groups, guesses)
    schedule, operators = _schedule(run, step, groups, 1.0, 0.0), pass_operators(run, step, 1.0)
    return _phase(name, run, step, operators, schedule, run.running / groups, runs)


@equation(
    "tokens = max(min(max(prompt, prompt · arriving), budget - running), 1)",
    unit="tokens",
    source="chunked prefill, Agrawal et al. 2023: prompts are cut to what a pass has room for beside its answers",
)
def chunk_of_prompts(prompt: Number, arriving: Number, budget: Number, running: Number) -> Number:
    """Tokens of prompts that one pass reads under a load.

    Args:
        prompt: tokens of a prompt that are read.
        arriving: prompts that come during one pass.
        budget: most tokens of a pass.
        running: sequences that get their next token in it.
    """
    return np.maximum(np.minimum(np.maximum(prompt, prompt * arriving), budget - running), 1.0)


def loaded_phases(run: ServingRun) -> tuple[Phase, ...]:
    """Return the passes in which as many requests are answered as run at once, prompts read beside answers.

    Where an engine mixes them, a pass that reads prompts gives the running sequences their next token too.
    """
    runtime, groups, passes = run.runtime, np.minimum(run.pp, run.batch), run.decode_steps
    sequences = run.batch / groups
    budget = where(runtime.chunk_tokens > 0, runtime.chunk_tokens, np.inf)
    arriving = sequences / np.maximum(passes, 1.0)
    chunk = chunk_of_prompts(run.fresh, arriving, budget, sequences * runtime.mixes_prefill)
    count = run.batch * run.fresh / (groups * chunk)
    mixes = 0.0 if run.shape.encoder_layers else runtime.mixes_prefill
    riding = mixes * np.minimum(passes / count, 1.0)
    prompts, share = prefill_pass(run, chunk), runtime.prefill
    if any_true(riding > 0):
        answers = decode_pass(run, sequences * riding, run.guessing.tokens)
        operators, rows = mixed_operators(run, prompts, answers, share), prompts.rows + answers.rows
    else:
        operators, rows = pass_operators(run, prompts, share), prompts.rows
    step = replace(prompts, rows=rows)
    schedule = _schedule(run, step, groups, 1.0, 0.0)
    reading = _phase("prefill", run, step, operators, schedule, sequences, count)
    answering = decode_phase("decode", run, np.maximum(passes - count * riding, 0.0), run.guessing.tokens)
    return reading, *((answering,) if any_true(run.output > 0) else ()), *guessed(run)


def guessed(run: ServingRun) -> tuple[Phase, ...]:
    """Return the draft's guesses; nothing where nothing is guessed."""
    return (draft(run),) if any_true(run.guessing.tokens > 0) else ()


def _phase(
    name: Literal["prefill", "decode", "draft"],
    run: ServingRun,
    step: Pass,
    operators: tuple[Operator, ...],
    schedule: PassSchedule,
    sequences: Number,
    runs: Number = 1.0,
) -> Phase:
    """Return passes as a phase; the host works on each of the sequences of a pass."""
    runtime = run.runtime
    return Phase(
        name,
        operators,
        tuple(_collectives(run, step.rows)),
        schedule,
        runtime.host_seconds,
        host_pass_seconds(runtime.step_seconds, runtime.sequence_seconds, sequences),
        runs=runs,
    )


@equation(
    "seconds = step + sequence · sequences",
    unit="s",
    source="scheduling, sampling, and turning tokens into text, on the host",
)
def host_pass_seconds(step: Number, sequence: Number, sequences: Number) -> Number:
    """Seconds of host time of a pass that the device waits for.

    Args:
        step: seconds whatever runs.
        sequence: seconds for each sequence.
        sequences: sequences of the pass.
    """
    return step + sequence * sequences
