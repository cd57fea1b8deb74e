"""What a training framework does, as numbers: its costs, and how it splits layers over the stages of a pipeline."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.catalog.rows import Framework
from capacity_tui.engine.estimate.derivation import equation, formula
from capacity_tui.engine.estimate.run import Numerics, numbers_of
from capacity_tui.engine.estimate.transformer.finetuning import ALL, in_fp32
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import Number, any_true, where
from capacity_tui.engine.plan import TrainingSection
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import FP32_BYTES, MICRO

LAYER_NORM = "LayerNorm"
KERNEL, CHUNKED, FUSED = "kernel", "chunked", "fused"
# What software has that hides communication behind kernels.
OVERLAPS = ("tp_overlap", "dp_overlap", "ep_overlap", "prefetches_parameters")
FUSED_ACTIVATION, FUSED_NORM = counted("fused-activation-copies"), counted("fused-norm-copies")
LOGIT_COPIES, COMPILED_COPIES = counted("logit-copies"), counted("compiled-logit-copies")
KERNEL_LOGIT_BYTES, AUTOCAST_LOGIT_BYTES = counted("kernel-logit-bytes"), counted("autocast-logit-bytes")
KERNEL_LOGIT_COPIES = counted("kernel-logit-copies")
LOSS_PASSES = counted("loss-passes")
# Numbers of all frameworks, which stand in coefficients.yaml.
COEFFICIENTS = (
    "context_overlap",
    "pipeline_overlap",
    "straggler_spread",
    "feed_forward_traffic",
    "expert_spread",
    "compiled_launches",
    "captured_launches",
    "idle_logit_blocks",
    "varied_length_blocks",
    "random_number_ns",
    "largest_kept_bytes",
    "new_page_gbs",
)


@dataclass(frozen=True, slots=True)
class Software:
    """What the training framework does; see profiles/frameworks.yaml and coefficients.yaml. Times are in seconds.

    ``compiled`` is 1 with a graph compiler, ``captured`` 1 where the kernels of a step are captured once and replayed;
    ``random_number_ns`` has nanoseconds of one core, ``new_page_gbs`` GB/s of one.
    """

    compiled: Number
    captured: Number
    random_number_ns: Number
    largest_kept_bytes: Number
    new_page_gbs: Number
    fp32_parameters: Number
    elementwise_passes: Number
    compiled_passes: Number
    moe_passes: Number
    activation_in_steps: Number
    saved_activation: Number
    saved_norm: Number
    saved_norm_fused: Number
    quantized_copies: Number
    frozen_units: Number
    gradient_copies: Number
    gradient_buffer: Number
    whole_accumulation: Number
    flat_gradients: Number
    bucket_bytes: Number
    fixed_bucket_bytes: Number
    narrow_weights: Number
    stage_outputs: Number
    balanced_stages: Number
    stage_stall_seconds: Number
    stage_gather: Number
    gathered_inputs: Number
    model_groups: Number
    loads_whole: Number
    logit_bytes: Number
    sharded_logit_bytes: Number
    loss_traffic: Number
    chunked_loss: Number
    fused_loss: Number
    group_parameters: Number
    narrow_inputs: Number
    saved_routed: Number
    tp_stall_seconds: Number
    tp_overlap: Number
    dp_overlap: Number
    prefetches_parameters: Number
    broadcasts_parameters: Number
    ep_overlap: Number
    context_overlap: Number
    pipeline_overlap: Number
    straggler_spread: Number
    feed_forward_traffic: Number
    fused_kernels: Number
    gather_launches: Number
    moe_launches: Number
    expert_launches: Number
    expert_spread: Number
    host_launch_seconds: Number
    compiled_launches: Number
    captured_launches: Number
    host_seconds_per_step: Number
    idle_logit_blocks: Number
    varied_length_blocks: Number
    caching_allocator: Number
    fragmentation: Number
    process_bytes: Number


def training_software(
    row: Framework, training: TrainingSection, numerics: Numerics, catalog: Catalog, shape: TransformerShape
) -> Software:
    """Return what a framework does with a plan's choices for a model."""
    saved_activation: Number = row.saved_activation[0] if shape.gated else row.saved_activation[1]
    usual_activation = saved_activation
    if not training.compile:
        saved_activation = row.saved_by_class.get(shape.architecture, saved_activation)
    saved_norm: tuple[Number, Number] = row.saved_norm
    loss = training.loss or row.loss
    if loss == FUSED:
        # Libraries that fuse the loss fuse norms, rotary positions and gated activations too.
        saved_activation = np.minimum(saved_activation, FUSED_ACTIVATION)
        saved_norm = np.minimum(saved_norm[0], FUSED_NORM), np.minimum(saved_norm[1], FUSED_NORM)
    casts = not (row.hub_models and shape.norm == LAYER_NORM and any_true(shape.positions > 0))
    whole, sharded = _logit_bytes(row, training, numerics, casts=casts)
    compiled = _compiles_loss(row, training)
    current = catalog.frameworks[row.release_of or row.id]
    hidden = {name: _hidden(training.overlap, getattr(row, name), getattr(current, name)) for name in OVERLAPS}
    return numbers_of(
        Software,
        row,
        narrow_weights=0.0 if _keeps_fp8(row, training) else row.narrow_weights,
        compiled=float(training.compile),
        captured=float(training.cuda_graphs),
        saved_activation=saved_activation,
        saved_norm=saved_norm[0],
        saved_norm_fused=saved_norm[1],
        logit_bytes=whole,
        sharded_logit_bytes=sharded,
        loss_traffic=LOSS_PASSES * (numerics.element_bytes if loss in {KERNEL, FUSED} or compiled else whole),
        activation_in_steps=float(any_true(saved_activation > usual_activation)),
        chunked_loss=float(loss == CHUNKED),
        fused_loss=float(loss == FUSED),
        fused_kernels=1.0 if loss == FUSED else row.fused_kernels,
        host_launch_seconds=row.launch_us * MICRO,
        **hidden,
        **{name: catalog.coefficients[name.replace("_", "-")].value for name in COEFFICIENTS},
    )


