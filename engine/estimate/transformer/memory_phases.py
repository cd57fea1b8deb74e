"""Training memory of a transformer, phase by phase of a step, on the fullest device.

A step holds most in the loss, in the backward pass of the last layer, when activations of all others lie there, where
it has made all gradients, or in the optimizer; frameworks that read the whole checkpoint hold most while they load.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.estimate.transformer.activations import (
    block_input,
    gradients_per_token,
    kept_in_stack,
    kept_per_token,
    layer_input,
    loss_bytes,
    micro_batches_in_flight,
    working_bytes,
)
from capacity_tui.engine.estimate.transformer.attention import exchange_memory
from capacity_tui.engine.estimate.transformer.finetuning import further_model_bytes
from capacity_tui.engine.estimate.transformer.memory_terms import (
    FIRST,
    GRADIENTS,
    LAST,
    SECOND,
    StageMemory,
    TrainingMemory,
    activation_bytes,
    alive_activations,
    buffer_bytes,
    captured_input_bytes,
    host_bytes,
    idle_bytes,
    largest,
    narrow_copies,
    sharded_bytes,
    state_bytes,
    weight_bytes,
)
from capacity_tui.engine.estimate.transformer.run import SHARDED_PARAMETERS, Recompute, TransformerRun
from capacity_tui.engine.numeric import Number, any_true, where
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import FP32_BYTES

BUCKETS = 2.0  # Buckets of a kind that communicate at a time: one is filled while the other is sent
INPUT_AND_GRADIENT = 2.0  # Copies of a layer's input that its value and its gradient are


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters on one device of a stage, before sharding over data-parallel ranks."""

    dense: Number
    experts: Number
    embedding: Number
    head: Number
    towers: Number  # among those of the embedding

    @property
    def ends(self) -> Number:
        """Parameters outside the layers."""
        return self.embedding + self.head


def stage_parameters(run: TransformerRun, layers: Number, *, first: Number, last: Number) -> Parameters:
    """Return the parameters of a stage; ``first`` and ``last`` are 1 where it holds embedding and head."""
    layout = run.layout
    counts = run.counts
    dense = (layers * counts.dense_per_layer + first * counts.encoder) / layout.tp
    experts = layers * run.expert_parameters_per_layer / (layout.ep * layout.etp)
    embedding = counts.token_embedding + counts.position_embedding + counts.extra + counts.other_weights
    copied = counts.token_embedding * (1.0 - first) if run.shape.tied_embeddings else counts.head
    head, towers = last * (counts.final + copied) / layout.tp, first * run.shape.tower_weights / layout.tp
    return Parameters(dense, experts, first * embedding / layout.tp, head, towers)


def _trained_inside(run: TransformerRun, parameters: Parameters) -> tuple[Number, Number]:
    """Parameters of a stage's layers with gradients: without routed experts, and of those."""
    return run.trained_dense * parameters.dense, run.trained_experts * parameters.experts


def _trained_ends(run: TransformerRun, parameters: Parameters) -> Number:
    """Share of the parameters outside a stage's layers that has gradients."""
    return run.adapter.trained_outside(run.trained_ends, parameters.ends, parameters.towers)


