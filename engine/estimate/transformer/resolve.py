"""From a plan without open choices to the numbers of a transformer run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.catalog.rows import AttentionKernel, Framework, ScalingLaw
from capacity_tui.engine.cluster import Cluster, Device
from capacity_tui.engine.estimate.data.supply import supply_of, transformer_content
from capacity_tui.engine.estimate.run import KernelRates, RunData, run_layout, training_numerics
from capacity_tui.engine.estimate.timing.roofline import attention_kernel, attention_rates
from capacity_tui.engine.estimate.transformer.finetuning import SCORING, finetuning, objective_of, trained_counts
from capacity_tui.engine.estimate.transformer.run import Recompute, TransformerRun
from capacity_tui.engine.estimate.transformer.software import training_software
from capacity_tui.engine.models import checkpointing
from capacity_tui.engine.models.transformer import TransformerShape, layer_matrices
from capacity_tui.engine.numeric import Number, any_true
from capacity_tui.engine.plan import (
    EXPERT_GROUPS,
    MODEL_DIVIDES_DEVICES,
    REPLICAS_FILL_DEVICES,
    ParallelismSection,
    Plan,
    given_sizes,
    require,
    software_id,
    stated_layout,
    with_following,
)
from capacity_tui.engine.schema import AUTO

VARIED = "varied"
TRANSCRIPT_TOKENS = counted("transcript-tokens")  # Of a piece of sound as long as models read


def framework_row(plan: Plan, catalog: Catalog) -> Framework:
    """Return what the plan's framework does; ``plain`` where it names none, or one that nothing is known about."""
    return catalog.frameworks[software_id(plan.training.framework, catalog)]


def resolve_parallelism(section: ParallelismSection, devices: int, zero: int) -> ParallelismSection:
    """Fill in the sizes that follow from the others; raises PlanError where they do not multiply to the devices."""
    given = given_sizes(section)
    layout = stated_layout(section, devices)
    if "dp" not in given:
        require(MODEL_DIVIDES_DEVICES, layout)
    layout = with_following(layout, given)
    require(REPLICAS_FILL_DEVICES, layout)
    require(EXPERT_GROUPS, layout)
    sizes = {name: int(getattr(layout, name)) for name in ("dp", "tp", "pp", "etp", "shard", "interleave")}
    stage = section.zero if section.zero is not None and section.zero != AUTO else zero
    return section.model_copy(update={**sizes, "zero": stage, "sequence_parallel": bool(layout.sequence_parallel)})


def resolve_recompute(name: str, catalog: Catalog | None = None) -> Recompute:
    """Return what a checkpointing name recomputes, as numbers."""
    chosen = checkpointing(name, catalog)
    modules = chosen.modules
    return Recompute(
        full_layers=chosen.full_layers,
        operations=float(chosen.operations),
        attention=float("attention" in modules),
        mlp=float("mlp" in modules),
        experts=float(bool(modules & {"mlp", "experts"})),
        router=float(bool(modules & {"mlp", "router"})),
        norm=float("norm" in modules),
        activation=float("activation" in modules),
        latent=float("mla-up" in modules),
    )


def transformer_run(plan: Plan, shape: TransformerShape, cluster: Cluster, catalog: Catalog) -> TransformerRun:
    """Return the run of a plan whose fields are all settled (see ``estimate.resolve.resolve_plan``)."""
    training, row = plan.training, framework_row(plan, catalog)
    on_processor = cluster.device.is_processor
    numerics = training_numerics(training, row, catalog, on_processor=on_processor)
    counts = trained_counts(training, shape)
    if training.preference in SCORING:
        shape = replace(shape, tied_embeddings=False)
    objective = objective_of(training, counts)
    return TransformerRun(
        shape=shape,
        counts=counts,
        cluster=cluster,
        numerics=numerics.averaged(layer_matrices(shape), counts.inside_layers / counts.layers),
        layout=run_layout(plan.parallelism, cluster.device, offloads_activations=training.activation_offload == "all"),
        objective=objective,
        data=_data(plan, shape, cluster, objective.sequences, catalog),
        software=training_software(row, training, numerics, catalog, shape),
        kernels=_kernels(plan, shape, cluster.device, row, catalog),
        recompute=resolve_recompute(training.checkpointing, catalog),
        adapter=finetuning(training, shape, numerics.element_bytes, row, catalog),
    )


