"""Low-rank adapters as tools for fine-tuning are told of them. Matrices are named as in checkpoints of Llama."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capacity_tui.engine.plan.imports import tool
from capacity_tui.engine.present.frameworks import trainer
from capacity_tui.engine.present.frameworks.job import Job, kernel_remarks, layout_remarks
from capacity_tui.engine.present.frameworks.text import as_yaml

LEARNING_RATE = 2e-4
"""Written where a plan gives none: usual for adapters (Hu et al. 2021, Dettmers et al. 2023)."""

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")

FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")

EMBEDDING_AND_HEAD = ("embed_tokens", "lm_head")

_NAMED: Mapping[str, tuple[str, ...]] = {
    "all": (),
    "attention": ATTENTION,
    "mlp": FEED_FORWARD,
    "query+value": ("q_proj", "v_proj"),
}

_FOUR_BITS = ("nf4", "fp4")

_EIGHT_BITS = ("int8",)

_ALPHA_OVER_RANK = 2


@dataclass(frozen=True, slots=True)
class LowRank:
    """The adapters of a job.

    Attributes:
        rank: their rank.
        targets: the plan's word for the matrices that have one.
        names: the names of these matrices; none for all linear layers.
        is_weighted: whether directions and lengths are trained apart (DoRA).
        whole: what is trained as a whole beside them.
        base: format of the frozen base; empty where it has the type of the run.
    """

    rank: int
    targets: str
    names: tuple[str, ...]
    is_weighted: bool
    whole: tuple[str, ...]
    base: str

    @property
    def alpha(self) -> int:
        """Factor of what they add, times their rank."""
        return _ALPHA_OVER_RANK * self.rank

    @property
    def bits(self) -> int | None:
        """Bits of a weight of the base as bitsandbytes packs it; None where it does not."""
        return 4 if self.base in _FOUR_BITS else 8 if self.base in _EIGHT_BITS else None


def low_rank(job: Job) -> LowRank | None:
    """Return the adapters of a job; None where all weights are trained."""
    training, adapter = job.training, job.training.adapter
    if adapter is None:
        return None
    base = training.quantization or (_FOUR_BITS[0] if adapter.kind == "qlora" else "")
    return LowRank(
        rank=int(adapter.rank),
        targets=adapter.targets,
        names=_NAMED[adapter.targets],
        is_weighted=adapter.kind == "dora",
        whole=EMBEDDING_AND_HEAD if adapter.train_embeddings else (),
        base=base,
    )


def learning_rate(job: Job) -> float:
    """Return the plan's learning rate, or a usual one."""
    given = job.training.learning_rate
    return LEARNING_RATE if given is None else float(given)


def adapter_remarks(job: Job, adapter: LowRank) -> Iterator[str]:
    """Yield what the plan does not say of adapters and a tool must know, and what no tool takes."""
    if job.training.learning_rate is None:
        yield f"the plan gives no learning rate: {LEARNING_RATE:g} is written, as is usual for adapters"
    yield f"the plan gives no alpha and no dropout: {adapter.alpha} (twice the rank) and 0 are written"
    if adapter.names:
        yield f"adapters on {', '.join(adapter.names)}: so checkpoints of Llama, Qwen and Mistral name them"
    if adapter.base and adapter.bits is None:
        yield f"frozen base in {adapter.base}: the checkpoint must be in this format"


VERSION = "Axolotl 0.19"

FILE = "axolotl.yaml"

_LIGER = "axolotl.integrations.liger.LigerPlugin"


