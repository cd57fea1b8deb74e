"""Arguments of Megatron-LM's pretrain_gpt.py.

Names as in Megatron Core 0.19 (training/arguments.py, transformer_config.py, model_parallel_config.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from capacity_tui.engine.models import checkpointing
from capacity_tui.engine.models.transformer import ATTENTION_PARTS, Latent, TransformerShape
from capacity_tui.engine.plan import EQUAL_STAGES
from capacity_tui.engine.plan.imports import tool
from capacity_tui.engine.present.frameworks.exports import command, script
from capacity_tui.engine.present.frameworks.job import (
    Job,
    data_remarks,
    kernel_remarks,
    layout_remarks,
    length_remarks,
    rate_remarks,
    software_remarks,
)

VERSION = "Megatron-LM with Megatron Core 0.19"
FILE = "megatron.sh"
Arguments = Iterator[tuple[str, ...]]
_SHARDED_BY_FSDP = ("adam", "sgd")
_FSDP_STAGES = (2, 3)  # Stages of sharding that its own FSDP does


def megatron_script(job: Job) -> str:
    """Return a script that starts the run on one node; the same one runs on every node."""
    launch: list[tuple[str, ...]] = [
        ("--nproc_per_node", str(job.per_node)),
        ("--nnodes", str(job.nodes)),
        ("--node_rank", '"${NODE_RANK:-0}"'),
        ("--master_addr", '"${MASTER_ADDR:-localhost}"'),
        ("--master_port", '"${MASTER_PORT:-6000}"'),
        ("pretrain_gpt.py",),
    ]
    arguments = (
        *launch,
        *model_arguments(job),
        *_batch(job),
        *_parallelism(job),
        *_sharding(job),
        *_numbers(job),
        *_recompute(job),
        *_tokenizer(job),
        ("--mock-data",),
    )
    heading = [f"Written for {VERSION}; run it in the folder of pretrain_gpt.py, with NODE_RANK on every node."]
    return script(heading, list(_remarks(job)), _connections(job) + command(["torchrun"], arguments))


def _connections(job: Job) -> str:
    """Return what pretrain_gpt.py insists on before Blackwell, so that collectives start in order."""
    split = job.tensor_parallel > 1 or job.context_parallel > 1
    return "export CUDA_DEVICE_MAX_CONNECTIONS=1\n\n" if split and not _by_fsdp(job) else ""


def _batch(job: Job) -> Arguments:
    yield "--micro-batch-size", str(job.micro_batch)
    yield "--global-batch-size", str(job.global_batch)
    yield "--train-iters", '"${TRAIN_ITERS:?number of steps}"' if job.steps is None else str(job.steps)
    rate = job.training.learning_rate
    yield "--lr", '"${LEARNING_RATE:?learning rate}"' if rate is None else str(rate)
    yield "--optimizer", _optimizer(job)
    if job.save_steps is not None:
        yield "--save", "checkpoints"
        yield "--save-interval", str(job.save_steps)
    if job.loader_workers is not None:
        yield "--num-workers", str(job.loader_workers)


def _parallelism(job: Job) -> Arguments:
    yield "--tensor-model-parallel-size", str(job.tensor_parallel)
    yield "--pipeline-model-parallel-size", str(job.pipeline_parallel)
    yield "--context-parallel-size", str(job.context_parallel)
    if job.context_parallel > 1:
        yield "--cp-comm-type", _words("cp_comm_type")[job.parallel.context]
    if job.shape.experts:
        yield "--expert-model-parallel-size", str(job.expert_parallel)
        yield "--expert-tensor-parallel-size", str(job.parallel.etp or 1)
    if job.interleave > 1 and job.pipeline_parallel > 1:
        yield "--num-virtual-stages-per-pipeline-rank", str(job.interleave)
    if job.parallel.sequence_parallel and job.tensor_parallel > 1:
        yield ("--sequence-parallel",)


def _sharding(job: Job) -> Arguments:
    if job.zero >= 1:
        yield ("--use-distributed-optimizer",)
        yield ("--overlap-grad-reduce",)
        yield ("--overlap-param-gather",)
    if _by_fsdp(job):
        yield ("--use-megatron-fsdp",)
        yield "--data-parallel-sharding-strategy", _words("data_parallel_sharding_strategy")[job.zero]
        yield "--ckpt-format", "fsdp_dtensor"
    if job.parallel.offload in {"optimizer", "parameters"}:
        yield ("--use-precision-aware-optimizer",)
        yield ("--optimizer-cpu-offload",)


def _numbers(job: Job) -> Arguments:
    training = job.training
    if job.precision in {"bf16", "fp8", "fp4"}:
        yield ("--bf16",)
    if job.precision == "fp16":
        yield ("--fp16",)
    if job.precision == "fp8":
        yield "--fp8-format", "hybrid"
    if job.precision == "fp4":
        yield "--fp4-format", "e2m1"
    if training.gradients == "bf16":
        yield ("--grad-reduce-in-bf16",)
    yield "--attention-backend", _words("attention_backend").get(job.attention, "auto")


def _recompute(job: Job) -> Arguments:
    chosen = checkpointing(job.training.checkpointing)
    if chosen.full_layers == 1:
        yield "--recompute-granularity", "full"
        yield "--recompute-method", "uniform"
        yield "--recompute-num-layers", "1"
    elif chosen.full_layers > 0:
        stage = job.layers / (job.pipeline_parallel * job.interleave)
        yield "--recompute-granularity", "full"
        yield "--recompute-method", "block"
        yield "--recompute-num-layers", str(max(1, round(stage * chosen.full_layers)))
    elif chosen.modules or chosen.operations:
        known = _words("recompute_modules")
        modules = sorted(known[name] for name in chosen.modules if name in known) or ["core_attn"]
        yield "--recompute-granularity", "selective"
        yield "--recompute-modules", *modules


def _tokenizer(job: Job) -> Arguments:
    if job.on_hub:
        yield "--tokenizer-type", "HuggingFaceTokenizer"
        yield "--tokenizer-model", job.model
    else:
        yield "--tokenizer-type", "NullTokenizer"
    yield "--vocab-size", str(int(job.shape.vocab))


def _optimizer(job: Job) -> str:
    return _words("optimizer").get(job.training.optimizer, "adam")


def _words(option: str) -> Mapping[object, str]:
    """Return the words of an option by what they mean in a plan."""
    return tool("megatron").words(option)


def _by_fsdp(job: Job) -> bool:
    return job.zero in _FSDP_STAGES and _optimizer(job) in _SHARDED_BY_FSDP


def _remarks(job: Job) -> Iterator[str]:
    yield from software_remarks(job)
    yield from layout_remarks(job)
    yield from length_remarks(job)
    yield from rate_remarks(job)
    yield from kernel_remarks(job)
    yield "the data: --mock-data stands for --data-path"
    yield from data_remarks(job)
    yield from model_remarks(job)
    training, parallel = job.training, job.parallel
    if job.framework == "nemo":
        yield "NeMo and Megatron-Bridge take the same names as fields of their configuration, not this script"
    if training.optimizer not in _words("optimizer"):
        yield f"the optimizer {training.optimizer}: adam is written"
    if job.zero in _FSDP_STAGES and not _by_fsdp(job):
        yield f"ZeRO stage {job.zero} with {training.optimizer}: Megatron shards only the optimizer's states"
    if 1 < job.shards < job.data_parallel:
        yield f"sharding groups of {job.shards} replicas: set --num-distributed-optimizer-instances"
    if parallel.offload == "parameters":
        yield "offload of parameters: Megatron moves only the optimizer's states"
    if parallel.offload == "activations":
        yield "offload of activations: see --cpu-offloading-num-layers, which rules out pipelines and recomputation"
    if training.master_weights == "none":
        yield "Megatron keeps fp32 master weights; the plan has none"
    if training.adapter is not None:
        yield "adapters: pretrain_gpt.py trains all weights"
    if training.compile:
        yield "compile: Megatron fuses by Transformer Engine instead"
    chosen = checkpointing(training.checkpointing)
    if chosen.operations:
        yield "checkpointing selective-ops: the core of attention is written"
    unknown = chosen.modules - _words("recompute_modules").keys()
    if unknown:
        yield f"checkpointing of {', '.join(sorted(unknown))}: Megatron has no such module"
    if not EQUAL_STAGES.holds(job.layout):
        yield "unequal stages: see --pipeline-model-parallel-layout"


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
        yield f"biases on {', '.join(sorted(shape.biases))} only: Megatron puts them on all matrices"
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
