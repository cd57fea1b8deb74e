"""Training and fine-tuning of a transformer as neutral work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from capacity_tui.engine.catalog.rows import ScalingLaw
from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.estimate.memory_estimate import context_bytes
from capacity_tui.engine.estimate.transformer.auxiliary_kernels import WHOLE_MATRICES, host_launch_seconds
from capacity_tui.engine.estimate.transformer.communication import message_seconds, training_collectives
from capacity_tui.engine.estimate.transformer.finetuning import (
    ELSEWHERE,
    EXPERTS_APART,
    EXPERTS_PACKED,
    EXPERTS_TOO,
    EXPERTS_WIDE,
    objective_collectives,
    objective_operators,
)
from capacity_tui.engine.estimate.transformer.memory_phases import training_memory
from capacity_tui.engine.estimate.transformer.memory_terms import TrainingMemory
from capacity_tui.engine.estimate.transformer.operators import narrow_where_it_pays, training_operators
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.work import ModelFacts, Phase, Schedule, Work
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.models.transformer import forward_attention_flops, forward_flops_per_token, output_weights
from capacity_tui.engine.numeric import Number, added, any_true, largest, where

METHOD = "operator roofline with collectives and pipeline schedule; memory term by term"
LOSS, LEAST_LOSS = Figure.TRAINING_EXPECTED_LOSS, Figure.TRAINING_LEAST_LOSS
BEST_SIZE, BEST_TOKENS = Figure.TRAINING_OPTIMAL_PARAMETERS, Figure.TRAINING_OPTIMAL_TOKENS
OVERTRAINING = Figure.TRAINING_OVERTRAINING


expected_loss = formula()  # Loss of a dense language model on text like that of the law, nats a token
optimal_parameters = formula()  # Parameters that learn most from the work of a training
optimal_tokens = formula()
overtraining = formula()


def learned(law: ScalingLaw, parameters: Number, tokens: Number) -> Mapping[str, Number]:
    """Return what a training is expected to teach, and the best size for its work, by result key."""
    size, data = (law.size_factor, law.size_power), (law.data_factor, law.data_power)
    best = optimal_parameters(parameters, tokens, *size, *data)
    best_tokens = optimal_tokens(parameters, tokens, best)
    return {
        LOSS: expected_loss(parameters, tokens, law.irreducible, *size, *data),
        BEST_SIZE: best,
        BEST_TOKENS: best_tokens,
        LEAST_LOSS: expected_loss.for_part(LEAST_LOSS)(best, best_tokens, law.irreducible, *size, *data),
        OVERTRAINING: overtraining(parameters, tokens, best, best_tokens),
    }


def model_facts(run: TransformerRun) -> ModelFacts:
    """Return the size and work of the model."""
    return ModelFacts(
        parameters=run.counts.total,
        active_parameters=run.counts.active,
        forward_flops=_forward_flops(run),
        unit="token",
        complexity="O(layers · (seq² · hidden + seq · hidden²))",
    )


def _forward_flops(run: TransformerRun) -> Number:
    """Return the operations of a forward pass per token: logits that the loss reads, attention within documents."""
    data, unread = run.data, 1.0 - run.logit_tokens / run.tokens
    whole = forward_flops_per_token(run.shape, data.seq_len, run.causal, run.target)
    if run.shape.is_decoder and any_true(unread > 0):
        whole = whole - unread * 2.0 * output_weights(run.shape)
    if not any_true(data.document > 0):
        return whole
    return whole - (1.0 - run.document_share) * forward_attention_flops(run.shape, data.seq_len, run.causal)


step_flops = formula()
held_step_seconds = formula()


def training_work(run: TransformerRun, steps: Number | None) -> Work:
    """Return the memory, operators and communication of a training step; without ``steps`` its length is open."""
    data, layout = run.data, run.layout
    facts = model_facts(run)
    memory = training_memory(run)
    chosen = narrow_where_it_pays(run)
    device = run.cluster.device
    sizes = (layout.tp, run.replica_ranks, layout.pp, layout.ep)
    groups = added((size > 1) * 1.0 for size in sizes) + run.software.model_groups * _model_groups(run)
    objective, length = run.objective, data.sequences * data.seq_len
    units = data.global_batch * length
    flops = step_flops(facts.forward_flops, objective.trained, run.trained_of_all, objective.forwards, units)
    learns = {} if data.law is None or steps is None else learned(data.law, facts.parameters, steps * units)
    return Work(
        facts=facts,
        memory=memory.parts,
        allocated=memory.peak,
        stages=memory.ends,
        timeline=memory.timeline,
        host_bytes=memory.host,
        host_holds=_host_holds(run),
        places=memory.places,
        fragmentation=run.software.fragmentation,
        stranded=memory.stranded,
        context_bytes=context_bytes(_process_bytes(run), device.efficiency.communicator_bytes, groups),
        phases=(
            Phase(
                "step",
                tuple(objective_operators(objective, training_operators(chosen))),
                tuple(objective_collectives(objective, training_collectives(run), run.recompute.full_layers)),
                _schedule(run),
                host_launch_seconds(run),
                run.software.host_seconds_per_step,
            ),
        ),
        units_per_step=units,
        units_per_sample=length,
        steps=steps,
        model_flops_per_step=flops,
        peak_flops=run.kernels.peak,
        held_seconds=None
        if data.mfu is None
        else held_step_seconds(flops, data.mfu, run.kernels.peak, run.cluster.devices),
        method=METHOD,
        assumed=(*run.cluster.assumed, *run.shape.assumed, *_assumed(run, chosen)),
        state_bytes=partial(_state_bytes, run, memory),
        details=learns,
        delivery=None if data.supply is None else data.supply.delivery(units),
    )


def _model_groups(run: TransformerRun) -> Number:
    """Groups beside those that share the work: of all ranks of a model, and of the stages that tie embeddings."""
    layout = run.layout
    tied = 1.0 if run.shape.tied_embeddings else 0.0
    return (layout.tp * layout.pp > 1) * 1.0 + (layout.pp > 1) * tied


def _host_holds(run: TransformerRun) -> str:
    """Return what lies in host memory that could lie on the devices, in words."""
    layout = run.layout
    shares = {
        "the optimizer": layout.offload_optimizer,
        "the parameters": layout.offload_parameters,
        "activations": layout.offload_activations,
    }
    return " and ".join(name for name, share in shares.items() if any_true(share > 0))


def _process_bytes(run: TransformerRun) -> Number:
    """Return bytes of a driver's context; on a processor those of the process, with the software's libraries."""
    libraries = run.software.process_bytes if run.cluster.device.is_processor else 0.0
    return run.cluster.device.efficiency.context_bytes + libraries


def _schedule(run: TransformerRun) -> Schedule:
    """How micro-batches run through the stages, and which nodes wait for each other."""
    layout = run.layout
    stages, mean = run.stages, run.layers_per_stage
    return Schedule(
        run.micro_batches,
        layout.pp,
        layout.interleave,
        stages.fullest / mean,
        stages.first / mean,
        stages.last / mean,
        message_seconds(run.software.stage_stall_seconds, layout.interleave, layout.pp),
        run.data.local_batches,
        run.cluster.devices / run.cluster.direct_devices,
        run.software.straggler_spread,
    )


def _state_bytes(run: TransformerRun, memory: TrainingMemory) -> Number:
    """Bytes of weights that are trained and of their optimizer, wherever they lie; a frozen base is not written."""
    trained = run.trained_of_all * run.counts.total * run.numerics.element_bytes
    weights = where(run.adapter.frozen_bytes > 0, trained, memory.parts["weights"])
    return weights + memory.parts["optimizer"] + memory.host_state


def _assumed(run: TransformerRun, chosen: TransformerRun) -> Iterator[str]:
    """Say which choices the software is taken to make."""
    if any_true(chosen.kernels.casts < run.kernels.casts):
        yield "linear layers in 16 bits: casts to the narrow type would cost more than its products save"
    if any_true(run.numerics.optimizer.multiplies_matrices):
        yield WHOLE_MATRICES
    if any_true(run.numerics.optimizer.assumed_rank > 0):
        rank = largest(run.numerics.optimizer.assumed_rank)
        yield f"optimizer states of rank {rank:.0f} ({Key.TRAINING_OPTIMIZER_RANK}), without the time of projections"
    if any_true(run.objective.generates > 0):
        yield ELSEWHERE
    if any_true(run.shape.experts > 0) and any_true(run.adapter.inputs.up + run.adapter.inputs.down > 0):
        yield EXPERTS_APART if run.shape.fused_experts else EXPERTS_TOO
    if any_true(run.shape.experts > 0) and run.adapter.packs_modules:
        yield EXPERTS_WIDE if run.adapter.expert_width > 1 else EXPERTS_PACKED
    if run.data.supply is not None:
        yield from run.data.supply.assumed
