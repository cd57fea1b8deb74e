"""From a plan without open choices to the numbers of a transformer run."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.catalog.rows import MIB, Framework, ScalingLaw
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate.data.content import transformer_content
from capacity_tui.engine.estimate.data.supply import supply_of
from capacity_tui.engine.estimate.numerics import Numerics, mean_state_bytes, training_numerics
from capacity_tui.engine.estimate.timing.attention import attention_kernel, attention_rates
from capacity_tui.engine.estimate.transformer.choices import Adapted, AdapterInputs, Recompute, Unpacking
from capacity_tui.engine.estimate.transformer.memory_terms import stored_weight_bytes
from capacity_tui.engine.estimate.transformer.run import Software, TransformerRun
from capacity_tui.engine.models import checkpointing
from capacity_tui.engine.models.transformer import TransformerShape, count_parameters, layer_matrices
from capacity_tui.engine.numeric import Number, any_true
from capacity_tui.engine.plan import (
    AUTO,
    EXPERT_GROUPS,
    MODEL_DIVIDES_DEVICES,
    REPLICAS_FILL_DEVICES,
    Adapter,
    Layout,
    ParallelismSection,
    Plan,
    given_sizes,
    require,
    software_id,
    with_following,
)
from capacity_tui.engine.plan.sections import TrainingSection
from capacity_tui.engine.units import FP32_BYTES, MICRO

CHUNKED, FUSED = "chunked", "fused"
FUSED_ACTIVATION, FUSED_NORM = counted("fused-activation-copies"), counted("fused-norm-copies")
DROPOUT_PASSES = counted("dropout-passes")
LOGIT_COPIES, COMPILED_COPIES = counted("logit-copies"), counted("compiled-logit-copies")
LOSS_PASSES = counted("loss-passes")
SWAP, GATHER = "all_to_all", "all_gather"
# What LoRA adapts, by the names plans use.
TARGETS = {
    "all": frozenset({"query", "key", "value", "output", "up", "down"}),
    "attention": frozenset({"query", "key", "value", "output"}),
    "mlp": frozenset({"up", "down"}),
    "query+value": frozenset({"query", "value"}),
}


def framework_row(plan: Plan, catalog: Catalog) -> Framework:
    """Return what the plan's framework does; ``plain`` where it names none, or one that nothing is known about."""
    return catalog.frameworks[software_id(plan.training.framework, catalog)]


def resolve_parallelism(section: ParallelismSection, devices: int, zero: int) -> ParallelismSection:
    """Fill in the sizes that follow from the others and check that they divide the devices.

    Raises:
        PlanError: the sizes do not multiply to the number of devices.
    """
    given = given_sizes(section)
    layout = Layout(
        devices=float(devices),
        dp=float(section.dp if isinstance(section.dp, int) else 1),
        tp=float(section.tp or 1),
        pp=float(section.pp or 1),
        cp=float(section.cp),
        ep=float(section.ep),
        etp=float(section.etp or 1),
        shard=float(section.shard or 1),
        sequence_parallel=float(bool(section.sequence_parallel)),
        interleave=float(section.interleave),
    )
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


def adapter_parameters(shape: TransformerShape, adapter: Adapter) -> Number:
    """Trained parameters of low-rank adapters: rank · (inputs + outputs) for each adapted matrix.

    Source: Hu et al. 2021. A DoRA adapter adds one magnitude for each output.
    """
    adapted = adapted_matrices(shape, adapter, 0.0)
    magnitude = 1.0 if adapter.kind == "dora" else 0.0
    each = adapter.rank * (adapted.inputs + adapted.outputs) + magnitude * adapted.outputs
    return shape.layers * each