def stage_memory(run: TransformerRun, stage: str) -> StageMemory:
    """Memory of one device of the first, second or last pipeline stage; without a pipeline they are one."""
    layout, numerics, software = run.layout, run.numerics, run.software
    alone = where(layout.pp > 1, 0.0, 1.0)
    first, last = np.maximum(alone, float(stage == FIRST)), np.maximum(alone, float(stage == LAST))
    layers = {FIRST: run.stages.first, SECOND: run.stages.fullest, LAST: run.stages.last}[stage]
    parameters = stage_parameters(run, layers, first=first, last=last)
    kept = _kept(run, parameters)

    position = {FIRST: 0.0, SECOND: np.minimum(1.0, layout.pp - 1.0), LAST: layout.pp - 1.0}[stage]
    in_flight = micro_batches_in_flight(layout.pp, position, run.flushed_micro_batches, layout.interleave)
    recompute, inputs = run.recompute, layer_input(run)
    layer = kept_per_token(run, recompute)
    activations = activation_bytes(run.tokens, layers * in_flight, recompute.full_layers, layer, inputs)
    outputs = software.stage_outputs * where(layout.pp > 1, run.tokens * in_flight * inputs, 0.0)
    at_work, alone_at_work = _at_work(run, layout.offload_activations), _at_work(run, None)
    if any_true(layout.cp > 1):
        exchanged = exchange_memory(run)
        at_work, alone_at_work = at_work + exchanged, alone_at_work + exchanged
    logits = last * loss_bytes(run, parameters.head if not run.shape.tied_embeddings else parameters.ends)

    plain = run.counts.dense_per_layer / layout.tp
    routed = run.expert_parameters_per_layer / (layout.ep * layout.etp)
    inside, of_layer = sum(_trained_inside(run, parameters)), run.trained_dense * plain + run.trained_experts * routed
    used, gathered = gathered_bytes(run, plain + routed, parameters.dense + parameters.experts, (of_layer, inside))
    ends = embedding_and_head_buffers(run, parameters.embedding - parameters.towers, parameters.head)
    trained = inside + _trained_ends(run, parameters) * parameters.ends
    # Buffers of a flat optimizer are made for a single device too.
    alone = where(np.asarray(software.flat_gradients) >= 1.0, np.minimum(layout.zero, 1.0), 0.0)
    reduced = (run.replica_ranks > 1) | (alone > 0)
    filled = np.minimum(software.bucket_bytes, BUCKETS * numerics.element_bytes * trained)
    fixed = where((layout.zero >= 1) & (run.adapter.frozen_bytes <= 0), software.fixed_bucket_bytes, 0.0)
    buckets = where(reduced, np.maximum(filled, fixed), 0.0)
    if any_true(run.software.captured > 0):
        buckets = buckets + captured_input_bytes(run.software.captured, run.tokens)
    gradients_in = _gradients(run, parameters, kept["gradients"], kept["whole_gradients"])
    casts = _cast_gradients(run, parameters)
    idle_copies = software.flat_gradients * where((layout.zero >= 3) & (layout.shard > 1), 0.0, casts)
    static = {"weights": kept["weights"], "optimizer": kept["optimizer"]}

    def phase(gradients: Number, activation: Number, logit: Number, buffers: Number) -> dict[str, Number]:
        return {**static, "gradients": gradients, "activations": activation, "logits": logit, "buffers": buffers}

    at_loss = alive_activations(activations, layout.offload_activations, outputs, 0.0)
    at_layer = alive_activations(activations, layout.offload_activations, outputs, at_work)
    retained = _retained(run, layers * inputs)
    at_end = alive_activations(retained, 0.0, 0.0, alone_at_work)
    loading = software.loads_whole * ((layout.zero >= 3) & (layout.shard > 1))
    whole_stage = (
        run.stored_bytes * (parameters.dense + parameters.experts) + run.embedding_and_head_bytes * parameters.ends
    )
    # The largest unit, that of embedding and head, is copied when it is flattened.
    read = loading * (whole_stage + run.embedding_and_head_bytes * parameters.ends)
    phases = {
        "load": {**phase(0.0, 0.0, 0.0, buffer_bytes(read, 0.0, 0.0, 0.0)), "optimizer": 0.0},
        "loss": phase(gradients_in.loss, at_loss, logits, buffer_bytes(used, ends, idle_copies, buckets)),
        "layer": phase(gradients_in.layer, at_layer, 0.0, buffer_bytes(gathered, 0.0, idle_copies, buckets)),
        "backward": phase(gradients_in.end, at_end, 0.0, buffer_bytes(gathered, 0.0, idle_copies, buckets)),
        "optimizer": phase(kept["gradients"], 0.0, 0.0, buffer_bytes(0.0, 0.0, casts + kept["temporaries"], buckets)),
        "checkpoint": phase(gradients_in.resting, 0.0, 0.0, buffer_bytes(0.0, 0.0, 0.0, 0.0)),
    }
    offloaded = layout.offload_activations * activations
    host = host_bytes(kept["host_states"] + kept["host_gradients"], kept["host_weights"], offloaded)
    idle_logits = idle_bytes(software.idle_logit_blocks, at_work, logits)
    stranded = _stranded(run, gradients_in.streamed, idle_logits, {"loss": at_loss + logits, "layer": at_layer})
    return StageMemory(phases, stranded, host, kept["host_states"] + kept["host_weights"])


