"""Prefill and decode of a batch: which kernels and collectives they run, and how passes go through the stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.catalog.rows import MIB
from capacity_tui.engine.estimate.derivation import equation, formula
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
    one_shot_all_reduce,
    one_shot_latency,
    peer_bandwidth,
    point_to_point_seconds,
    two_shot_all_reduce,
)
from capacity_tui.engine.estimate.timing.schedule import phase_time
from capacity_tui.engine.estimate.work import Collective, Operator, PassSchedule, Phase
from capacity_tui.engine.models.transformer import layer_matrices
from capacity_tui.engine.numeric import Number, any_true, present, where

# MiB up to which engines reduce by kernels of their own.
LARGEST_DIRECT = counted("largest-direct-all-reduce")
# Share of the passes that is taken to be free of prompts at least.
LEAST_FREE = counted("least-free-share")
KERNELS_OF_ADAPTERS = counted("served-adapter-kernels")


def tensor_parallel_collective(run: ServingRun, rows: Number) -> Collective:
    """Return the two all-reduces of every layer: small ones in one shot or two, large ones around a ring."""
    layout = run.layout
    device, node = run.cluster.device, run.cluster.direct_devices
    payload = rows * run.shape.hidden * run.numerics.element_bytes
    ring = all_reduce_seconds(payload, layout.tp, 1.0, run.cluster)
    reach = device.efficiency
    latency = one_shot_latency(layout.tp, reach.collective_hop_seconds, reach.full_mesh)
    link = peer_bandwidth(device.link_bandwidth * reach.collective_share, layout.tp, node, reach.full_mesh)
    one = one_shot_all_reduce(payload, layout.tp, latency, link)
    direct = np.minimum(one, two_shot_all_reduce(payload, layout.tp, latency, link))
    is_direct = (layout.tp <= node) & (payload <= LARGEST_DIRECT * MIB)
    seconds = np.where(is_direct, np.minimum(ring, direct), ring)
    count = np.where(layout.tp > 1, 2.0 * run.shape.layers, 0.0)
    return Collective("all-reduce of activations", "tensor_parallel", seconds, count, bytes=payload, group=layout.tp)


def expert_parallel_collective(run: ServingRun, rows: Number) -> Collective:
    """Return the sending of tokens to their experts and back, in every layer that has them."""
    layout = run.layout
    payload = rows / layout.tp * run.shape.experts_active * run.shape.hidden * run.numerics.element_bytes
    seconds = all_to_all_seconds(payload, layout.ep, layout.etp, run.cluster)
    count = np.where(layout.ep > 1, 2.0 * run.counts.moe_layers, 0.0)
    return Collective(
        "all-to-all of tokens", "expert_parallel", seconds, count, bytes=payload, group=layout.ep, stride=layout.etp
    )


def _collectives(run: ServingRun, rows: Number) -> Iterator[Collective]:
    if any_true(run.layout.tp > 1):
        yield tensor_parallel_collective(run, rows)
    if any_true(run.layout.ep > 1):
        yield expert_parallel_collective(run, rows)


def _hand_over(run: ServingRun, rows: Number) -> Number:
    """Seconds in which the activations of one pass go from stage to stage."""
    layout = run.layout
    send = point_to_point_seconds(
        rows * run.shape.hidden * run.numerics.element_bytes / layout.tp, layout.tp, run.cluster
    )
    return np.where(layout.pp > 1, (layout.pp - 1.0) * (send + run.runtime.stage_seconds), 0.0)


launched_kernels = formula()


def pass_kernels(run: ServingRun) -> Number:
    """Return the kernels that one forward pass launches through all layers."""
    runtime, matrices = run.runtime, layer_matrices(run.shape)
    looped = np.where(runtime.expert_kernels > 0, 1.0, 0.0)
    products: Number = sum((matrix.number * (looped if matrix.routed else 1.0) for matrix in matrices), start=0.0)
    experts = run.shape.moe_share * run.shape.experts
    layer_kernels, expert = runtime.kernels_per_layer + _adapter_kernels(run), runtime.expert_kernels
    routing = run.shape.moe_share * runtime.mixture_kernels
    return launched_kernels(run.shape.layers, layer_kernels, run.body.launches, products, expert, experts, routing)


def _adapter_kernels(run: ServingRun) -> Number:
    """Return the kernels of a layer that adapters add, however many there are."""
    return where(run.adapters.number > 0, KERNELS_OF_ADAPTERS, 0.0)


@equation
def launch_seconds(captured: Number, uncaptured: Number, eager: Number) -> Number:
    """Seconds of host time for each kernel of a pass."""
    return where(eager > 0, np.maximum(captured, uncaptured), captured)


fixed_seconds = formula()  # Seconds of a pass that do not depend on its tokens


def _schedule(
    run: ServingRun, step: Pass, sequences: Number, passes: Number, waves: Number, overlap: Number
) -> PassSchedule:
    runtime = run.runtime
    return PassSchedule(
        passes=passes,
        waves=waves,
        stages=run.layout.pp,
        overlap=overlap,
        hand_over=_hand_over(run, step.rows),
        kernels=pass_kernels(run),
        kernel_gap=runtime.kernel_gap * run.cluster.device.efficiency.kernel_launch_seconds,
        host_seconds=_host_seconds(run) * sequences,
        host_overlap=runtime.sequence_overlap,
    )


def _host_seconds(run: ServingRun) -> Number:
    """Return the host's time of a pass for each sequence: under a load its texts go to clients one by one."""
    runtime = run.runtime
    return runtime.sequence_seconds + runtime.stream_seconds * (1.0 if run.traffic.comes_singly else 0.0)


