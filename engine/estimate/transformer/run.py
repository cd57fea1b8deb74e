"""A transformer run reduced to numbers: what memory and time formulas read."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate.derivation import equation
from capacity_tui.engine.estimate.run import KernelRates, Numerics, RunData, RunLayout
from capacity_tui.engine.estimate.transformer.finetuning import Finetuning, Objective
from capacity_tui.engine.estimate.transformer.software import Software, Stages, divided, head_in_layers
from capacity_tui.engine.models.transformer import ParameterCounts, TransformerShape
from capacity_tui.engine.numeric import Number, any_true, present, where
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import FP32_BYTES


@dataclass(frozen=True, slots=True)
class Recompute:
    """What the backward pass computes again, as numbers from 0 to 1."""

    full_layers: Number = 0.0
    operations: Number = 0.0
    attention: Number = 0.0
    mlp: Number = 0.0
    experts: Number = 0.0
    router: Number = 0.0
    norm: Number = 0.0
    activation: Number = 0.0
    latent: Number = 0.0


@dataclass(frozen=True, slots=True)
class Stack:
    """Blocks of one kind: those of a model, or an encoder-decoder's decoder and its encoder."""

    ending: str  # what names of its kernels end with
    tokens: Number  # of one micro-batch on one device
    length: Number  # tokens of a sequence
    blocks: Number  # for each layer of the model
    dense: Number  # of them, those with one feed-forward
    crosses: Number  # attentions of a block to the other stack


DROPOUT_PASSES, RESIDUAL_MASKS = counted("dropout-passes"), counted("residual-masks")
SHARDED_GRADIENTS, SHARDED_PARAMETERS = 2, 3  # Stages of ZeRO that share gradients out, and parameters as well


