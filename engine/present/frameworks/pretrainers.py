"""Files of programs that pretrain: arguments of Megatron-LM's pretrain_gpt.py, and a configuration of torchtitan.

Names as in Megatron Core 0.19 (training/arguments.py, transformer_config.py, model_parallel_config.py) and torchtitan
0.3.0 (config/configs.py, trainer.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import SimpleNamespace

from capacity_tui.engine.models import checkpointing
from capacity_tui.engine.models.transformer import ATTENTION_PARTS, Latent
from capacity_tui.engine.plan import EQUAL_STAGES
from capacity_tui.engine.plan.options import tool
from capacity_tui.engine.present.frameworks.exports import (
    command,
    exported,
    exported_arguments,
    exported_remarks,
    framework_names,
    limits,
    script,
)
from capacity_tui.engine.present.frameworks.job import Job, data_remarks, run_remarks
from capacity_tui.engine.present.parts import template
from capacity_tui.engine.printable import printable

MEGATRON_VERSION = "Megatron-LM with Megatron Core 0.19"
MEGATRON_FILE = "megatron.sh"
_CHUNKED = ("chunked", "fused")  # Losses that hold the logits of a part of the tokens at once
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
        *exported_arguments("megatron", job, **_values(job)),
        *_recompute(job),
        *_tokenizer(job),
        ("--mock-data",),
    )
    folder = "run it in the folder of pretrain_gpt.py, with NODE_RANK on every node"
    return script(
        [f"Written for {MEGATRON_VERSION}; {folder}."],
        list(_remarks(job)),
        _connections(job) + command(["torchrun"], arguments),
    )


def _connections(job: Job) -> str:
    """Return what pretrain_gpt.py insists on before Blackwell, so that collectives start in order."""
    split = job.tensor_parallel > 1 or job.context_parallel > 1
    return "export CUDA_DEVICE_MAX_CONNECTIONS=1\n\n" if split and not _by_fsdp(job) else ""


def _values(job: Job) -> dict[str, object]:
    """Return what its options say of the model, as whole numbers and as Megatron has it."""
    shape = job.shape
    sizes = {field.name: getattr(shape, field.name) for field in fields(shape)}
    dense, every = int(shape.first_dense_layers), int(shape.moe_every)
    is_latent = isinstance(shape.attention_kind, Latent)
    return {
        "sizes": SimpleNamespace(**{name: int(size) for name, size in sizes.items() if isinstance(size, int | float)}),
        "is_latent": is_latent,
        "is_grouped": not is_latent and bool(shape.kv_heads != shape.heads),
        "norms_heads": shape.qk_norm != "none" or is_latent,
        "sequence": int(job.training.seq_len),
        "longest": max(int(shape.max_context), int(job.training.seq_len)),
        "position_embedding": "learned_absolute" if shape.positions else "rope",
        "lacks_biases": not shape.biases & {"output", "mlp"},
        "biases_queries": "qkv" in shape.biases,
        "shared_size": int(shape.experts_shared * shape.shared_ffn),
        "mixture_layers": f"([0]*{dense}+[1]*{int(shape.layers) - dense})" if dense else every if every > 1 else None,
        "optimizer": _optimizer(job),
        "by_fsdp": _by_fsdp(job),
    }


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
    yield from run_remarks(job)
    yield "the data: --mock-data stands for --data-path"
    yield from data_remarks(job)
    yield from model_remarks(job)
    chosen = checkpointing(job.training.checkpointing)
    yield from exported_remarks(
        "megatron_limits",
        job,
        by_fsdp=_by_fsdp(job),
        recomputed=chosen,
        unknown_modules=", ".join(sorted(chosen.modules - _words("recompute_modules").keys())),
        has_equal_stages=EQUAL_STAGES.holds(job.layout),
    )


def model_remarks(job: Job) -> Iterator[str]:
    """Yield what these options do not say of the model."""
    shape = job.shape
    has_some = shape.biases & {"output", "mlp"} and not {"qkv", "output", "mlp"} <= shape.biases
    yield from exported_remarks(
        "megatron_model_limits", job, biases=", ".join(sorted(shape.biases)) if has_some else ""
    )
    titles = {name: kind.title for name, kind in ATTENTION_PARTS.items()} | {"vision": "vision"}
    for name, title in titles.items():
        if getattr(shape, name) is not None:
            yield f"{title}: not among these options, so this is another model"


TORCHTITAN_VERSION = "torchtitan 0.3.0"
TORCHTITAN_FILE = "torchtitan_config.py"


def torchtitan_config(job: Job) -> str:
    """Return a module with the run's configuration for ``torchtitan.train``; the model must be one of ``flavors``."""
    model, flavor = flavors()[job.model]
    constructors = framework_names()["torchtitan_constructors"]
    nodes = f" --nnodes {job.nodes} --rdzv_backend c10d --rdzv_endpoint HOST:29500" if job.nodes > 1 else ""
    launch = f"torchrun --nproc_per_node {job.per_node}{nodes} -m torchtitan.train"
    values = {
        "title": printable(job.model),
        "written_for": TORCHTITAN_VERSION,
        "launch": f"{launch} --module {TORCHTITAN_FILE.removesuffix('.py')} --config planned",
        "limits": limits(list(_torchtitan_remarks(job))),
        "model": model,
        "flavor": flavor,
        "assets": f"./assets/hf/{job.model.rpartition('/')[2]}",
        "in_float8": job.precision == "fp8",
        "compiles": job.training.compile,
        "is_chunked": job.training.loss in _CHUNKED,
        "learning_rate": job.training.learning_rate,
        "policy": _policy(job),
        "parts": {
            name: {"constructor": constructors[name], "options": options} for name, options in _parts(job).items()
        },
    }
    return template("torchtitan_config.py.jinja").render(values) + "\n"


def _parts(job: Job) -> Mapping[str, object]:
    staged = job.pipeline_parallel > 1
    return exported(
        "torchtitan",
        job,
        # With a pipeline, a local batch is all micro-batches of a step.
        local_batch=job.micro_batch * (job.accumulation if staged else 1),
        multiplied_in=_multiplied_in(job),
        sharded_copies=job.data_parallel // job.shards,
        is_staged=staged,
        layers_per_stage=-(-job.layers // (job.pipeline_parallel * job.interleave)),
    )


def _policy(job: Job) -> str:
    """Return the class of what is computed again in the backward pass; empty where nothing is."""
    recomputed = job.training.checkpointing
    return "" if recomputed == "none" else "FullAC" if recomputed == "full" else "SelectiveAC"


def flavors() -> Mapping[str, tuple[str, ...]]:
    """Return model and flavor by name on the model hub."""
    return tool("torchtitan").models


def _multiplied_in(job: Job) -> str:
    types = tool("torchtitan").words("training.mixed_precision_param")
    return types.get(job.precision, "bfloat16" if job.has_bf16 else "float32")


def _torchtitan_remarks(job: Job) -> Iterator[str]:
    named = job.training.checkpointing in {"none", "full", "selective-ops"}
    yield from run_remarks(job)
    yield "dataset: name your data"
    yield from data_remarks(job)
    yield from exported_remarks("torchtitan_limits", job, multiplied_in=_multiplied_in(job), names_checkpointing=named)