def _hidden(overlap: bool | None, shipped: Number, current: Number) -> Number:
    """Return how much communication is hidden: as the release does, as the current one does, or none of it."""
    if overlap is None:
        return shipped
    return np.maximum(shipped, current) if overlap else 0.0


def _keeps_fp8(row: Framework, training: TrainingSection) -> bool:
    """Whether matrices are kept in the type of their products alone."""
    return row.fp8_weights > 0 if training.fp8_weights is None else training.fp8_weights


def _compiles_loss(row: Framework, training: TrainingSection) -> bool:
    """Whether a graph compiler takes the loss along."""
    return bool(row.compiled_loss and training.compile) and training.loss is None


def _logit_bytes(
    row: Framework, training: TrainingSection, numerics: Numerics, *, casts: bool
) -> tuple[Number, Number]:
    """Return the peak bytes of a logit that is held, and of one that is shared out with the vocabulary."""
    whole, sharded = _standard_logit_bytes(row, training, numerics, casts=casts)
    if (training.loss or row.loss) == KERNEL:
        casts_none = training.logits not in {None, "fp32"}
        held = KERNEL_LOGIT_COPIES * numerics.element_bytes if casts_none else KERNEL_LOGIT_BYTES
        return np.minimum(whole, held), np.minimum(sharded, held)
    return whole, sharded


def _standard_logit_bytes(
    row: Framework, training: TrainingSection, numerics: Numerics, *, casts: bool
) -> tuple[Number, Number]:
    if _compiles_loss(row, training):
        compiled = COMPILED_COPIES * numerics.element_bytes
        return compiled, compiled
    copies = LOGIT_COPIES * numerics.element_bytes
    sharded = row.sharded_logit_bytes if any_true(row.sharded_logit_bytes) else row.logit_bytes
    if numerics.element_bytes >= FP32_BYTES:
        return np.maximum(row.logit_bytes, copies), np.maximum(sharded, copies / 2.0)
    if training.logits is not None:
        return _logit_copies(training, row, copies) if training.logits != "fp32" else (row.logit_bytes, sharded)
    pure = numerics.master_bytes == 0.0 and numerics.weight_bytes < FP32_BYTES
    # Adapters train under automatic mixed precision, whatever type their base has.
    autocast = row.hub_models and (training.adapter is not None or not pure)
    if pure and (not row.logit_upcast or not (casts or autocast)):
        return _logit_copies(training, row, copies)
    return (row.logit_bytes if casts else AUTOCAST_LOGIT_BYTES), sharded


def _logit_copies(training: TrainingSection, row: Framework, copies: Number) -> tuple[Number, Number]:
    """Return the bytes of a logit whose loss has the type of the head: fp32 where that of a quantized base was cast."""
    if in_fp32(training, row) == ALL:
        copies = LOGIT_COPIES * FP32_BYTES
    return copies, copies


@dataclass(frozen=True, slots=True)
class Stages:
    """Layers of pipeline stages; all those of the model without a pipeline."""

    first: Number  # of the first stage, beside the embedding
    fullest: Number  # of the stage that has most
    last: Number  # of the last stage, beside the output head


def divided(layers: Number, head: Number, stages: Number, interleave: Number, balanced: Number) -> Stages:
    """Divide the layers of a model over the stages of a pipeline.

    Args:
        layers: layers of the model.
        head: work of the output head, in layers.
        stages: pipeline stages.
        interleave: chunks a stage holds.
        balanced: 1 where stages hold the same work, 0 where they hold the same number of layers.
    """
    chunks = stages * interleave
    fullest = even_layers(layers, chunks, interleave)
    end = where(stages > 2, even_end_layers(layers, stages, fullest), fullest)
    by_work = (np.asarray(balanced) > 0) & (stages > 1)
    if not any_true(by_work):
        return Stages(end, fullest, end)
    most = balanced_layers(layers, head, chunks, interleave)
    last = balanced_last_layers(layers, head, chunks, interleave, most)
    return Stages(where(by_work, most, end), where(by_work, most, fullest), where(by_work, last, end))


@equation
def even_layers(layers: Number, chunks: Number, interleave: Number) -> Number:
    """Layers of the fullest stage where all hold the same number."""
    chunk_layers = layers / chunks
    return np.maximum(np.ceil(chunk_layers), chunk_layers) * interleave


@equation
def even_end_layers(layers: Number, stages: Number, fullest: Number) -> Number:
    """Layers of the first and of the last stage where all hold the same number: what the others leave."""
    return np.clip(np.ceil((layers - (stages - 2.0) * fullest) / 2.0), 1.0, fullest)


head_in_layers = formula()  # Work of the output head, in layers
balanced_layers = formula()  # Layers of the fullest stage where all hold the same work
balanced_last_layers = formula()  # Layers of the last stage where all hold the same work