@dataclass(frozen=True, slots=True)
class TransformerRun:
    """One training or fine-tuning step. Every number, nested ones too, may be an array; all broadcast together."""

    shape: TransformerShape  # sizes of the model
    counts: ParameterCounts  # its parameters by part
    cluster: Cluster
    numerics: Numerics  # bytes of its numbers and what the optimizer does with them; states as the mean of the layers
    layout: RunLayout  # how it is spread over the devices
    data: RunData  # what a step works on
    software: Software  # what the framework does
    kernels: KernelRates  # what the device's kernels reach
    recompute: Recompute  # activation checkpointing
    # what is trained beside a frozen base; by default everything is trained
    adapter: Finetuning = field(default_factory=Finetuning)
    objective: Objective = field(default_factory=Objective)  # what runs beside the training of the model

    @property
    def causal(self) -> bool:
        """Whether a token sees earlier tokens only."""
        return self.shape.is_decoder

    @property
    def dropout_passes(self) -> Number:
        """Passes over a tensor that dropout takes, each way; 0 without it."""
        given = self.data.dropout
        return DROPOUT_PASSES * (self.shape.is_encoder if given is None else present(given))

    @property
    def dropout_masks(self) -> Number:
        """Masks of dropped residuals that a layer keeps; models with biases and no gate are trained with dropout."""
        given = self.data.dropout
        if given is None:
            return RESIDUAL_MASKS * ("output" in self.shape.biases and not self.shape.gated)
        return RESIDUAL_MASKS * present(given)

    @property
    def random_numbers(self) -> Number:
        """Random numbers that dropout takes for a token in a layer: of residuals, and of scores that are stored."""
        given = self.data.dropout
        drops = present(given) if given is not None else present(self.shape.positions) * (self.shape.vision is None)
        scores = self.stored_scores * self.score_matrices * self.shape.attention_kind.attending_share
        return drops * (RESIDUAL_MASKS * self.shape.hidden * self.blocks + scores)

    @property
    def stored_scores(self) -> Number:
        """Scores that a layer which attends stores for a token on a device."""
        return (1.0 - self.fused_attention) * self.shape.heads * self.data.seq_len / self.layout.tp

    @property
    def logit_tokens(self) -> Number:
        """Tokens of a micro-batch on the device whose logits over the vocabulary the loss reads."""
        return self.target_tokens * np.minimum(1.0, self.data.predicted / self.target)

    @property
    def fused_attention(self) -> Number:
        """1 where attention never stores its scores."""
        return self.kernels.attention.fused

    @property
    def trained_share(self) -> Number:
        """Parameters with gradients over all, in the layers."""
        trainable = self.adapter.trainable + self.adapter.trainable_experts
        return where(self.adapter.frozen_bytes > 0, trainable / self.counts.inside_layers, 1.0)

    @property
    def trained_dense(self) -> Number:
        """The same of what lies beside routed experts."""
        dense = self.counts.inside_layers - self.counts.routed
        return where(self.adapter.frozen_bytes > 0, self.adapter.trainable / dense, 1.0)

    @property
    def trained_experts(self) -> Number:
        """The same of routed experts."""
        routed = np.maximum(self.counts.routed, 1.0)
        return where(self.adapter.frozen_bytes > 0, self.adapter.trainable_experts / routed, 1.0)

    @property
    def trained_ends(self) -> Number:
        """Parameters with gradients over all, in embedding and head."""
        return where(self.adapter.frozen_bytes > 0, self.copied_ends, 1.0)

    @property
    def trained_outer(self) -> Number:
        """Parameters with gradients over all, outside all layers."""
        return self.adapter.trained_outside(self.trained_ends, self.outer_parameters, self.shape.tower_weights)

    @property
    def copied_ends(self) -> Number:
        """Share of embedding and head that are trained in a copy beside the frozen ones."""
        return where(self.adapter.frozen_bytes > 0, self.adapter.embeddings_trained, 0.0)

    @property
    def trained_of_all(self) -> Number:
        """Parameters with gradients over all of the model."""
        counts = self.counts
        inside, outside = counts.inside_layers, counts.total - counts.inside_layers
        return (self.trained_share * inside + self.trained_outer * outside) / counts.total

    @property
    def stored_bytes(self) -> Number:
        """Bytes of a base parameter in the layers, between uses."""
        if not any_true(self.adapter.frozen_bytes <= 0):
            return self.adapter.frozen_bytes  # the very number, so that its derivation is found
        return where(self.adapter.frozen_bytes > 0, self.adapter.frozen_bytes, self.numerics.weight_bytes)

    @property
    def embedding_and_head_bytes(self) -> Number:
        """Bytes of a base parameter outside the layers, between uses."""
        kept = where(self._unsharded * self.adapter.fp32_ends > 0, FP32_BYTES, self.adapter.frozen_end_bytes)
        return where(self.adapter.frozen_bytes > 0, kept, self.numerics.weight_bytes)

    @property
    def stream_bytes(self) -> Number:
        """Bytes of an element of what layers pass on; norms of a base that is sharded stay as they are."""
        return where(self._unsharded * self.adapter.fp32_norms > 0, FP32_BYTES, self.numerics.element_bytes)

    @property
    def _unsharded(self) -> Number:
        return where(self.layout.zero < SHARDED_PARAMETERS, 1.0, 0.0)

    @property
    def autocast(self) -> Number:
        """1 where operands are cast as they are used, from parameters in a wider type that no gathering casts."""
        return where((self.numerics.weight_bytes > self.numerics.element_bytes) & (self.layout.zero < 3), 1.0, 0.0)

    @property
    def split(self) -> Number:
        """Ranks that share what lies between tensor-parallel products."""
        return where(self.layout.sequence_parallel > 0, self.layout.tp, 1.0)

    @property
    def column_input(self) -> Number:
        """Elements a token keeps of the input of a product split by columns: whole where it is not gathered again."""
        kept = self.software.gathered_inputs
        return self.shape.hidden * (kept + (1.0 - kept) / self.split)

    @property
    def operand_bytes(self) -> Number:
        """Bytes of an operand of a linear layer."""
        return where(self.kernels.casts > 0, self.numerics.element_bytes / 2.0, self.numerics.element_bytes)

    @property
    def cast_bytes(self) -> Number:
        """Bytes of a weight as its products take it, where it is cast to a narrower type; 0 where it is not."""
        return where(self.kernels.casts > 0, self.operand_bytes, 0.0)

    @property
    def narrowed(self) -> Number:
        """Share of an element saved where inputs of matrices are kept in the type of their products."""
        return self.software.narrow_inputs * (1.0 - self.operand_bytes / self.numerics.element_bytes)

    @property
    def tokens(self) -> Number:
        """Tokens of one micro-batch on one device (before tensor parallelism)."""
        return self.data.micro_batch * self.data.sequences * self.data.seq_len / self.layout.cp

    @property
    def target(self) -> Number:
        """Tokens of a sequence that pass the decoder."""
        given = self.data.target
        return where(given > 0, given, self.data.seq_len) if any_true(given > 0) else self.data.seq_len

    @property
    def target_share(self) -> Number:
        """Tokens that pass the decoder for each of the sequence: fewer or more than one in an encoder-decoder."""
        return self.target / self.data.seq_len

    @property
    def target_tokens(self) -> Number:
        """Tokens of one micro-batch on one device that pass the decoder."""
        return self.tokens * self.target_share

    @property
    def micro_batches(self) -> Number:
        """Micro-batches one replica runs for one optimizer step."""
        return np.maximum(1.0, np.ceil(self.data.global_batch / (self.data.micro_batch * self.layout.dp)))

    @property
    def flushed_micro_batches(self) -> Number:
        """Micro-batches that run through the pipeline before it is emptied."""
        return np.maximum(1.0, np.ceil(self.micro_batches / self.data.local_batches))

    @property
    def layers_per_stage(self) -> Number:
        """Layers of the mean pipeline stage."""
        return self.shape.layers / self.layout.pp

    @property
    def accumulates_whole(self) -> Number:
        """1 where sharded gradients are reduced in the last micro-batch of a step alone."""
        sharded = (np.asarray(self.layout.zero) >= SHARDED_GRADIENTS) & np.asarray(self.layout.shard > 1)
        return where(sharded & np.asarray(self.micro_batches > 1), self.software.whole_accumulation, 0.0)

    @property
    def stages(self) -> Stages:
        """Layers of the pipeline stages."""
        parameters = (self.counts.active - self.counts.outside_layers) / self.shape.layers
        head = head_in_layers(self.shape.vocab, self.shape.hidden, parameters)
        return divided(self.shape.layers, head, self.layout.pp, self.layout.interleave, self.software.balanced_stages)

    @property
    def replica_ranks(self) -> Number:
        """Ranks that hold the same dense weights: data times context parallel."""
        return self.layout.dp * self.layout.cp

    @property
    def expert_ranks(self) -> Number:
        """Ranks that hold the same experts."""
        return np.maximum(1.0, self.layout.dp * self.layout.cp * self.layout.tp / (self.layout.ep * self.layout.etp))

    @property
    def encoder_blocks(self) -> Number:
        """Blocks of an encoder-decoder's encoder for each of its decoder."""
        return self.shape.encoder_layers / self.shape.layers

    @property
    def cross_attentions(self) -> Number:
        """Attentions to the encoder in each layer: 1 or 0."""
        return present(self.shape.encoder_layers)

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """Stacks of blocks that have tokens of their own."""
        plain = 1.0 - self.shape.moe_share
        whole = Stack("", self.target_tokens, self.target, 1.0, plain, self.cross_attentions)
        if not any_true(self.encoder_blocks > 0):
            return (whole,)
        blocks = self.encoder_blocks
        return whole, Stack(" of the encoder", self.tokens, self.data.seq_len, blocks, blocks, 0.0)

    @property
    def blocks(self) -> Number:
        """Blocks that a token passes in the mean layer: its share of the decoder's, and those of an encoder."""
        return self.target_share + self.encoder_blocks

    @property
    def attentions(self) -> Number:
        """Attentions that it passes in the mean layer."""
        return self.blocks + self.cross_attentions * self.target_share

    @property
    def passed_matrices(self) -> Number:
        """Matrices of attention that it passes, over those of the mean layer."""
        return self.attentions / (1.0 + self.encoder_blocks + self.cross_attentions)

    @property
    def score_matrices(self) -> Number:
        """Matrices of scores of the mean layer, over one of the sequence by itself."""
        share = self.target_share
        return share * share + self.encoder_blocks + self.cross_attentions * share

    @property
    def stacked_parameters_per_layer(self) -> Number:
        """Parameters of the mean layer without its routed experts, with its share of an encoder."""
        return self.counts.dense_per_layer + self.counts.encoder / self.counts.layers

    @property
    def outer_parameters(self) -> Number:
        """Parameters outside all layers: embeddings, head, outer norms."""
        return self.counts.outside_layers - self.counts.encoder

    @property
    def expert_parameters_per_layer(self) -> Number:
        """Parameters of the routed experts of the mean layer."""
        return self.counts.moe_layers * self.counts.experts * self.counts.expert / self.counts.layers

    @property
    def ring(self) -> Number:
        """Devices around which keys and values travel; 1 where they do not."""
        return where(np.asarray(self.layout.context_swap + self.layout.context_gather) > 0, 1.0, self.layout.cp)

    @property
    def attended(self) -> Number:
        """Tokens a token attends to, averaged over positions and layers."""
        return attended_tokens(self.shape, self.data.seq_len, self.data.document, causal=self.causal)

    @property
    def document_share(self) -> Number:
        """Share of attention that is left where it stops at the ends of documents."""
        if not any_true(self.data.document > 0):
            return 1.0
        return self.attended / attended_tokens(self.shape, self.data.seq_len, 0.0, causal=self.causal)

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