def axolotl_config(job: Job, adapter: LowRank) -> str:
    """Return the file for ``axolotl train``."""
    training = job.training
    data: dict[str, object] = {
        "base_model": job.model if job.on_hub else "MODEL",
        **_adapter(adapter),
        "datasets": [{"path": "data.jsonl", "ds_type": "json", "type": "chat_template"}],
        "output_dir": "output",
        "sequence_len": int(training.seq_len),
        "sample_packing": _packs(job),
        "pad_to_sequence_len": True,
        "micro_batch_size": job.micro_batch,
        "gradient_accumulation_steps": job.accumulation,
        "learning_rate": learning_rate(job),
        "bf16": job.precision not in {"fp32", "tf32", "fp16"},
        "fp16": job.precision == "fp16",
        "tf32": job.precision == "tf32",
        "attn_implementation": trainer.attention_kernel(job),
        "gradient_checkpointing": _checkpoints(job),
        "torch_compile": training.compile,
    }
    if training.optimizer in trainer.optimizers():
        data["optimizer"] = trainer.optimizers()[training.optimizer]
    if job.steps is not None:
        data["max_steps"] = job.steps
    if job.save_steps is not None:
        data |= {"save_strategy": "steps", "save_steps": job.save_steps}
    if training.activation_offload != "none" and _checkpoints(job):
        data["activation_offloading"] = True
    if training.loss == "fused":
        data |= {"plugins": [_LIGER], "liger_fused_linear_cross_entropy": True}
    return as_yaml(_heading(job), list(_remarks(job, adapter)), data | trainer.loader(job) | _spread(job))


def _packs(job: Job) -> bool:
    return job.context_parallel == 1 or job.micro_batch == 1


def _checkpoints(job: Job) -> bool:
    """Return whether layers are recomputed by the tool itself; FSDP does so by its own switch."""
    return trainer.recomputes_layers(job) and trainer.backend(job) != "FSDP"


def _heading(job: Job) -> Iterator[str]:
    yield f"Written for {VERSION}."
    spread = f" --launcher torchrun -- --nproc_per_node={job.per_node}" if job.devices > 1 else ""
    nodes = f" --nnodes={job.nodes} --rdzv_backend=c10d --rdzv_endpoint=HOST:PORT" if job.nodes > 1 else ""
    yield f"axolotl train {FILE}{spread}{nodes}"


def _adapter(adapter: LowRank) -> dict[str, object]:
    data: dict[str, object] = {
        "adapter": "qlora" if adapter.bits == 4 else "lora",
        "load_in_4bit": adapter.bits == 4,
        "load_in_8bit": adapter.bits == 8,
        "lora_r": adapter.rank,
        "lora_alpha": adapter.alpha,
        "lora_dropout": 0.0,
    }
    if adapter.names:
        data["lora_target_modules"] = list(adapter.names)
    else:
        data["lora_target_linear"] = True
    if adapter.is_weighted:
        data["peft_use_dora"] = True
    if adapter.whole:
        data["lora_modules_to_save"] = list(adapter.whole)
    return data


def _spread(job: Job) -> dict[str, object]:
    chosen = trainer.backend(job)
    if chosen == "DEEPSPEED":
        return {"deepspeed": trainer.DEEPSPEED_FILE}
    if chosen != "FSDP":
        return {}
    shards = trainer.shards(job)
    sizes = {
        "dp_shard_size": shards,
        "dp_replicate_size": job.data_parallel // shards,
        "tensor_parallel_size": job.tensor_parallel,
        "context_parallel_size": job.context_parallel,
    }
    names = {
        "offload_params": "fsdp_offload_params",
        "auto_wrap_policy": "fsdp_auto_wrap_policy",
        "reshard_after_forward": "fsdp_reshard_after_forward",
        "activation_checkpointing": "fsdp_activation_checkpointing",
        "state_dict_type": "fsdp_state_dict_type",
        "cpu_ram_efficient_loading": "fsdp_cpu_ram_efficient_loading",
    }
    section = trainer.fsdp_section(job)
    own = {name: section[key] for name, key in names.items()}
    return {"fsdp_version": section["fsdp_version"], "fsdp_config": own, **sizes}


