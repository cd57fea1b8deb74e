"""Training memory of a transformer, phase by phase of a step, on the fullest device.

A step holds most either in the loss, or in the backward pass of the last layer, when the logits are gone and the kept
activations of all others still lie there, or where the backward pass has made all gradients, or in the optimizer;
frameworks that read the whole checkpoint hold most while they load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from capacity_tui.engine.estimate.transformer.activations import (
    embedding_and_head_buffers,
    gathered_bytes,
    gradients_per_token,
    kept_per_token,
    layer_input,
    micro_batches_in_flight,
    working_bytes,
)
from capacity_tui.engine.estimate.transformer.attention import exchange_memory
from capacity_tui.engine.estimate.transformer.loss import loss_bytes
from capacity_tui.engine.estimate.transformer.memory_terms import (
    GRADIENTS,
    activation_bytes,
    alive_activations,
    buffer_bytes,
    captured_input_bytes,
    host_bytes,
    sharded_bytes,
    state_bytes,
    weight_bytes,
)
from capacity_tui.engine.estimate.transformer.run import Recompute, TransformerRun
from capacity_tui.engine.numeric import Number, OnDemand, added, any_true, where
from capacity_tui.engine.units import FP32_BYTES

PHASES = {
    "load": "while the checkpoint is loaded",
    "loss": "in the loss",
    "layer": "at the start of the backward pass",
    "backward": "at the end of the backward pass",
    "optimizer": "in the optimizer's step",
    "checkpoint": "while a checkpoint is written",
}
PHASES_AT = {
    "load": ("load",),
    "forward peak": ("loss",),
    "backward peak": ("layer", "backward"),
    "optimizer": ("optimizer",),
    "checkpoint": ("checkpoint",),
}
"""The phases of each moment that results tell."""
FIRST, SECOND, LAST = "first", "second", "last"
BUCKETS = 2.0
"""Buckets of a kind that communicate at a time: one is filled while the other is sent."""


@dataclass(frozen=True)
class StageMemory:
    """Bytes on one device of a pipeline stage.

    Attributes:
        phases: bytes inside the framework's allocator, by phase of a step and by part.
        streamed: further bytes by phase, of blocks that the allocator keeps for a stream of their own.
        host: bytes in host memory.
        host_state: those of them that a checkpoint holds.
    """

    phases: Mapping[str, Mapping[str, Number]]
    streamed: Mapping[str, Number]
    host: Number
    host_state: Number

    @cached_property
    def timeline(self) -> dict[str, Number]:
        """Bytes by phase."""
        return {phase: added(parts.values()) for phase, parts in self.phases.items()}

    @cached_property
    def peak(self) -> Number:
        """Bytes in the fullest phase."""
        return largest(self.timeline.values())

    @cached_property
    def stranded(self) -> Number:
        """Bytes that the allocator holds beyond the peak because blocks of one stream are of no use to another."""
        held = (bytes_ + self.streamed.get(phase, 0.0) for phase, bytes_ in self.timeline.items())
        return largest(held) - self.peak

    @cached_property
    def parts(self) -> Mapping[str, Number]:
        """Bytes by part in the fullest phase."""
        return OnDemand(next(iter(self.phases.values())), self._in_fullest_phase)

    def _in_fullest_phase(self, part: str) -> Number:
        first, *_ = self.phases
        chosen = self.phases[first][part]
        for phase, here in self._fullest:
            chosen = where(here, self.phases[phase][part], chosen)
        return chosen

    @cached_property
    def _fullest(self) -> list[tuple[str, object]]:
        """Where each phase but the first is the fullest; phases that never are do not stand here."""
        _, *others = self.phases
        here = ((phase, self.timeline[phase] >= self.peak) for phase in others)
        return [(phase, flags) for phase, flags in here if any_true(flags)]


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes on the devices of the pipeline stages that may be the fullest (one, without a pipeline)."""

    stages: Mapping[str, StageMemory]

    @cached_property
    def peak(self) -> Number:
        """Bytes in the fullest phase of the fullest stage."""
        return largest(stage.peak for stage in self.stages.values())

    @cached_property
    def parts(self) -> Mapping[str, Number]:
        """Bytes by part in the fullest phase of the fullest stage."""
        names = self.stages[FIRST].parts
        return OnDemand(names, lambda part: self._on_fullest(lambda stage: stage.parts[part]))

    @cached_property
    def timeline(self) -> Mapping[str, Number]:
        """Bytes by moment on the fullest stage."""
        return OnDemand(PHASES_AT, lambda moment: largest(map(self._at, PHASES_AT[moment])))

    @cached_property
    def stranded(self) -> Number:
        """Bytes that the allocator of the fullest stage holds beyond its peak for the sake of streams."""
        return self._on_fullest(lambda stage: stage.stranded)

    @cached_property
    def host(self) -> Number:
        """Bytes in host memory for a device of the fullest stage."""
        return self._on_fullest(lambda stage: stage.host)

    @cached_property
    def host_state(self) -> Number:
        """Bytes in host memory that a checkpoint of the fullest stage holds."""
        return self._on_fullest(lambda stage: stage.host_state)

    @property
    def ends(self) -> dict[str, Number]:
        """Peaks of the first, the last and the fullest stage; all the same without a pipeline."""
        first = self.stages[FIRST]
        return {FIRST: first.peak, LAST: self.stages.get(LAST, first).peak, "fullest": self.peak}

    @property
    def places(self) -> dict[str, Number]:
        """Bytes by phase and stage, in words."""
        ending = ", on the {} pipeline stage" if len(self.stages) > 1 else ""
        return {
            f"{PHASES[phase]}{ending.format(name)}": bytes_
            for name, stage in self.stages.items()
            for phase, bytes_ in stage.timeline.items()
        }

    def _at(self, phase: str) -> Number:
        return self._on_fullest(lambda stage: stage.timeline[phase])

    def _on_fullest(self, read: Callable[[StageMemory], Number]) -> Number:
        """Return what is read of the fullest stage: chosen place by place where arrays are estimated."""
        found = read(self.stages[FIRST])
        for stage, fuller in self._fuller:
            found = where(fuller, read(stage), found)
        return found

    @cached_property
    def _fuller(self) -> list[tuple[StageMemory, object]]:
        """Where each stage is fuller than all before it; stages that never are do not stand here."""
        first, *others = self.stages.values()
        peak, found = first.peak, list[tuple[StageMemory, object]]()
        for other in others:
            fuller = other.peak > peak
            if any_true(fuller):
                found.append((other, fuller))
                peak = np.maximum(peak, other.peak)
        return found