def _at_work(run: TransformerRun, offloaded: Number | None) -> Number:
    """Bytes of the block at work, one that attends, the largest of the stacks', beyond what it keeps there anyway."""
    recompute, gradients, working = run.recompute, gradients_per_token(run), list[Number]()
    for stack in run.stacks:
        layer = kept_in_stack(run, stack, recompute, attends=True)
        whole = kept_in_stack(run, stack, Recompute(), run.data.tiles, attends=True)
        mean = (1.0 - recompute.full_layers) * layer + recompute.full_layers * block_input(run)
        whole = np.maximum(whole, mean) if any_true(run.data.tiles > 1) else whole
        kept, share = (0.0, 0.0) if offloaded is None else (mean, offloaded)
        working.append(working_bytes(stack.tokens, gradients, whole, kept, share))
    return largest(working)


@dataclass(frozen=True, slots=True)
class Gradients:
    """Bytes of kept gradients at moments where they are fewer or more than those the optimizer takes."""

    loss: Number
    layer: Number  # at the start of the backward pass
    end: Number  # at its end
    resting: Number  # between steps
    streamed: Mapping[str, Number]  # bytes by phase that the allocator keeps for them although they do not exist


def _gradients(run: TransformerRun, parameters: Parameters, kept: Number, whole: Number) -> Gradients:
    """Return the gradients of each phase.

    Those of one micro-batch come to be while its activations go. With several they stay in between, as does a buffer in
    another type than the parameters', or one that an engine fills with what it has reduced. Whole ones go as their
    shards come.

    Args:
        kept: bytes of all its gradients.
        whole: the same before they are reduced, where all but the last micro-batch leave them so.
    """
    layout, numerics, software = run.layout, run.numerics, run.software
    sharded = (layout.zero >= 2) & (layout.shard > 1)
    filled = (np.asarray(software.flat_gradients) >= 1.0) & sharded & (layout.zero >= 3)
    wide = np.asarray(numerics.gradient_bytes > numerics.weight_bytes)
    buffer = (np.asarray(software.gradient_buffer) > 0) | wide | filled
    fleeting = (run.micro_batches <= 1) & ~buffer
    of_head = numerics.gradient_bytes * run.trained_ends * parameters.head / where(sharded, layout.shard, 1.0)
    loss, layer = where(fleeting, 0.0, kept), where(fleeting, of_head, kept)
    # Those that are reduced on a stream of their own cannot use the room that activations leave in the allocator.
    streamed = {
        phase: where(fleeting & sharded, np.maximum(kept - there, 0.0), 0.0)
        for phase, there in (("loss", loss), ("layer", layer))
    }
    late = np.asarray(whole) > 0
    loss, layer, end = where(late, whole, loss), where(late, whole, layer), np.maximum(whole, kept)
    return Gradients(loss, layer, end, where(buffer, kept, 0.0), streamed)


def _stranded(
    run: TransformerRun, streamed: Mapping[str, Number], idle: Number, dynamic: Mapping[str, Number]
) -> dict[str, Number]:
    """Return the bytes by phase that a caching allocator holds beside what is alive.

    Args:
        streamed: bytes of gradients' blocks.
        idle: bytes of blocks of logits, or of layers, that wait for their next use.
        dynamic: bytes by phase of what depends on the length of a micro-batch.
    """
    software = run.software
    varied = run.data.varied * software.varied_length_blocks
    return {
        phase: software.caching_allocator * (streamed[phase] + idle + varied * bytes_)
        for phase, bytes_ in dynamic.items()
    }


