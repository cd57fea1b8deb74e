"""Axolotl's YAML. Names as in version 0.19 (utils/schemas/config.py)."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.present.frameworks import accelerate, deepspeed, trainer
from capacity_tui.engine.present.frameworks.adapters.low_rank import LowRank, adapter_remarks, learning_rate
from capacity_tui.engine.present.frameworks.job import Job, kernel_remarks, layout_remarks
from capacity_tui.engine.present.frameworks.text import as_yaml

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
    return accelerate.recomputes_layers(job) and accelerate.backend(job) != "FSDP"


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
    chosen = accelerate.backend(job)
    if chosen == "DEEPSPEED":
        return {"deepspeed": deepspeed.FILE}
    if chosen != "FSDP":
        return {}
    shards = accelerate.shards(job)
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
    section = accelerate.fsdp_section(job)
    own = {name: section[key] for name, key in names.items()}
    return {"fsdp_version": section["fsdp_version"], "fsdp_config": own, **sizes}


def _remarks(job: Job, adapter: LowRank) -> Iterator[str]:
    yield from layout_remarks(job)
    yield from adapter_remarks(job, adapter)
    yield from kernel_remarks(job)
    yield from trainer.loop_remarks(job)
    yield from accelerate.layout_limits(job)
    if not _packs(job):
        yield "packing: with context parallel Axolotl packs at a micro batch of 1 alone"
    if job.training.activation_offload != "none" and not _checkpoints(job):
        yield "kept activations in host memory: Axolotl does that with gradient checkpointing alone"
    yield "datasets: name your data and their form"
    if not job.on_hub:
        yield "base_model: the folder of the checkpoint"
    if job.training.document_tokens is None:
        yield "packed documents: Axolotl stops attention at their ends, the plan counts it over the whole sequence"
