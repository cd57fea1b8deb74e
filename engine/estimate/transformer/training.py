"""Training and fine-tuning of a transformer as neutral work."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.memory_estimate import context_bytes
from capacity_tui.engine.estimate.scaling_law import learned
from capacity_tui.engine.estimate.transformer.communication import message_seconds, training_collectives
from capacity_tui.engine.estimate.transformer.launches import host_launch_seconds
from capacity_tui.engine.estimate.transformer.memory import training_memory
from capacity_tui.engine.estimate.transformer.memory_terms import TrainingMemory
from capacity_tui.engine.estimate.transformer.objective import ELSEWHERE, objective_collectives, objective_operators
from capacity_tui.engine.estimate.transformer.operators import narrow_where_it_pays, training_operators
from capacity_tui.engine.estimate.transformer.optimizer import WHOLE_MATRICES
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.work import ModelFacts, Phase, Schedule, Work
from capacity_tui.engine.models.transformer import forward_attention_flops, forward_flops_per_token
from capacity_tui.engine.numeric import Number, added, any_true, where

METHOD = "operator roofline with collectives and pipeline schedule; memory term by term"


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
    """Return the operations of a forward pass per token; attention stops at the ends of documents."""
    data = run.data
    whole = forward_flops_per_token(run.shape, data.seq_len, run.causal)
    if not any_true(data.document > 0):
        return whole
    return whole - (1.0 - run.document_share) * forward_attention_flops(run.shape, data.seq_len, run.causal)


@equation(
    "flops = forward · (models · (2 + trained) + forwards) · tokens",
    unit="FLOP",
    source="forward, gradients of the inputs, and gradients of the weights, of which a frozen base has none",
    units={"forward": "FLOP"},
)
def step_flops(forward: Number, models: Number, trained: Number, forwards: Number, tokens: Number) -> Number:
    """FLOPs of the model itself in a step, over all devices.

    Args:
        forward: FLOPs of a forward pass for a token.
        models: models that are trained.
        trained: share of the parameters that is trained.
        forwards: forward passes that no backward pass follows.
        tokens: tokens of a step.
    """
    return forward * (models * (2.0 + trained) + forwards) * tokens


def training_work(run: TransformerRun, steps: Number | None) -> Work:
    """Return the memory, operators and communication of a training step.

    Args:
        run: the run.
        steps: optimizer steps of the job; None leaves its length open.
    """
    data, layout = run.data, run.layout
    facts = model_facts(run)
    memory = training_memory(run)
    chosen = narrow_where_it_pays(run)
    device = run.cluster.device
    sizes = (layout.tp, run.replica_ranks, layout.pp, layout.ep)
    groups = added((size > 1) * 1.0 for size in sizes) + run.software.model_groups * _model_groups(run)
    objective, length = run.objective, data.sequences * data.seq_len
    units = data.global_batch * length
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
        context_bytes=context_bytes(device.efficiency.context_bytes, device.efficiency.communicator_bytes, groups),
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
        model_flops_per_step=step_flops(
            facts.forward_flops, objective.trained, run.trained_of_all, objective.forwards, units
        ),
        peak_flops=run.kernels.peak,
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
    if any_true(run.objective.generates > 0):
        yield ELSEWHERE
    if run.data.supply is not None:
        yield from run.data.supply.assumed
