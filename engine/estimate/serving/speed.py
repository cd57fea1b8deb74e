"""Prefill and decode of a batch: which kernels and collectives they run, and how passes go through the stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.catalog.rows import MIB
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
from capacity_tui.engine.models.transformer import layer_matrices
from capacity_tui.engine.numeric import Number, any_true, where

# Steps of a small all-reduce in which every device reads from all others, in hops of the link.
SMALL_BASE, SMALL_STEP = 1.0, counted("small-all-reduce-hops")
# MiB up to which engines reduce by kernels of their own.
LARGEST_DIRECT = counted("largest-direct-all-reduce")


@equation(
    "latency = hop · (1 + 1.4 · (1 if mesh > 0 else log2(devices)))",
    unit="s",
    source="published latencies of small all-reduces; where every pair has a link, all peers are read at once",
    units={"hop": "s"},
)
def one_shot_latency(devices: Number, hop: Number, mesh: Number) -> Number:
    """Seconds in which the devices of a group find that all are ready, and read the first bytes of all others.

    Args:
        devices: devices of the group.
        hop: seconds of one step of the link.
        mesh: 1 where every pair of devices has a link of its own.
    """
    turns = np.where(mesh > 0, 1.0, np.log2(np.maximum(devices, 1.0)))
    return hop * (SMALL_BASE + SMALL_STEP * turns)


@equation(
    "bandwidth = link · max(devices - 1, 1) / max(node - 1, 1) if mesh > 0 else link",
    unit="B/s",
    source="a device reaches each other one of a full mesh over a link of its own, and all of them over all its links",
    units={"link": "B/s"},
)
def peer_bandwidth(link: Number, devices: Number, node: Number, mesh: Number) -> Number:
    """Bytes a second that a device reads from all others of its group together.

    Args:
        link: bandwidth of all links of a device, B/s.
        devices: devices of the group.
        node: devices that the links join.
        mesh: 1 where every pair of devices has a link of its own.
    """
    return np.where(mesh > 0, link * np.maximum(devices - 1.0, 1.0) / np.maximum(node - 1.0, 1.0), link)


@equation(
    "seconds = latency + payload · (devices - 1) / link",
    unit="s",
    source="one-shot all-reduce: each device reads all of all others",
    units={"payload": "B", "latency": "s", "link": "B"},
    origins={"latency": "one_shot_latency", "link": "peer_bandwidth"},
)
def one_shot_all_reduce(payload: Number, devices: Number, latency: Number, link: Number) -> Number:
    """Seconds of an all-reduce of few bytes, in which each device reads from all others at once.

    Args:
        payload: bytes each device holds.
        devices: devices of the group.
        latency: seconds until the first bytes are there.
        link: bytes a second it reads from all others together, B/s.
    """
    return latency + payload * (devices - 1.0) / link


@equation(
    "seconds = 2 · (latency + payload · (devices - 1) / devices / link)",
    unit="s",
    source="two-shot all-reduce: each device adds up one share of all others, and reads theirs",
    units={"payload": "B", "latency": "s", "link": "B"},
    origins={"latency": "one_shot_latency", "link": "peer_bandwidth"},
)
def two_shot_all_reduce(payload: Number, devices: Number, latency: Number, link: Number) -> Number:
    """Seconds of an all-reduce in which each device reads its share from all others, and then all other shares.

    Args:
        payload: bytes each device holds.
        devices: devices of the group.
        latency: seconds until the first bytes are there.
        link: bytes a second it reads from all others together, B/s.
    """
    return 2.0 * (latency + payload * (devices - 1.0) / devices / link)


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
    each = np.where(is_direct, np.minimum(ring, direct), ring)
    count = np.where(layout.tp > 1, 2.0 * run.shape.layers, 0.0)
    return Collective("all-reduce of activations", "tensor_parallel", each, count, bytes=payload, group=layout.tp)


def expert_parallel_collective(run: ServingRun, rows: Number) -> Collective:
    """Return the sending of tokens to their experts and back, in every layer that has them."""
    layout = run.layout
    payload = rows / layout.tp * run.shape.experts_active * run.shape.hidden * run.numerics.element_bytes
    each = all_to_all_seconds(payload, layout.ep, layout.etp, run.cluster)
    count = np.where(layout.ep > 1, 2.0 * run.counts.moe_layers, 0.0)
    return Collective(
        "all-to-all of tokens", "expert_parallel", each, count, bytes=payload, group=layout.ep, stride=layout.etp
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


@equation(
    "kernels = layers · (each + further · products + expert · experts)",
    unit="kernels",
    source="engines.yaml: a layer's kernels; a loop over experts launches those of all, whether tokens visit or not",
)
def launched_kernels(
    layers: Number, each: Number, further: Number, products: Number, expert: Number, experts: Number
) -> Number:
    """Kernels of one forward pass.

    Args:
        layers: layers of the model.
        each: kernels of a layer.
        further: kernels beside each product with weights, which their format needs.
        products: products of a layer with weights that are launched one by one.
        expert: kernels of an expert, 0 where products of experts are grouped.
        experts: routed experts of a layer.
    """
    return layers * (each + further * products + expert * experts)


def pass_kernels(run: ServingRun) -> Number:
    """Return the kernels that one forward pass launches through all layers."""
    runtime, matrices = run.runtime, layer_matrices(run.shape)
    looped = np.where(runtime.expert_kernels > 0, 1.0, 0.0)
    products: Number = sum((each.number * (looped if each.routed else 1.0) for each in matrices), start=0.0)
    experts = run.moe_share * run.shape.experts
    each, expert = runtime.kernels_per_layer, runtime.expert_kernels
    return launched_kernels(run.shape.layers, each, run.body.launches, products, expert, experts)


@equation(
    "launch = max(captured, uncaptured) if eager > 0 else captured",
    unit="s",
    source="graphs are captured for decode up to a length of context; the host starts each kernel of other passes",
    units={"captured": "s", "uncaptured": "s"},
)
def launch_seconds(captured: Number, uncaptured: Number, eager: Number) -> Number:
    """Seconds of host time for each kernel of a pass.

    Args:
        captured: seconds where a graph is captured for the pass, 0 where the device starts its kernels itself.
        uncaptured: seconds where the engine has captured none.
        eager: 1 for a pass without a captured graph.
    """
    return where(eager > 0, np.maximum(captured, uncaptured), captured)


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
        host_seconds=runtime.sequence_seconds * sequences,
        host_overlap=runtime.sequence_overlap,
    )


def prefill(run: ServingRun) -> Phase:
    """Reading until the whole batch has its first token, its prompts cut to the engine's chunks."""
    tokens = run.batch * run.fresh
    passes = np.ceil(tokens / tokens_per_pass(run))
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
        name: what they are.
        run: the run.
        runs: how many.
        guesses: tokens of each sequence that a pass checks beside its next one.
    """
    groups = np.minimum(run.layout.pp, run.running)
    step = decode_pass(run, run.running / groups, guesses)
    schedule = _schedule(run, step, run.running / groups, groups, 1.0, 0.0)
    return _phase(name, run, step, pass_operators(run, step), schedule, runs)


@equation(
    "tokens = max(min(max(prompt, prompt · arriving), max(budget - running, budget · prompt / (prompt + passes))), 1)",
    unit="tokens",
    source="chunked prefill, Agrawal et al. 2023: prompts are cut to what a pass has room for beside its answers; "
    "where prompts fill every pass, answers take their share of its tokens",
)
def chunk_of_prompts(prompt: Number, arriving: Number, budget: Number, running: Number, passes: Number) -> Number:
    """Tokens of prompts that one pass reads under a load.

    Args:
        prompt: tokens of a prompt that are read.
        arriving: prompts that come during one pass.
        budget: most tokens of a pass.
        running: sequences that get their next token in it.
        passes: passes in which a sequence gets its answer.
    """
    room = np.maximum(budget - running, budget * (prompt / (prompt + passes)))
    return np.maximum(np.minimum(np.maximum(prompt, prompt * arriving), room), 1.0)


@equation(
    "passes = min(answer, max(reading - max(own, 1), 0))",
    unit="passes",
    source="a sequence gets its next tokens beside the prompts of others, not while its own is read",
)
def passes_beside_prompts(answer: Number, reading: Number, own: Number) -> Number:
    """Passes of an answer that read prompts of other requests too.

    Args:
        answer: passes in which a sequence gets its answer.
        reading: passes that read the prompts of as many requests as run at once.
        own: of these, passes for one prompt.
    """
    return np.minimum(answer, np.maximum(reading - np.maximum(own, 1.0), 0.0))


def loaded_phases(run: ServingRun) -> tuple[Phase, ...]:
    """Return the passes in which as many requests are answered as run at once, prompts read beside answers.

    Where an engine mixes them, a pass that reads prompts gives the running sequences their next token too.
    """
    runtime, groups, passes = run.runtime, np.minimum(run.layout.pp, run.batch), run.decode_steps
    sequences = run.batch / groups
    mixes = 0.0 if run.shape.encoder_layers else where(passes > 0, runtime.mixes_prefill, 0.0)
    budget = where(runtime.chunk_tokens > 0, runtime.chunk_tokens, np.inf)
    arriving = sequences / np.maximum(passes, 1.0)
    chunk = chunk_of_prompts(run.fresh, arriving, budget, sequences * mixes, passes * mixes)
    own = run.fresh / (groups * chunk)
    count = run.batch * own
    beside = mixes * passes_beside_prompts(passes, count, own)
    riding = beside / count
    answers = decode_pass(run, sequences * riding, run.guessing.tokens) if any_true(riding > 0) else None
    at_work = np.minimum(sequences * riding + np.maximum(chunk / run.fresh, 1.0), sequences)
    reading = reading_phase(run, chunk, answers, at_work, groups, count)
    answering = decode_phase("decode", run, passes - beside, run.guessing.tokens)
    return reading, *((answering,) if any_true(run.output > 0) else ()), *guessed(run)


def reading_phase(
    run: ServingRun, chunk: Number, answers: Pass | None, sequences: Number, groups: Number, runs: Number = 1.0
) -> Phase:
    """Return passes that read prompts under a load.

    Args:
        run: the run.
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
    """Return passes as a phase."""
    runtime = run.runtime
    eager = 1.0 if name == "prefill" else where(run.decode_context > runtime.captured_context, 1.0, 0.0)
    launch = launch_seconds(runtime.host_seconds, runtime.eager_seconds, eager)
    return Phase(
        name,
        operators,
        tuple(_collectives(run, step.rows)),
        schedule,
        launch,
        runtime.step_seconds,
        runs=runs,
    )