def prefill(run: ServingRun) -> Phase:
    """Reading until the whole batch has its first token, its prompts cut to the engine's chunks.

    Passes are alike. Through stages they are full ones, the last a part of one: smaller ones would fill stages sooner.
    """
    tokens, most = run.batch * run.fresh, tokens_per_pass(run)
    passes = where(run.layout.pp > 1, np.maximum(tokens / most, 1.0), np.ceil(tokens / most))
    step = prefill_pass(run, tokens / passes)
    schedule = _schedule(run, step, run.batch / passes, passes, passes, run.runtime.stage_overlap)
    operators = pass_operators(run, step)
    return _phase("prefill", run, step, operators, schedule)


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
        runs: how many.
        guesses: tokens of each sequence that a pass checks beside its next one.
    """
    run, groups = _scheduled_at_once(run), np.minimum(run.layout.pp, run.running)
    step = decode_pass(run, run.running / groups, guesses)
    schedule = _schedule(run, step, run.running / groups, groups, 1.0, 0.0)
    return _phase(name, run, step, pass_operators(run, step), schedule, runs)


shared_host_seconds = formula()


def _scheduled_at_once(run: ServingRun) -> ServingRun:
    """Return the run with the host's time of one pass of answers, of those that it schedules at once."""
    runtime = run.runtime
    if not any_true(runtime.scheduled_passes > 1):
        return run
    of_schedule = "step_seconds", "sequence_seconds", "stream_seconds"
    shared = {name: shared_host_seconds(getattr(runtime, name), runtime.scheduled_passes) for name in of_schedule}
    return replace(run, runtime=replace(runtime, **shared))


@equation
def chunk_of_prompts(prompt: Number, arriving: Number, budget: Number, running: Number, passes: Number) -> Number:
    """Tokens of prompts that one pass reads under a load."""
    room = np.maximum(budget - running, budget * (prompt / (prompt + passes)))
    return np.maximum(np.minimum(np.maximum(prompt, prompt * arriving), room), 1.0)


passes_with_prompts = formula()


