"""The shape of a model as arguments of Megatron-LM."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.models.transformer import ATTENTION_PARTS, Latent, TransformerShape
from capacity_tui.engine.present.frameworks.job import Job

Arguments = Iterator[tuple[str, ...]]


def model_arguments(job: Job) -> Arguments:
    """Yield the options of a decoder's sizes."""
    shape = job.shape
    yield "--num-layers", str(int(shape.layers))
    yield "--hidden-size", str(int(shape.hidden))
    yield "--ffn-hidden-size", str(int(shape.ffn))
    yield "--num-attention-heads", str(int(shape.heads))
    yield from _attention(shape)
    yield "--seq-length", str(int(job.training.seq_len))
    yield "--max-position-embeddings", str(max(int(shape.max_context), int(job.training.seq_len)))
    yield "--position-embedding-type", "learned_absolute" if shape.positions else "rope"
    yield "--normalization", shape.norm
    if shape.gated:
        yield ("--swiglu",)
    if not shape.tied_embeddings:
        yield ("--untie-embeddings-and-output-weights",)
    if not shape.biases & {"output", "mlp"}:
        yield ("--disable-bias-linear",)
        if "qkv" in shape.biases:
            yield ("--add-qkv-bias",)
    if shape.experts:
        yield from _experts(shape)


def model_remarks(job: Job) -> Iterator[str]:
    """Yield what these options do not say of the model."""
    shape = job.shape
    if not shape.positions:
        yield "--rotary-base, its scaling and --norm-epsilon: as the model's configuration says"
    if shape.gated:
        yield "--swiglu takes the gate for SiLU"
    if shape.qk_norm == "full":
        yield "--qk-layernorm norms each head; this model norms all heads together"
    if shape.biases & {"output", "mlp"} and not {"qkv", "output", "mlp"} <= shape.biases:
        yield f"biases on {', '.join(sorted(shape.biases))} alone: Megatron puts them on all matrices"
    if shape.sliding_window:
        yield f"a sliding window of {int(shape.sliding_window)} tokens: see --window-size and --window-attn-skip-freq"
    if shape.attention_sinks:
        yield "attention sinks: see --softmax-type"
    titles = {name: kind.title for name, kind in ATTENTION_PARTS.items()} | {"vision": "vision"}
    for name, title in titles.items():
        if getattr(shape, name) is not None:
            yield f"{title}: not among these options, so this is another model"


def _attention(shape: TransformerShape) -> Arguments:
    latent = isinstance(shape.attention_kind, Latent)
    if latent:
        yield ("--multi-latent-attention",)
        if shape.q_lora_rank:
            yield "--q-lora-rank", str(int(shape.q_lora_rank))
        yield "--kv-lora-rank", str(int(shape.kv_lora_rank))
        yield "--qk-head-dim", str(int(shape.qk_nope_head_dim))
        yield "--qk-pos-emb-head-dim", str(int(shape.qk_rope_head_dim))
        yield "--v-head-dim", str(int(shape.v_head_dim))
    else:
        yield "--kv-channels", str(int(shape.head_dim))
        if shape.kv_heads != shape.heads:
            yield ("--group-query-attention",)
            yield "--num-query-groups", str(int(shape.kv_heads))
    if shape.qk_norm != "none" or latent:
        yield ("--qk-layernorm",)


def _experts(shape: TransformerShape) -> Arguments:
    yield "--num-experts", str(int(shape.experts))
    yield "--moe-router-topk", str(int(shape.experts_active))
    yield "--moe-ffn-hidden-size", str(int(shape.moe_ffn))
    if shape.experts_shared:
        yield "--moe-shared-expert-intermediate-size", str(int(shape.experts_shared * shape.shared_ffn))
    dense, every = int(shape.first_dense_layers), int(shape.moe_every)
    if dense:
        yield "--moe-layer-freq", f"([0]*{dense}+[1]*{int(shape.layers) - dense})"
    elif every > 1:
        yield "--moe-layer-freq", str(every)
    yield ("--moe-grouped-gemm",)
    yield "--moe-token-dispatcher-type", "alltoall"