@equation
def attended_in_documents(document: Number, seq: Number, window: Number) -> Number:
    """Tokens that a token attends to before itself in its own document, averaged over positions."""
    left = -np.expm1(-window / document)
    return document / seq * (window + (seq - window - document) * left)


def attended_tokens(shape: TransformerShape, seq: Number, document: Number, *, causal: bool) -> Number:
    """Return the tokens a token attends to, averaged over positions and layers.

    Args:
        seq: tokens of a sequence.
        document: mean tokens of a document, 0 where attention spans the sequence.
        causal: whether a token attends to those before it alone.
    """
    kind = shape.attention_kind
    window = np.minimum(kind.window, seq)
    full = seq / 2.0 if causal else seq
    windowed = window - window * window / (2.0 * seq) if causal else window
    # A token attends at least to itself, which keeps models none of whose layers attend from dividing by nothing.
    whole = np.maximum(kind.mean_attended(full, windowed), 1.0)
    if not any_true(document > 0):
        return whole
    length = where(document > 0, document, seq)
    full, windowed = (attended_in_documents(length, seq, limit) for limit in (seq, window))
    packed = np.maximum(kind.mean_attended(full, windowed) * (1.0 if causal else 2.0), 1.0)
    return where(document > 0, np.minimum(packed, seq), whole)


RECOMPUTED_PRODUCTS = counted("recomputed-products")


def recomputed_share(run: TransformerRun, module: Number, *, product: bool) -> Number:
    """Share of a module's forward pass that runs a second time."""
    operations = run.recompute.operations * (RECOMPUTED_PRODUCTS if product else 1.0)
    rest = np.maximum(module, operations)
    return run.recompute.full_layers + (1.0 - run.recompute.full_layers) * rest