def adapted_matrices(shape: TransformerShape, adapter: Adapter | None, copies: Number) -> Adapted:
    """Return the matrices of the mean layer that adapters stand beside.

    Args:
        shape: the model.
        adapter: the adapters, None for none.
        copies: what dropout keeps of every adapted matrix's input; 0 without dropout.
    """
    if adapter is None:
        return Adapted()
    query, value = shape.heads * shape.head_dim, shape.heads * shape.v_head_dim
    keys, values = shape.kv_heads * shape.head_dim, shape.kv_heads * shape.v_head_dim
    sizes = {
        "query": (shape.hidden, query, 1),
        "key": (shape.hidden, keys, 1),
        "value": (shape.hidden, values, 1),
        "output": (value, shape.hidden, 1),
        "up": (shape.hidden, shape.ffn, 1 + shape.gated),
        "down": (shape.ffn, shape.hidden, 1),
    }
    chosen = [sizes[name] for name in sorted(TARGETS[adapter.targets])]
    return Adapted(
        matrices=sum(number for *_, number in chosen),
        inputs=sum(number * inputs for inputs, _, number in chosen),
        outputs=sum(number * outputs for _, outputs, number in chosen),
        rank=float(adapter.rank),
        dropout=float(any_true(copies > 0)),
    )


def adapter_inputs(shape: TransformerShape, adapter: Adapter | None, copies: Number) -> AdapterInputs:
    """Return what a layer keeps for its adapters: inputs nothing else keeps, or dropped-out copies.

    Args:
        shape: the model.
        adapter: the adapters, None for none.
        copies: what dropout keeps of every adapted matrix's input, in inputs; 0 without dropout.
    """
    if adapter is None:
        return AdapterInputs()
    targets = TARGETS[adapter.targets]
    attention = float(bool(targets & {"query", "key", "value"}))
    output, up, down = (float(name in targets) for name in ("output", "up", "down"))
    if any_true(copies > 0):
        return AdapterInputs(copies * attention, copies * output, copies * (1 + shape.gated) * up, copies * down)
    return AdapterInputs(attention, 0.0, up, down)


def transformer_run(plan: Plan, shape: TransformerShape, cluster: Cluster, catalog: Catalog) -> TransformerRun:
    """Return the run of a plan whose fields are all settled (see ``estimate.resolve.resolve_plan``).

    Raises:
        CatalogError: an optimizer, precision or quantization nobody knows.
        PlanError: a combination that does not make sense.
    """
    training, parallel = plan.training, plan.parallelism
    row = framework_row(plan, catalog)
    precision = str(training.precision)
    numerics = training_numerics(training, row, catalog)
    counts = count_parameters(shape)
    trainable: Number = counts.inside_layers
    frozen: Number = 0.0
    if training.adapter is not None:
        trainable = adapter_parameters(shape, training.adapter)
        frozen = _frozen_bytes(base_format(training), numerics.element_bytes, catalog)
    device = cluster.device
    kernel = attention_kernel(training.attention, device, row, catalog)
    efficiency = plan.hardware.efficiency
    # hardware.efficiency is the share of the peak that training sustains; gemm_reach, from short benchmarks, is before
    # the loss to sustained load, which the products take off later: it is divided out here.
    kept = catalog.precisions.find(precision)
    # Only types that operands are cast to leave some products in a wider one: TF32 is the type of every product.
    wide = kept.wide if kept.casts else precision
    reaches = [
        device.gemm_reach(name) if efficiency is None else efficiency / device.efficiency.sustained
        for name in (precision, wide)
    ]
    return TransformerRun(
        shape=shape,
        counts=counts,
        cluster=cluster,
        software=_software(row, shape, training, numerics, catalog),
        recompute=resolve_recompute(training.checkpointing, catalog),
        causal=shape.kind == "decoder",
        seq_len=float(training.seq_len),
        micro_batch=float(training.micro_batch),
        global_batch=float(training.global_batch or 1),
        dp=float(parallel.dp or 1),
        tp=float(parallel.tp or 1),
        pp=float(parallel.pp or 1),
        cp=float(parallel.cp),
        ep=float(parallel.ep),
        etp=float(parallel.etp or 1),
        interleave=float(parallel.interleave),
        local_batches=float(training.local_batches),
        zero=float(parallel.zero or 0),
        shard=float(parallel.shard or 1),
        sequence_parallel=float(bool(parallel.sequence_parallel)),
        natural_routing=float(training.routing == "natural"),
        element_bytes=numerics.element_bytes,
        weight_bytes=numerics.weight_bytes,
        master_bytes=numerics.master_bytes,
        gradient_bytes=numerics.gradient_bytes,
        state_bytes=mean_state_bytes(numerics, layer_matrices(shape), counts.inside_layers / counts.layers),
        outer_state_bytes=numerics.outer_state_bytes,
        temporary_bytes=numerics.temporary_bytes,
        optimizer_traffic=numerics.optimizer_traffic,
        outer_traffic=numerics.outer_traffic,
        optimizer_flops=numerics.optimizer_flops,
        newton_schulz_steps=numerics.newton_schulz_steps,
        peak=device.peak(precision),
        gemm_reach=reaches[0],
        attention_peak=device.peak(wide),
        wide_gemm_reach=reaches[1],
        fp8_linears=float(catalog.precisions[device.native(precision)].casts),
        attention=attention_rates(kernel, device, catalog),
        compiled=float(training.compile),
        captured=float(training.cuda_graphs),
        trainable=trainable,
        frozen_bytes=frozen,
        frozen_end_bytes=numerics.element_bytes if frozen else 0.0,
        adapter_inputs=adapter_inputs(shape, training.adapter, row.adapter_copies),
        embeddings_trained=float(training.adapter is not None and training.adapter.train_embeddings),
        adapted=adapted_matrices(shape, training.adapter, row.adapter_copies),
        quantized=float(0.0 < frozen < numerics.element_bytes),
        unpacking=_unpacking(base_format(training), frozen, numerics.element_bytes, catalog),
        law=_law(plan, shape, catalog),
        supply=supply_of(plan, transformer_content(plan, shape), cluster, catalog) if plan.data.is_stated else None,
        offload_optimizer=float(parallel.offload in {"optimizer", "parameters"}) * cluster.device.has_own_memory,
        offload_parameters=float(parallel.offload == "parameters") * cluster.device.has_own_memory,
        document=float(training.document_tokens or 0),
        context_swap=float(parallel.context == SWAP),
        context_gather=float(parallel.context == GATHER),
        offload_activations=float(parallel.offload == "activations" or training.activation_offload == "all")
        * cluster.device.has_own_memory,
        tiles=float(training.sequence_tiles),
        predicted=_predicted(plan, shape),
        dropout_passes=DROPOUT_PASSES * (shape.kind == "encoder"),
    )