def largest(values: Iterable[Number]) -> Number:
    """The largest of some numbers, place by place."""
    found, *others = sorted(values, key=np.size)
    for value in others:
        found = np.maximum(found, value)
    return found


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters on one device of a stage, before sharding over data-parallel ranks."""

    dense: Number
    experts: Number
    embedding: Number
    head: Number

    @property
    def ends(self) -> Number:
        """Parameters outside the layers."""
        return self.embedding + self.head


def stage_parameters(run: TransformerRun, layers: Number, *, first: Number, last: Number) -> Parameters:
    """Return the parameters of a stage; ``first`` and ``last`` are 1 where it holds embedding and head."""
    layout = run.layout
    counts = run.counts
    dense = layers * run.dense_parameters_per_layer / layout.tp
    experts = layers * run.expert_parameters_per_layer / (layout.ep * layout.etp)
    embedding = counts.token_embedding + counts.position_embedding + counts.encoder + counts.extra
    copied = counts.token_embedding * (1.0 - first) if run.shape.tied_embeddings else counts.head
    return Parameters(dense, experts, first * embedding / layout.tp, last * (counts.final + copied) / layout.tp)


def stage_memory(run: TransformerRun, stage: str) -> StageMemory:
    """Memory of one device of the first, second or last pipeline stage; without a pipeline they are one."""
    layout, numerics, software = run.layout, run.numerics, run.software
    alone = where(layout.pp > 1, 0.0, 1.0)
    first, last = np.maximum(alone, float(stage == FIRST)), np.maximum(alone, float(stage == LAST))
    layers = {FIRST: run.stages.first, SECOND: run.stages.fullest, LAST: run.stages.last}[stage]
    held = stage_parameters(run, layers, first=first, last=last)
    kept = _kept(run, held, layers)

    position = {FIRST: 0.0, SECOND: np.minimum(1.0, layout.pp - 1.0), LAST: layout.pp - 1.0}[stage]
    in_flight = micro_batches_in_flight(layout.pp, position, run.flushed_micro_batches, layout.interleave)
    recompute, inputs = run.recompute, layer_input(run)
    layer = kept_per_token(run, recompute)
    activations = activation_bytes(run.tokens, layers * in_flight, recompute.full_layers, layer, inputs)
    outputs = software.stage_outputs * where(layout.pp > 1, run.tokens * in_flight * inputs, 0.0)
    mean = (1.0 - recompute.full_layers) * layer + recompute.full_layers * inputs
    gradients, whole = gradients_per_token(run), kept_per_token(run, Recompute(), run.data.tiles)
    whole = np.maximum(whole, mean) if any_true(run.data.tiles > 1) else whole
    at_work = working_bytes(run.tokens, gradients, whole, mean, layout.offload_activations)
    alone_at_work = working_bytes(run.tokens, gradients, whole, 0.0, 0.0)
    if any_true(layout.cp > 1):
        exchanged = exchange_memory(run)
        at_work, alone_at_work = at_work + exchanged, alone_at_work + exchanged
    logits = last * loss_bytes(run, held.head if not run.shape.tied_embeddings else held.ends)

    each = run.dense_parameters_per_layer / layout.tp + run.expert_parameters_per_layer / (layout.ep * layout.etp)
    used, gathered = gathered_bytes(run, each, held.dense + held.experts)
    ends = embedding_and_head_buffers(run, held.embedding, held.head)
    trained = run.trained_share * (held.dense + held.experts) + run.trained_ends * held.ends
    # Buffers of a flat optimizer are made for a single device too.
    alone = where(np.asarray(software.flat_gradients) >= 1.0, np.minimum(layout.zero, 1.0), 0.0)
    reduced = (run.replica_ranks > 1) | (alone > 0)
    buckets = where(reduced, np.minimum(software.bucket_bytes, BUCKETS * numerics.element_bytes * trained), 0.0)
    if any_true(run.software.captured > 0):
        buckets = buckets + captured_input_bytes(run.software.captured, run.tokens)
    gradients_in = _gradients(run, held, kept["gradients"])
    casts = _cast_gradients(run, held)
    beside = software.flat_gradients * where((layout.zero >= 3) & (layout.shard > 1), 0.0, casts)
    static = {"weights": kept["weights"], "optimizer": kept["optimizer"]}

    def phase(gradients: Number, activation: Number, logit: Number, buffers: Number) -> dict[str, Number]:
        return {**static, "gradients": gradients, "activations": activation, "logits": logit, "buffers": buffers}

    at_loss = alive_activations(activations, layout.offload_activations, outputs, 0.0)
    at_layer = alive_activations(activations, layout.offload_activations, outputs, at_work)
    at_end = alive_activations(0.0, 0.0, 0.0, alone_at_work)
    loading = software.loads_whole * ((layout.zero >= 3) & (layout.shard > 1))
    whole_stage = run.stored_bytes * (held.dense + held.experts) + run.embedding_and_head_bytes * held.ends
    # The largest unit, that of embedding and head, is copied when it is flattened.
    read = loading * (whole_stage + run.embedding_and_head_bytes * held.ends)
    phases = {
        "load": {**phase(0.0, 0.0, 0.0, buffer_bytes(read, 0.0, 0.0, 0.0)), "optimizer": 0.0},
        "loss": phase(gradients_in.loss, at_loss, logits, buffer_bytes(used, ends, beside, buckets)),
        "layer": phase(gradients_in.layer, at_layer, 0.0, buffer_bytes(gathered, 0.0, beside, buckets)),
        "backward": phase(kept["gradients"], at_end, 0.0, buffer_bytes(gathered, 0.0, beside, buckets)),
        "optimizer": phase(kept["gradients"], 0.0, 0.0, buffer_bytes(0.0, 0.0, casts + kept["temporaries"], buckets)),
        "checkpoint": phase(gradients_in.resting, 0.0, 0.0, buffer_bytes(0.0, 0.0, 0.0, 0.0)),
    }
    offloaded = layout.offload_activations * activations
    host = host_bytes(kept["host_states"] + kept["host_gradients"], kept["host_weights"], offloaded)
    return StageMemory(phases, gradients_in.streamed, host, kept["host_states"] + kept["host_weights"])


@dataclass(frozen=True, slots=True)
class Gradients:
    """Bytes of kept gradients where they are fewer than at the end of the backward pass.

    Attributes:
        loss: in the loss.
        layer: at the start of the backward pass.
        resting: between steps.
        streamed: bytes by phase that the allocator keeps for them although they do not exist.
    """

    loss: Number
    layer: Number
    resting: Number
    streamed: Mapping[str, Number]


def _gradients(run: TransformerRun, held: Parameters, kept: Number) -> Gradients:
    """Return the gradients of each phase.

    Those of one micro-batch come to be while its activations go. With several they stay in between, as does a buffer in
    another type than the parameters', or one that an engine fills with what it has reduced.

    Args:
        run: the run.
        held: parameters of the stage.
        kept: bytes of all its gradients.
    """
    layout, numerics, software = run.layout, run.numerics, run.software
    sharded = (layout.zero >= 2) & (layout.shard > 1)
    filled = (np.asarray(software.flat_gradients) >= 1.0) & sharded & (layout.zero >= 3)
    wide = np.asarray(numerics.gradient_bytes > numerics.weight_bytes)
    buffer = (np.asarray(software.gradient_buffer) > 0) | wide | filled
    fleeting = (run.micro_batches <= 1) & ~buffer
    of_head = numerics.gradient_bytes * run.trained_ends * held.head / where(sharded, layout.shard, 1.0)
    loss, layer = where(fleeting, 0.0, kept), where(fleeting, of_head, kept)
    # Those that are reduced on a stream of their own cannot use the room that activations leave in the allocator.
    streamed = {
        phase: where(fleeting & sharded, np.maximum(kept - there, 0.0), 0.0)
        for phase, there in (("loss", loss), ("layer", layer))
    }
    return Gradients(loss, layer, where(buffer, kept, 0.0), streamed)


def _kept(run: TransformerRun, held: Parameters, layers: Number) -> dict[str, Number]:
    """Bytes of weights, gradients and optimizer states on the device, and what lies in host memory."""
    layout, numerics = run.layout, run.numerics
    shards = [where(layout.zero >= stage, layout.shard, 1.0) for stage in (1, 2, 3)]
    group = np.minimum(layout.shard, run.expert_ranks)
    expert_shards = [where(layout.zero >= stage, group, 1.0) for stage in (1, 2, 3)]
    base = sharded_bytes(run.stored_bytes, held.dense, held.experts, shards[2], expert_shards[2])
    beside = run.adapter_parameters * layers / run.shape.layers / layout.tp + run.copied_ends * held.ends
    adapters = where(run.adapter.frozen_bytes > 0, numerics.weight_bytes, 0.0) * beside
    weights = weight_bytes(base, run.embedding_and_head_bytes, held.ends, shards[2], adapters)
    dense, experts = run.trained_share * held.dense + run.trained_ends * held.ends, run.trained_share * held.experts
    copied = run.software.gradient_copies * where(
        numerics.gradient_bytes > numerics.element_bytes, numerics.element_bytes, 0.0
    )
    gradients = sharded_bytes.for_part(GRADIENTS)(
        numerics.gradient_bytes + copied, dense, experts, shards[1], expert_shards[1]
    )
    states_of = (
        (numerics.optimizer.state_bytes, run.trained_share),
        (numerics.optimizer.outer_state_bytes, run.trained_ends),
    )
    inner, outer = ((each + numerics.master_bytes) * trained for each, trained in states_of)
    layer_states = sharded_bytes(inner, held.dense, held.experts, shards[0], expert_shards[0])
    states = state_bytes(layer_states, outer, held.ends, shards[0])
    temporaries: Number = 0.0
    if any_true(numerics.optimizer.temporary_bytes > 0):
        temporaries = sharded_bytes(numerics.optimizer.temporary_bytes, dense, experts, shards[0], expert_shards[0])
    # An engine that updates on the host sends sharded gradients there as they are made.
    sent = layout.offload_optimizer * (layout.zero >= 2)
    return {
        "weights": weights * (1.0 - layout.offload_parameters),
        "gradients": gradients * (1.0 - sent),
        "optimizer": states * (1.0 - layout.offload_optimizer),
        "temporaries": temporaries * (1.0 - layout.offload_optimizer),
        "host_states": states * layout.offload_optimizer,
        "host_gradients": gradients * sent,
        "host_weights": weights * layout.offload_parameters,
    }


def _cast_gradients(run: TransformerRun, held: Parameters) -> Number:
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
    dense = run.trained_share * held.dense + run.trained_ends * held.ends
    casts = sharded_bytes(cast, dense, run.trained_share * held.experts, shard, expert_shard)
    group = run.software.group_parameters
    grouped = (layout.zero >= 3) & np.asarray(group > 0)
    return where(grouped, np.minimum(casts, cast * group), casts) if any_true(grouped) else casts


def training_memory(run: TransformerRun) -> TrainingMemory:
    """Memory of the first and the last pipeline stage, and of the second where it has more layers, phase by phase."""
    stages = [FIRST]
    if any_true(run.stages.first < run.stages.fullest):
        stages.append(SECOND)
    if any_true(run.layout.pp > 1):
        stages.append(LAST)
    return TrainingMemory({stage: stage_memory(run, stage) for stage in stages})
