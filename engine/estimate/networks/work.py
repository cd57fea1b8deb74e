"""Training or running a network as neutral work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate.data.supply import is_of_images, network_content, supply_of
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.memory_estimate import context_bytes
from capacity_tui.engine.estimate.networks.operators import network_operators, waiting_operators
from capacity_tui.engine.estimate.networks.run import NetworkRun, network_run
from capacity_tui.engine.estimate.timing.collectives import all_gather_seconds, all_reduce_seconds
from capacity_tui.engine.estimate.transformer.memory_terms import GRADIENTS, OPTIMIZER, host_bytes, sharded_bytes
from capacity_tui.engine.estimate.work import Collective, ModelFacts, Phase, Schedule, Work
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.models.networks import NetworkSpec
from capacity_tui.engine.numeric import Number, any_true, where
from capacity_tui.engine.plan import Plan

STEP_LAUNCHES = counted("step-kernels")
TRAINING_FLOPS = counted("backward-flops")
ENCODED_AHEAD = "texts and latents are made before the run: neither the encoders nor the decoder are counted"

METHOD = (
    "operator roofline, convolutions as matrix products, with collectives; memory from the tensors each layer keeps"
)

host_seconds = formula()


def network_work(
    plan: Plan, spec: NetworkSpec, family: str, cluster: Cluster, catalog: Catalog, steps: Number | None
) -> Work:
    """Return a training step, or a batch of inference, as neutral work.

    Args:
        plan: settled.
        steps: optimizer steps of the job; None leaves its length open.
    """
    network = spec.network(catalog, family, trains=not plan.is_inference)
    steps_of_sample, at_once = (1, 1) if not plan.is_inference else spec.passes
    surroundings = spec.surroundings(catalog, family)
    run = network_run(plan, network, cluster, catalog, at_once, surroundings)
    samples = run.data.global_batch / at_once
    reach = cluster.device.efficiency
    context = context_bytes(reach.context_bytes, reach.communicator_bytes, float(run.layout.dp > 1))
    parts, workspace, host = network_memory(run, context)
    supply = (
        supply_of(plan, network_content(spec, network), cluster, catalog)
        if run.trains and plan.data.is_stated
        else None
    )
    parameters, flops = float(network.parameters), float(network.flops) * steps_of_sample * at_once
    # Products of a backward pass for each of a forward one: weights that stay have no gradient.
    backward_passes = 1.0 if run.adapters else TRAINING_FLOPS - 1.0
    samples_are: Literal["images", "samples"] = "images" if is_of_images(spec) else "samples"
    batches = run.micro_batches * steps_of_sample
    ahead = (ENCODED_AHEAD,) if run.trains and surroundings.readers else ()
    around = Phase(
        "text and picture", tuple(waiting_operators(run)), (), Schedule(run.micro_batches), run.launch_seconds
    )
    return Work(
        facts=ModelFacts(parameters, parameters, flops, "sample", spec.complexity, samples_are),
        memory=parts,
        host_bytes=host,
        host_holds="the optimizer" if run.layout.offload_optimizer else "idle parts" if run.waits_on_host else "",
        places={"at the start of the backward pass" if run.trains else "in the widest layer": sum(parts.values())},
        fragmentation=run.software.fragmentation,
        context_bytes=context,
        yielding=workspace,
        phases=(
            Phase(
                "step",
                network_operators(run),
                tuple(_collectives(run)) if run.trains else (),
                Schedule(batches),
                run.launch_seconds,
                host_seconds(STEP_LAUNCHES * run.trains, float(network.awaited), batches, run.launch_seconds),
            ),
            *([around] if around.operators else []),
        ),
        units_per_step=samples,
        units_per_sample=1.0,
        steps=steps if run.trains else None,
        model_flops_per_step=samples * (flops + run.trains * backward_passes * network.trained_flops),
        peak_flops=run.kernels.peak,
        method=METHOD,
        assumed=(*cluster.assumed, *ahead, *(() if supply is None else supply.assumed)),
        state_bytes=(lambda: parts["weights"] + parts["optimizer"] + host) if run.trains else None,
        delivery=None if supply is None else supply.delivery(samples),
    )


def _collectives(run: NetworkRun) -> Iterator[Collective]:
    """Gradients are reduced once a step; sharded parameters are gathered before they are used."""
    layout = run.layout
    if layout.dp <= 1:
        return
    overlap, parameters = run.software.dp_overlap, run.trained_parameters
    gradients, values = parameters * run.numerics.gradient_bytes, parameters * run.numerics.element_bytes
    if layout.zero < 1:
        reduce = all_reduce_seconds(gradients, layout.dp, 1.0, run.cluster)
    else:
        across = all_reduce_seconds(gradients / layout.shard, layout.dp / layout.shard, layout.shard, run.cluster)
        reduce = all_gather_seconds(gradients, layout.shard, 1.0, run.cluster) + across
    yield Collective(
        "reduce gradients",
        "data_parallel",
        reduce,
        1.0,
        overlap,
        per_step=True,
        bytes=gradients,
        hides_behind="backward",
        group=layout.dp,
    )
    if layout.zero < 1:
        return
    gather = all_gather_seconds(values, layout.shard, 1.0, run.cluster)
    passes = 2.0 if layout.zero >= 3 else 1.0
    yield Collective(
        "gather parameters",
        "data_parallel",
        gather,
        passes,
        overlap,
        per_step=not any_true(layout.zero >= 3),
        bytes=values,
        group=layout.shard,
    )


TRANSFORMED_TILE = counted("transformed-tile")


activation_bytes = formula()  # Bytes of activations at their peak


@equation
def transformed_bytes(batch: Number, elements: Number, element_bytes: Number, plain: Number) -> Number:
    """Bytes in which a convolution outside the matrix units keeps its transformed input and output."""
    return batch * elements * element_bytes * TRANSFORMED_TILE * plain


workspace_bytes = formula()
bucket_bytes = formula()
surrounded_weights = formula()


def _weights_and_activations(run: NetworkRun, part: str = "") -> tuple[Number, Number, Number]:
    """Return the bytes of both of one network and of its transformed images; a trained one has more on top."""
    layout, numerics, network = run.layout, run.numerics, run.network
    shard = layout.shard if layout.zero >= 3 else 1.0
    weights = sharded_bytes.for_part(part)(run.weight_bytes, float(network.parameters), 0.0, shard, 1.0)
    activations = activation_bytes(
        run.data.micro_batch,
        run.kept,
        float(network.kept_elements + run.software.keeps_factors * network.factor_elements),
        float(network.kept_bytes),
        float(network.largest),
        numerics.element_bytes,
    )
    transformed = transformed_bytes(
        run.data.micro_batch,
        float(network.transformed),
        numerics.element_bytes,
        float(run.kernels.peak <= run.kernels.vector_peak),
    )
    return weights, activations, transformed


def _at_the_peak(run: NetworkRun) -> tuple[Number, Number, Number]:
    """Return the same when memory is fullest, with what stands around the network."""
    if not run.aside:
        return _weights_and_activations(run, Figure.MEMORY_WEIGHTS)
    around = [_weights_and_activations(part) for part in run.aside]
    fullest, activations, transformed = _weights_and_activations(run)
    others: Number = 0.0
    needed = activations + transformed
    for weights, kept, images in around:
        if run.waits_on_host:
            fuller = weights + kept + images > fullest + needed
            fullest, activations = where(fuller, weights, fullest), where(fuller, kept, activations)
            needed = where(fuller, kept + images, needed)
        else:
            others, activations = others + weights, np.maximum(activations, kept)
            needed = np.maximum(needed, kept + images)
    return surrounded_weights(fullest, others), activations, needed - activations


def network_memory(run: NetworkRun, context: Number) -> tuple[Mapping[str, Number], Number, Number]:
    """Return bytes inside the allocator by part, those of them that give way to others, and bytes in host memory.

    Args:
        context: bytes outside the allocator.
    """
    layout, numerics = run.layout, run.numerics
    trained, trains = run.trained_parameters, float(run.trains)
    shards = [layout.shard if layout.zero >= stage else 1.0 for stage in (1, 2)]
    stored_bytes = numerics.optimizer.state_bytes + numerics.master_bytes
    states = sharded_bytes.for_part(OPTIMIZER)(stored_bytes, trained, 0.0, shards[0], 1.0) * trains
    weights, activations, transformed = _at_the_peak(run)
    parts = {
        "weights": weights,
        "gradients": sharded_bytes.for_part(GRADIENTS)(numerics.gradient_bytes, trained, 0.0, shards[1], 1.0) * trains,
        "optimizer": states * (1.0 - layout.offload_optimizer),
        "activations": activations,
        "buffers": bucket_bytes(numerics.element_bytes, trained, trains * float(layout.dp > 1)),
    }
    capacity, others = run.cluster.device.memory_bytes, sum(parts.values())
    if capacity is not None and any_true(transformed > 0):
        transformed = workspace_bytes(transformed, capacity, context, run.software.fragmentation, others)
    parts["activations"] = activations + transformed
    idle = float(run.waits_on_host) * run.stored_bytes
    return parts, transformed, host_bytes(states * layout.offload_optimizer, idle, 0.0)