def _predicted(plan: Plan, shape: TransformerShape) -> float:
    """Return the tokens of a sequence whose logits the loss reads: all, or none where an encoder is fine-tuned."""
    given = plan.training.predicted_tokens
    if given is None:
        return 0.0 if plan.task == "finetune" and shape.kind == "encoder" else np.inf
    return float(given)


def base_format(training: TrainingSection) -> str | None:
    """Return how the frozen base below adapters is stored; None where it has the type of the activations."""
    if training.adapter is None:
        return None
    return training.quantization or ("nf4" if training.adapter.kind == "qlora" else None)


def _frozen_bytes(name: str | None, element_bytes: float, catalog: Catalog) -> Number:
    """Bytes of a frozen parameter of the layers by its format; that of the activations where none is named."""
    bits = catalog.quantizations.find(name).body_bits if name else None
    return stored_weight_bytes(bits) if bits else element_bytes


def _unpacking(name: str | None, stored: Number, element_bytes: float, catalog: Catalog) -> Unpacking:
    """Return what unpacking a frozen base takes in each pass; nothing where it is multiplied as it is stored."""
    if name is None or not 0.0 < stored < element_bytes:
        return Unpacking()
    row = catalog.quantizations.find(name)
    return Unpacking(row.unpacked_bytes, row.unpack_flops, row.unpack_launches)