def _remarks(job: Job, adapter: LowRank) -> Iterator[str]:
    yield from layout_remarks(job)
    yield from adapter_remarks(job, adapter)
    yield from kernel_remarks(job)
    yield from trainer.loop_remarks(job)
    yield from trainer.layout_limits(job)
    if not _packs(job):
        yield "packing: with context parallel Axolotl packs at a micro batch of 1 alone"
    if job.training.activation_offload != "none" and not _checkpoints(job):
        yield "kept activations in host memory: Axolotl does that with gradient checkpointing alone"
    yield "datasets: name your data and their form"
    if not job.on_hub:
        yield "base_model: the folder of the checkpoint"
    if job.training.document_tokens is None:
        yield "packed documents: Axolotl stops attention at their ends, the plan counts it over the whole sequence"


LLAMAFACTORY_VERSION = "LLaMA-Factory 0.9.5"

LLAMAFACTORY_FILE = "llamafactory.yaml"


def llamafactory_config(job: Job, adapter: LowRank) -> str:
    """Return the file for ``llamafactory-cli train``."""
    training = job.training
    loop = trainer.settings(job)
    recomputes = loop.pop("gradient_checkpointing")
    fused = loop.pop("use_liger_kernel", False)
    data: dict[str, object] = {
        "model_name_or_path": job.model if job.on_hub else "MODEL",
        "stage": "sft",
        "do_train": True,
        "finetuning_type": "lora",
        "lora_rank": adapter.rank,
        "lora_alpha": adapter.alpha,
        "lora_dropout": 0.0,
        "lora_target": ",".join(adapter.names) or "all",
        "use_dora": adapter.is_weighted,
        **_base(adapter),
        "dataset": "DATA",
        "cutoff_len": int(training.seq_len),
        "packing": True,
        "neat_packing": training.document_tokens is not None,
        **loop,
        "learning_rate": learning_rate(job),
        "flash_attn": _attention(job),
        "disable_gradient_checkpointing": not recomputes,
        "enable_liger_kernel": fused,
    }
    if adapter.whole:
        data["additional_target"] = ",".join(adapter.whole)
    if trainer.backend(job) == "DEEPSPEED":
        data["deepspeed"] = trainer.DEEPSPEED_FILE
    return as_yaml(_llamafactory_heading(job), list(_llamafactory_remarks(job, adapter)), data)


def _llamafactory_heading(job: Job) -> Iterator[str]:
    yield f"Written for {LLAMAFACTORY_VERSION}."
    if trainer.backend(job) == "FSDP":
        yield (
            f"accelerate launch --config_file {trainer.ACCELERATE_FILE} src/train.py {LLAMAFACTORY_FILE}, "
            "in a checkout of its own"
        )
        return
    nodes = f" NNODES={job.nodes} NODE_RANK=N MASTER_ADDR=HOST" if job.nodes > 1 else ""
    spread = f"FORCE_TORCHRUN=1 NPROC_PER_NODE={job.per_node}{nodes} " if job.devices > 1 else ""
    yield f"{spread}llamafactory-cli train {LLAMAFACTORY_FILE}"


def _attention(job: Job) -> str:
    return "sdpa" if job.on_cpu else tool("llamafactory").words("flash_attn").get(job.attention, "sdpa")


def _base(adapter: LowRank) -> dict[str, object]:
    if adapter.bits is None:
        return {}
    packed: dict[str, object] = {"quantization_bit": adapter.bits, "quantization_method": "bnb"}
    return packed | ({"quantization_type": adapter.base, "double_quantization": True} if adapter.bits == 4 else {})


def _llamafactory_remarks(job: Job, adapter: LowRank) -> Iterator[str]:
    yield from layout_remarks(job)
    yield from adapter_remarks(job, adapter)
    yield from kernel_remarks(job)
    yield from trainer.loop_remarks(job)
    yield from trainer.layout_limits(job)
    yield "dataset: name your data as dataset_info.json does; template: the tokenizer's own is taken"
    if not job.on_hub:
        yield "model_name_or_path: the folder of the checkpoint"
    if job.training.activation_offload != "none":
        yield "kept activations in host memory: LLaMA-Factory has no switch for it"