def _kernels(plan: Plan, shape: TransformerShape, device: Device, row: Framework, catalog: Catalog) -> KernelRates:
    """Return what the kernels of a plan's precision reach.

    ``hardware.efficiency`` is the share of the peak that training sustains; ``gemm_reach``, from short benchmarks, is
    before the loss to sustained load, which the products take off later: it is divided out here.
    """
    precision, efficiency = str(plan.training.precision), plan.hardware.efficiency
    kept = catalog.precisions.find(precision)
    # Only types that operands are cast to leave some products in a wider one: TF32 is the type of every product.
    wide = kept.wide if kept.casts else precision
    reaches = [
        device.gemm_reach(name) * device.conversion_share(name)
        if efficiency is None
        else efficiency / device.efficiency.sustained
        for name in (precision, wide)
    ]
    kernel = _attention(plan, shape, device, row, catalog)
    return KernelRates(
        peak=device.peak(precision),
        gemm_reach=reaches[0],
        attention_peak=device.peak(wide),
        attention_reach=reaches[1],
        vector_peak=device.peak("fp32"),
        attention=attention_rates(kernel, device, catalog),
        casts=float(catalog.precisions[device.native(precision)].casts),
    )


def stores_scores(plan: Plan, shape: TransformerShape, device: Device, catalog: Catalog) -> bool:
    """Whether scores of attention are stored in training, rather than kept inside one fused kernel."""
    return not _attention(plan, shape, device, framework_row(plan, catalog), catalog).fused


def _attention(
    plan: Plan, shape: TransformerShape, device: Device, row: Framework, catalog: Catalog
) -> AttentionKernel:
    """Return the kernel of attention that training runs; the fused ones of processors have no dropout."""
    if device.is_processor and _drops_scores(plan, shape):
        return catalog.attention_kernels["eager"]
    return attention_kernel(plan.training.attention, device, row, catalog)


def _drops_scores(plan: Plan, shape: TransformerShape) -> bool:
    """Whether scores of attention are dropped out, as where models with learned positions (GPT-2, BERT) are trained."""
    dropout = _dropout(plan, shape)
    return float(shape.positions) > 0 and shape.vision is None if dropout is None else dropout > 0


def _dropout(plan: Plan, shape: TransformerShape) -> float | None:
    """Return the dropout of a run: models of sound are trained without, as their configurations have it."""
    given = plan.training.dropout
    return 0.0 if given is None and shape.source_positions else given


def _data(plan: Plan, shape: TransformerShape, cluster: Cluster, sequences: Number, catalog: Catalog) -> RunData:
    training = plan.training
    return RunData(
        micro_batch=float(training.micro_batch),
        global_batch=float(training.global_batch or 1),
        local_batches=float(training.local_batches),
        sequences=sequences,
        seq_len=float(training.seq_len),
        target=_target(plan, shape),
        document=float(training.document_tokens or 0),
        dropout=_dropout(plan, shape),
        varied=float(training.lengths == VARIED),
        predicted=_predicted(plan, shape),
        tiles=float(training.sequence_tiles),
        natural_routing=float(training.routing == "natural"),
        law=_law(plan, shape, catalog),
        mfu=training.mfu,
        supply=supply_of(plan, transformer_content(plan, shape), cluster, catalog) if plan.data.is_stated else None,
    )


def _target(plan: Plan, shape: TransformerShape) -> float:
    """Return the tokens of an encoder-decoder's target: those that its loss reads; 0 where it has its source's."""
    usual = TRANSCRIPT_TOKENS if shape.source_positions else 0.0
    return float(plan.training.predicted_tokens or usual) if shape.encoder_layers else 0.0


def _predicted(plan: Plan, shape: TransformerShape) -> float:
    """Return the tokens of a sequence whose logits the loss reads: all, or none where scores or classes are learned.

    An encoder-decoder's loss reads all of its target.
    """
    given = plan.training.predicted_tokens
    if given is None or shape.encoder_layers:
        is_read = not plan.is_finetuning or not shape.is_encoder
        return np.inf if is_read and plan.training.preference not in SCORING else 0.0
    return float(given)


def _law(plan: Plan, shape: TransformerShape, catalog: Catalog) -> ScalingLaw | None:
    """Return the scaling law of a model that is trained from the start; None for kinds that no law was fitted to."""
    attends = shape.is_decoder and shape.recurrent is None
    is_like_it = plan.task == "train" and attends and not any_true(shape.experts)
    return next(iter(catalog.scaling_laws.values()), None) if is_like_it else None