def _retained(run: TransformerRun, inputs: Number) -> Number:
    """Bytes of inputs, and of their gradients, that frozen sharded units keep to the end of the backward pass.

    Nothing of theirs is reduced: what frees their parameters waits on the gradients of their inputs, and holds both.

    Args:
        inputs: bytes a token has in the inputs of the stage's layers.
    """
    layout = run.layout
    frozen = (run.adapter.frozen_bytes > 0) & (layout.zero >= SHARDED_PARAMETERS) & (layout.shard > 1)
    holds = np.asarray(run.software.frozen_units) > 0
    return where(frozen & holds, run.tokens * INPUT_AND_GRADIENT * inputs, 0.0)


def _kept(run: TransformerRun, parameters: Parameters) -> dict[str, Number]:
    """Bytes of weights, gradients and optimizer states on the device, and what lies in host memory."""
    layout, numerics = run.layout, run.numerics
    shards = [where(layout.zero >= stage, layout.shard, 1.0) for stage in (1, 2, 3)]
    group = np.minimum(layout.shard, run.expert_ranks)
    expert_shards = [where(layout.zero >= stage, group, 1.0) for stage in (1, 2, 3)]
    experts_stored = parameters.experts * run.adapter.expert_width
    base = sharded_bytes(run.stored_bytes, parameters.dense, experts_stored, shards[2], expert_shards[2])
    inside, experts = _trained_inside(run, parameters)
    alongside = inside + experts + run.copied_ends * (parameters.ends - parameters.towers)
    adapters = where(run.adapter.frozen_bytes > 0, numerics.weight_bytes, 0.0) * alongside
    whole = where((layout.zero >= SHARDED_PARAMETERS) & (layout.shard > 1), 0.0, parameters.dense + parameters.experts)
    copies = narrow_copies(run.software.narrow_weights, run.cast_bytes, whole)
    every = parameters.dense + parameters.experts + parameters.ends
    objective = run.objective
    others = objective.trained - 1.0
    further = further_model_bytes(
        objective.frozen, numerics.element_bytes, others, numerics.weight_bytes, every, shards[2]
    )
    weights = weight_bytes(base, run.embedding_and_head_bytes, parameters.ends, shards[2], adapters, copies, further)
    trained_ends = _trained_ends(run, parameters)
    dense = inside + trained_ends * parameters.ends
    copied = run.software.gradient_copies * where(
        numerics.gradient_bytes > numerics.element_bytes, numerics.element_bytes, 0.0
    )
    gradients = sharded_bytes.for_part(GRADIENTS)(
        objective.trained * (numerics.gradient_bytes + copied), dense, experts, shards[1], expert_shards[1]
    )
    whole_gradients: Number = 0.0
    if any_true(run.accumulates_whole > 0):
        unreduced = run.accumulates_whole * objective.trained * numerics.element_bytes
        whole_gradients = sharded_bytes.for_part(GRADIENTS)(unreduced, dense, experts, 1.0, 1.0)
    optimizer = numerics.optimizer
    inner = (optimizer.state_bytes + numerics.master_bytes) * objective.trained
    outer = (optimizer.outer_state_bytes + numerics.master_bytes) * trained_ends * objective.trained
    layer_states = sharded_bytes(inner, inside, experts, shards[0], expert_shards[0])
    states = state_bytes(layer_states, outer, parameters.ends, shards[0])
    temporaries: Number = 0.0
    # Steps on a processor take one tensor after the other: operations over lists of tensors are of accelerators.
    if any_true(numerics.optimizer.temporary_bytes > 0) and not run.cluster.device.is_processor:
        temporaries = sharded_bytes(numerics.optimizer.temporary_bytes, dense, experts, shards[0], expert_shards[0])
    # An engine that updates on the host sends sharded gradients there as they are made.
    sent = layout.offload_optimizer * (layout.zero >= 2)
    return {
        "weights": weights * (1.0 - layout.offload_parameters),
        "gradients": gradients * (1.0 - sent),
        "whole_gradients": whole_gradients,
        "optimizer": states * (1.0 - layout.offload_optimizer),
        "temporaries": temporaries * (1.0 - layout.offload_optimizer),
        "host_states": states * layout.offload_optimizer,
        "host_gradients": gradients * sent,
        "host_weights": weights * layout.offload_parameters,
    }