def loaded_phases(run: ServingRun) -> tuple[Phase, ...]:
    """Return the passes in which as many requests are answered as run at once, prompts read beside answers.

    Where an engine mixes them, a pass that reads prompts gives the running sequences their next token too.
    """
    runtime, groups, passes = run.runtime, np.minimum(run.layout.pp, run.batch), run.decode_steps
    sequences = run.batch / groups
    mixes = 0.0 if run.shape.encoder_layers else where(passes > 0, runtime.mixes_prefill, 0.0)
    budget = where(runtime.chunk_tokens > 0, runtime.chunk_tokens, np.inf)
    arriving = np.minimum(sequences / np.maximum(passes / runtime.scheduled_passes, 1.0), sequences)
    chunk = chunk_of_prompts(run.fresh, arriving, budget, sequences * mixes, passes * mixes)
    own = run.fresh / (groups * chunk)
    count = run.batch * own
    mixed = mixes * passes_with_prompts(passes, count, own)
    riding = mixed / count
    answers = decode_pass(run, sequences * riding, run.guessing.tokens) if any_true(riding > 0) else None
    at_work = np.minimum(sequences * riding + np.maximum(chunk / run.fresh, 1.0), sequences)
    reading = reading_phase(run, chunk, answers, at_work, groups, count)
    answering = decode_phase("decode", run, passes - mixed, run.guessing.tokens)
    if any_true(_replicas_of_experts(run) > 1):
        answering = _in_step(run, reading, answering)
    return reading, *((answering,) if any_true(run.output > 0) else ()), *guessed(run)


@equation
def passes_in_step(reading: Number, passes: Number, replicas: Number, least: Number, apart: Number) -> Number:
    """Share of the passes for answers alone during which another replica reads a prompt."""
    free = 1.0 - np.minimum(reading / passes, 1.0)
    return apart * (free - free**replicas) / np.maximum(free, least)


def _replicas_of_experts(run: ServingRun) -> Number:
    """Return how many replicas spread their experts over the same devices."""
    layout = run.layout
    return np.maximum(layout.ep * layout.etp / layout.tp, 1.0) * present(run.shape.moe_share)


def _in_step(run: ServingRun, reading: Phase, answering: Phase) -> Phase:
    """Return passes for answers with the time in which they wait for replicas that read prompts meanwhile."""
    share = passes_in_step(
        reading.runs,
        reading.runs + answering.runs,
        np.maximum(_replicas_of_experts(run), 1.0),
        LEAST_FREE,
        run.runtime.replicas_apart,
    )
    longer = np.maximum(phase_time(reading).seconds - phase_time(answering).seconds, 0.0)
    wait = Collective("waiting for replicas that read", "expert_parallel", share * longer, group=run.layout.ep)
    return replace(answering, collectives=(*answering.collectives, wait))


def reading_phase(
    run: ServingRun, chunk: Number, answers: Pass | None, sequences: Number, groups: Number, runs: Number = 1.0
) -> Phase:
    """Return passes that read prompts under a load.

    Args:
        chunk: tokens of prompts that each of them reads.
        answers: what gets its next token in the same pass; None where passes are not mixed.
        sequences: sequences at work in a pass.
        groups: passes side by side, one on each stage.
        runs: how many.
    """
    prompts = prefill_pass(run, chunk)
    if answers is None:
        operators, rows = pass_operators(run, prompts), prompts.rows
    else:
        operators, rows = mixed_operators(run, prompts, answers), prompts.rows + answers.rows
    step = replace(prompts, rows=rows)
    return _phase("prefill", run, step, operators, _schedule(run, step, sequences, groups, 1.0, 0.0), runs)


def guessed(run: ServingRun) -> tuple[Phase, ...]:
    """Return the draft's guesses; nothing where nothing is guessed."""
    return (draft(run),) if any_true(run.guessing.tokens > 0) else ()


def _phase(
    name: Literal["prefill", "decode", "draft"],
    run: ServingRun,
    step: Pass,
    operators: tuple[Operator, ...],
    schedule: PassSchedule,
    runs: Number = 1.0,
) -> Phase:
    runtime = run.runtime
    eager = 1.0 if name == "prefill" else where(run.decode_context > runtime.captured_context, 1.0, 0.0)
    launch = launch_seconds(runtime.host_seconds, runtime.eager_seconds, eager)
    fixed = fixed_seconds(runtime.step_seconds, run.counts.moe_layers, run.shape.experts, runtime.align_seconds)
    return Phase(name, operators, tuple(_collectives(run, step.rows)), schedule, launch, fixed, runs=runs)
