"""A transformer run reduced to numbers: what memory and time formulas read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from capacity_tui.engine.catalog.rows import ScalingLaw
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate.data.supply import Supply
from capacity_tui.engine.estimate.timing.attention import AttentionRates
from capacity_tui.engine.estimate.transformer.choices import Adapted, AdapterInputs, Recompute, Unpacking
from capacity_tui.engine.estimate.transformer.documents import attended_tokens
from capacity_tui.engine.estimate.transformer.stages import Stages, divided, head_in_layers
from capacity_tui.engine.models.transformer import ParameterCounts, TransformerShape
from capacity_tui.engine.numeric import Number, any_true, present, where


@dataclass(frozen=True, slots=True)
class Software:
    """What the training framework does; see profiles/frameworks.yaml and coefficients.yaml. Times in seconds."""

    fp32_parameters: Number
    elementwise_passes: Number
    compiled_passes: Number
    moe_passes: Number
    saved_activation: Number
    saved_norm: Number
    saved_norm_fused: Number
    quantized_copies: Number
    gradient_copies: Number
    gradient_buffer: Number
    flat_gradients: Number
    bucket_bytes: Number
    stage_outputs: Number
    balanced_stages: Number
    stage_stall_seconds: Number
    stage_gather: Number
    gathered_inputs: Number
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
    fragmentation: Number


@dataclass(frozen=True, slots=True)
class TransformerRun:
    """One training or fine-tuning step. Every numeric field may be an array; all broadcast together.

    Attributes:
        shape: sizes of the model.
        counts: its parameters by part.
        cluster: what it runs on.
        software: what the framework does.
        recompute: activation checkpointing.
        causal: whether a token sees earlier tokens only.
        seq_len: tokens in a sequence.
        micro_batch: sequences a replica works on at once.
        global_batch: sequences of an optimizer step.
        dp, tp, pp, cp, ep, etp: data, tensor, pipeline, context, expert and expert-tensor parallel sizes.
        interleave: pipeline chunks a device holds.
        local_batches: times the pipeline is filled and emptied for a step.
        zero: sharding stage 0 to 3.
        shard: ranks in one sharding group.
        sequence_parallel: 1 where norms are split over the tensor-parallel group.
        natural_routing: 1 where tokens spread over experts as a trained router spreads them, 0 where evenly.
        element_bytes: bytes of an activation.
        weight_bytes: bytes kept for a parameter between uses.
        master_bytes: bytes of its fp32 copy, 0 if none.
        gradient_bytes: bytes of a gradient as kept.
        state_bytes: bytes of optimizer state for a parameter of the layers, the mean over matrices and vectors.
        outer_state_bytes: the same outside the layers.
        temporary_bytes: bytes that separate operations of the optimizer write aside for a parameter.
        optimizer_traffic: bytes the optimizer reads and writes for a parameter of the layers.
        outer_traffic: the same outside the layers.
        optimizer_flops: element-wise operations of the optimizer for a parameter.
        newton_schulz_steps: iterations that orthogonalize the update of a matrix, 0 without.
        peak: dense peak of the linear layers, FLOP/s.
        gemm_reach: share of it that large products sustain.
        attention_peak: dense peak of attention, and of what is never cast to a narrower type, FLOP/s.
        wide_gemm_reach: share of it that large products sustain.
        casts: 1 where operands are cast to a narrower type before each product.
        attention: what the kernel of attention reaches.
        compiled: 1 with a graph compiler.
        captured: 1 where the kernels of a step are captured once and replayed.
        trainable: parameters of the layers with gradients (all, or the adapters').
        frozen_bytes: bytes of a frozen base parameter; 0 where everything is trained.
        frozen_end_bytes: the same outside the layers, where quantization stops.
        adapter_inputs: what a layer keeps for its adapters.
        embeddings_trained: 1 where embedding and head are trained whole beside adapters.
        adapted: the matrices that adapters stand beside.
        quantized: 1 where the frozen base is unpacked for each product.
        unpacking: what that takes.
        tiles: pieces of the sequence that feed-forwards work through one after another.
        offload_optimizer, offload_parameters, offload_activations: 1 where kept in host memory.
        document: mean tokens of a document where attention stops at its ends; 0 where it spans the sequence.
        predicted: tokens of a sequence whose logits over the vocabulary the loss reads, all where there are more.
        dropout_passes: passes over a tensor that dropout takes, each way; 0 without it.
        law: what tokens teach a model of its kind; None where no law says, and for models that are not new.
        supply: how its data reach the devices; None where the plan says nothing of them.
        context_swap, context_gather: 1 where context parallelism swaps tokens for heads, or gathers keys and values.
    """

    shape: TransformerShape
    counts: ParameterCounts
    cluster: Cluster
    software: Software
    recompute: Recompute
    causal: bool
    seq_len: Number
    micro_batch: Number
    global_batch: Number
    dp: Number
    tp: Number
    pp: Number
    cp: Number
    ep: Number
    etp: Number
    interleave: Number
    zero: Number
    shard: Number
    sequence_parallel: Number
    natural_routing: Number
    element_bytes: Number
    weight_bytes: Number
    master_bytes: Number
    gradient_bytes: Number
    state_bytes: Number
    outer_state_bytes: Number
    optimizer_traffic: Number
    outer_traffic: Number
    optimizer_flops: Number
    newton_schulz_steps: Number
    peak: Number
    gemm_reach: Number
    attention_peak: Number
    wide_gemm_reach: Number
    fp8_linears: Number
    attention: AttentionRates
    compiled: Number
    captured: Number
    trainable: Number
    frozen_bytes: Number
    temporary_bytes: Number = 0.0
    frozen_end_bytes: Number = 0.0
    adapter_inputs: AdapterInputs = field(default_factory=AdapterInputs)
    embeddings_trained: Number = 0.0
    adapted: Adapted = field(default_factory=Adapted)
    quantized: Number = 0.0
    unpacking: Unpacking = field(default_factory=Unpacking)
    tiles: Number = 1.0
    offload_optimizer: Number = 0.0
    offload_parameters: Number = 0.0
    offload_activations: Number = 0.0
    local_batches: Number = 1.0
    document: Number = 0.0
    predicted: Number = np.inf
    dropout_passes: Number = 0.0
    law: ScalingLaw | None = None
    supply: Supply | None = None
    context_swap: Number = 0.0
    context_gather: Number = 0.0

    @property
    def logit_tokens(self) -> Number:
        """Tokens of a micro-batch on the device whose logits over the vocabulary the loss reads."""
        return self.tokens * np.minimum(1.0, self.predicted / self.seq_len)

    @property
    def fused_attention(self) -> Number:
        """1 where attention never stores its scores."""
        return self.attention.fused

    @property
    def trained_share(self) -> Number:
        """Parameters with gradients over all, in the layers."""
        return where(self.frozen_bytes > 0, self.trainable / self.counts.inside_layers, 1.0)

    @property
    def trained_ends(self) -> Number:
        """Parameters with gradients over all, outside the layers."""
        return where(self.frozen_bytes > 0, self.copied_ends, 1.0)

    @property
    def copied_ends(self) -> Number:
        """Share of the parameters outside the layers that are trained in a copy beside the frozen ones."""
        return where(self.frozen_bytes > 0, self.embeddings_trained, 0.0)

    @property
    def trained_of_all(self) -> Number:
        """Parameters with gradients over all of the model."""
        counts = self.counts
        inside, outside = counts.inside_layers, counts.total - counts.inside_layers
        return (self.trained_share * inside + self.trained_ends * outside) / counts.total

    @property
    def adapter_parameters(self) -> Number:
        """Parameters beside the base model's."""
        return where(self.frozen_bytes > 0, self.trainable, 0.0)

    @property
    def stored_bytes(self) -> Number:
        """Bytes of a base parameter in the layers, between uses."""
        if not any_true(self.frozen_bytes <= 0):
            return self.frozen_bytes  # the very number, so that its derivation is found
        return where(self.frozen_bytes > 0, self.frozen_bytes, self.weight_bytes)

    @property
    def embedding_and_head_bytes(self) -> Number:
        """Bytes of a base parameter outside the layers, between uses."""
        return where(self.frozen_bytes > 0, self.frozen_end_bytes, self.weight_bytes)

    @property
    def autocast(self) -> Number:
        """1 where operands are cast as they are used, from parameters in a wider type that no gathering casts."""
        return where((self.weight_bytes > self.element_bytes) & (self.zero < 3), 1.0, 0.0)

    @property
    def split(self) -> Number:
        """Ranks that share what lies between tensor-parallel products."""
        return where(self.sequence_parallel > 0, self.tp, 1.0)

    @property
    def column_input(self) -> Number:
        """Elements a token keeps of the input of a product split by columns: whole where it is not gathered again."""
        kept = self.software.gathered_inputs
        return self.shape.hidden * (kept + (1.0 - kept) / self.split)

    @property
    def active_ffn(self) -> Number:
        """Width of the feed-forward a token passes in the mean layer."""
        shape = self.shape
        routed = shape.experts_active * shape.moe_ffn + shape.experts_shared * shape.shared_ffn
        return (1.0 - self.moe_share) * shape.ffn + self.moe_share * routed

    @property
    def operand_bytes(self) -> Number:
        """Bytes of an operand of a linear layer."""
        return where(self.fp8_linears > 0, self.element_bytes / 2.0, self.element_bytes)

    @property
    def narrowed(self) -> Number:
        """Share of an element saved where inputs of matrices are kept in the type of their products."""
        return self.software.narrow_inputs * (1.0 - self.operand_bytes / self.element_bytes)

    @property
    def tokens(self) -> Number:
        """Tokens of one micro-batch on one device (before tensor parallelism)."""
        return self.micro_batch * self.seq_len / self.cp

    @property
    def micro_batches(self) -> Number:
        """Micro-batches one replica runs for one optimizer step."""
        return np.maximum(1.0, np.ceil(self.global_batch / (self.micro_batch * self.dp)))

    @property
    def flushed_micro_batches(self) -> Number:
        """Micro-batches that run through the pipeline before it is emptied."""
        return np.maximum(1.0, np.ceil(self.micro_batches / self.local_batches))

    @property
    def layers_per_stage(self) -> Number:
        """Layers of the mean pipeline stage."""
        return self.shape.layers / self.pp

    @property
    def stages(self) -> Stages:
        """Layers of the pipeline stages."""
        each = (self.counts.active - self.counts.outside_layers) / self.shape.layers
        head = head_in_layers(self.shape.vocab, self.shape.hidden, each)
        return divided(self.shape.layers, head, self.pp, self.interleave, self.software.balanced_stages)

    @property
    def replica_ranks(self) -> Number:
        """Ranks that hold the same dense weights: data times context parallel."""
        return self.dp * self.cp

    @property
    def expert_ranks(self) -> Number:
        """Ranks that hold the same experts."""
        return np.maximum(1.0, self.dp * self.cp * self.tp / (self.ep * self.etp))

    @property
    def dense_parameters_per_layer(self) -> Number:
        """Parameters of the mean layer without its routed experts."""
        counts = self.counts
        feed_forward = (
            counts.dense_layers * counts.mlp_per_dense_layer
            + counts.moe_layers * (counts.router_per_moe_layer + counts.shared_experts_per_layer)
        ) / counts.layers
        return counts.attention_per_layer + counts.norms_per_layer + counts.cross_attention_per_layer + feed_forward

    @property
    def encoder_blocks(self) -> Number:
        """Blocks of an encoder-decoder's encoder for each of its decoder."""
        return self.shape.encoder_layers / self.shape.layers

    @property
    def cross_attentions(self) -> Number:
        """Attentions to the encoder in each layer: 1 or 0."""
        return present(self.shape.encoder_layers)

    @property
    def stacked_parameters_per_layer(self) -> Number:
        """Parameters of the mean layer without its routed experts, with its share of an encoder."""
        return self.dense_parameters_per_layer + self.counts.encoder / self.counts.layers

    @property
    def outer_parameters(self) -> Number:
        """Parameters outside all layers: embeddings, head, outer norms."""
        return self.counts.outside_layers - self.counts.encoder

    @property
    def expert_parameters_per_layer(self) -> Number:
        """Parameters of the routed experts of the mean layer."""
        return self.counts.moe_layers * self.counts.experts * self.counts.expert / self.counts.layers

    @property
    def moe_share(self) -> Number:
        """Share of the layers that have routed experts."""
        return self.counts.moe_layers / self.counts.layers

    @property
    def ring(self) -> Number:
        """Devices around which keys and values travel; 1 where they do not."""
        return where(np.asarray(self.context_swap + self.context_gather) > 0, 1.0, self.cp)

    @property
    def attended(self) -> Number:
        """Tokens a token attends to, averaged over positions and layers."""
        return attended_tokens(self.shape, self.seq_len, self.document, causal=self.causal)

    @property
    def document_share(self) -> Number:
        """Share of attention that is left where it stops at the ends of documents."""
        if not any_true(self.document > 0):
            return 1.0
        return self.attended / attended_tokens(self.shape, self.seq_len, 0.0, causal=self.causal)

    @property
    def query_width(self) -> Number:
        """Width of all queries (and keys after expansion) of a layer."""
        return self.shape.attention_kind.query_width

    @property
    def value_width(self) -> Number:
        """Width of the attention output before its projection."""
        return self.shape.attention_kind.value_width

    @property
    def key_value_width(self) -> Number:
        """Width of the keys and values of a token that attention reads."""
        return self.shape.attention_kind.key_value_width