def _cast_gradients(run: TransformerRun, parameters: Parameters) -> Number:
    """The optimizer's own fp32 gradients, where low-precision ones meet a separate fp32 copy of the weights.

    An optimizer of sharded parameters may go through its part group by group.
    """
    layout = run.layout
    cast = where(
        (run.numerics.master_bytes > 0) & (run.numerics.gradient_bytes < FP32_BYTES),
        FP32_BYTES * (1.0 - layout.offload_optimizer),
        0.0,
    )
    shard = where(layout.zero >= 1, layout.shard, 1.0)
    expert_shard = where(layout.zero >= 1, np.minimum(layout.shard, run.expert_ranks), 1.0)
    inside, experts = _trained_inside(run, parameters)
    dense = inside + _trained_ends(run, parameters) * parameters.ends
    casts = sharded_bytes(cast, dense, experts, shard, expert_shard)
    group = run.software.group_parameters
    grouped = (layout.zero >= 3) & np.asarray(group > 0)
    return where(grouped, np.minimum(casts, cast * group), casts) if any_true(grouped) else casts


whole_bytes = formula()


def gathered_bytes(
    run: TransformerRun, layer: Number, stage: Number, trained: tuple[Number, Number]
) -> tuple[Number, Number]:
    """Bytes of sharded or offloaded layers while they are used: alone, and with gradients before they are sharded.

    Two layers are whole at a time, the one at work and the next, or as many parameters as an engine gathers at a time.
    Software that keeps a pipeline stage whole between micro-batches holds all its parameters and gradients.

    Args:
        layer: parameters of the mean layer on the device, unsharded.
        stage: parameters of the stage's layers.
        trained: those of a layer and of the stage with gradients.
    """
    numerics, layout = run.numerics, run.layout
    if not any_true(layout.zero >= 2) and not any_true(layout.offload_parameters > 0):
        return 0.0, 0.0
    stored = run.adapter.gathered_bytes(numerics.element_bytes)
    sharded = (layout.zero >= 3) & (layout.shard > 1)
    whole = where(sharded & (layout.pp > 1), run.software.stage_gather, 0.0)
    grouped = np.asarray(run.software.group_parameters > 0)
    ahead = np.minimum(where(grouped, run.software.group_parameters, 2.0 * layer), stage)
    used = where(sharded | np.asarray(layout.offload_parameters > 0), ahead, 0.0)
    # An engine that gathers matrix by matrix reduces gradients so, through its buckets.
    reduced = where((layout.zero >= 2) & (layout.shard > 1) & ~grouped, trained[0], 0.0)
    idle = whole_bytes.named("idle")(used, stored, 0.0, 0.0, 0.0)
    busy = whole_bytes.named("busy")(used, stored, reduced, numerics.element_bytes, numerics.gradient_bytes)
    if not any_true(whole > 0):
        return idle, busy
    everything = whole * whole_bytes(stage, stored, trained[1], 0.0, numerics.gradient_bytes)
    return everything + (1.0 - whole) * idle, everything + (1.0 - whole) * busy


def embedding_and_head_buffers(run: TransformerRun, embedding: Number, head: Number) -> Number:
    """Bytes of sharded or offloaded embedding and head around the loss, with the head's gradient on its way."""
    numerics, layout = run.numerics, run.layout
    used = ((layout.zero >= 3) & (layout.shard > 1)) | np.asarray(layout.offload_parameters > 0)
    if not any_true(used):
        return 0.0
    projection = np.maximum(head, embedding) if run.shape.tied_embeddings else head
    gradients = run.trained_ends * projection
    buffers = whole_bytes.named("ends")(
        embedding + head, numerics.element_bytes, gradients, numerics.element_bytes, numerics.gradient_bytes
    )
    return where(used, buffers, 0.0)


def training_memory(run: TransformerRun) -> TrainingMemory:
    """Memory of the first and the last pipeline stage, and of the second where it has more layers, phase by phase."""
    stages = [FIRST]
    if any_true(run.stages.first < run.stages.fullest):
        stages.append(SECOND)
    if any_true(run.layout.pp > 1):
        stages.append(LAST)
    return TrainingMemory({stage: stage_memory(run, stage) for stage in stages})