def _software(
    row: Framework, shape: TransformerShape, training: TrainingSection, numerics: Numerics, catalog: Catalog
) -> Software:
    saved_activation = row.saved_activation[0] if shape.gated else row.saved_activation[1]
    saved_norm = row.saved_norm
    loss = training.loss or row.loss
    if loss == FUSED:
        # Libraries that fuse the loss fuse norms, rotary positions and gated activations too.
        saved_activation = np.minimum(saved_activation, FUSED_ACTIVATION)
        saved_norm = np.minimum(saved_norm[0], FUSED_NORM), np.minimum(saved_norm[1], FUSED_NORM)
    whole, sharded = _logit_bytes(row, training, numerics)
    return Software(
        fp32_parameters=float(row.fp32_parameters),
        elementwise_passes=row.elementwise_passes,
        compiled_passes=row.compiled_passes,
        moe_passes=row.moe_passes,
        saved_activation=saved_activation,
        saved_norm=saved_norm[0],
        saved_norm_fused=saved_norm[1],
        quantized_copies=row.quantized_copies,
        gradient_copies=row.gradient_copies,
        gradient_buffer=float(row.gradient_buffer),
        flat_gradients=row.flat_gradients,
        bucket_bytes=row.bucket_mib * MIB,
        stage_outputs=row.stage_outputs,
        balanced_stages=float(row.balanced_stages),
        stage_stall_seconds=row.stage_stall_us * MICRO,
        stage_gather=row.stage_gather,
        gathered_inputs=row.gathered_inputs,
        loads_whole=row.loads_whole,
        logit_bytes=whole,
        sharded_logit_bytes=sharded,
        loss_traffic=LOSS_PASSES * (numerics.element_bytes if loss == FUSED or _compiled(row, training) else whole),
        chunked_loss=float(loss == CHUNKED),
        fused_loss=float(loss == FUSED),
        group_parameters=row.group_parameters,
        narrow_inputs=float(row.narrow_inputs),
        saved_routed=row.saved_routed,
        tp_stall_seconds=row.tp_stall_us * MICRO,
        tp_overlap=row.tp_overlap,
        dp_overlap=row.dp_overlap,
        prefetches_parameters=float(row.prefetches_parameters),
        broadcasts_parameters=float(row.broadcasts_parameters),
        ep_overlap=row.ep_overlap,
        context_overlap=catalog.coefficients["context-overlap"].value,
        pipeline_overlap=catalog.coefficients["pipeline-overlap"].value,
        straggler_spread=catalog.coefficients["straggler-spread"].value,
        feed_forward_traffic=catalog.coefficients["feed-forward-traffic"].value,
        fused_kernels=1.0 if loss == FUSED else row.fused_kernels,
        gather_launches=row.gather_launches,
        moe_launches=row.moe_launches,
        expert_launches=row.expert_launches,
        expert_spread=catalog.coefficients["expert-spread"].value,
        host_launch_seconds=row.launch_us * MICRO,
        compiled_launches=catalog.coefficients["compiled-launches"].value,
        captured_launches=catalog.coefficients["captured-launches"].value,
        host_seconds_per_step=row.host_seconds_per_step,
        fragmentation=row.fragmentation,
    )


def _compiled(row: Framework, training: TrainingSection) -> bool:
    """Whether a graph compiler takes the loss along."""
    return bool(row.compiled_loss and training.compile) and training.loss is None


def _logit_bytes(row: Framework, training: TrainingSection, numerics: Numerics) -> tuple[Number, Number]:
    """Return the peak bytes of a logit that is held, and of one that is shared out with the vocabulary."""
    if _compiled(row, training):
        compiled = COMPILED_COPIES * numerics.element_bytes
        return compiled, compiled
    copies = LOGIT_COPIES * numerics.element_bytes
    sharded = row.sharded_logit_bytes if any_true(row.sharded_logit_bytes) else row.logit_bytes
    if numerics.element_bytes >= FP32_BYTES:
        return np.maximum(row.logit_bytes, copies), np.maximum(sharded, copies / 2.0)
    if numerics.master_bytes == 0.0 and numerics.weight_bytes < FP32_BYTES and not row.logit_upcast:
        return copies, copies
    return row.logit_bytes, sharded


def _law(plan: Plan, shape: TransformerShape, catalog: Catalog) -> ScalingLaw | None:
    """Return the scaling law of a model that is trained from the start; None for kinds that no law was fitted to."""
    is_like_it = plan.task == "train" and shape.kind == "decoder" and not any_true(shape.experts)
    return next(iter(catalog.scaling_laws.values()), None) if is_like_it else None
