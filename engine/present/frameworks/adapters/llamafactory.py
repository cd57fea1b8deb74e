"""LLaMA-Factory's YAML. Names as in version 0.9.5 (hparams/)."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.plan.imports import tool
from capacity_tui.engine.present.frameworks import accelerate, deepspeed, trainer
from capacity_tui.engine.present.frameworks.adapters.low_rank import LowRank, adapter_remarks, learning_rate
from capacity_tui.engine.present.frameworks.job import Job, kernel_remarks, layout_remarks
from capacity_tui.engine.present.frameworks.text import as_yaml

VERSION = "LLaMA-Factory 0.9.5"
FILE = "llamafactory.yaml"


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
    if accelerate.backend(job) == "DEEPSPEED":
        data["deepspeed"] = deepspeed.FILE
    return as_yaml(_heading(job), list(_remarks(job, adapter)), data)


def _heading(job: Job) -> Iterator[str]:
    yield f"Written for {VERSION}."
    if accelerate.backend(job) == "FSDP":
        yield f"accelerate launch --config_file {accelerate.FILE} src/train.py {FILE}, in a checkout of its own"
        return
    nodes = f" NNODES={job.nodes} NODE_RANK=N MASTER_ADDR=HOST" if job.nodes > 1 else ""
    spread = f"FORCE_TORCHRUN=1 NPROC_PER_NODE={job.per_node}{nodes} " if job.devices > 1 else ""
    yield f"{spread}llamafactory-cli train {FILE}"


def _attention(job: Job) -> str:
    return "sdpa" if job.on_cpu else tool("llamafactory").words("flash_attn").get(job.attention, "sdpa")


def _base(adapter: LowRank) -> dict[str, object]:
    if adapter.bits is None:
        return {}
    packed: dict[str, object] = {"quantization_bit": adapter.bits, "quantization_method": "bnb"}
    return packed | ({"quantization_type": adapter.base, "double_quantization": True} if adapter.bits == 4 else {})


def _remarks(job: Job, adapter: LowRank) -> Iterator[str]:
    yield from layout_remarks(job)
    yield from adapter_remarks(job, adapter)
    yield from kernel_remarks(job)
    yield from trainer.loop_remarks(job)
    yield from accelerate.layout_limits(job)
    yield "dataset: name your data as dataset_info.json does; template: the tokenizer's own is taken"
    if not job.on_hub:
        yield "model_name_or_path: the folder of the checkpoint"
    if job.training.activation_offload != "none":
        yield "kept activations in host memory: LLaMA-Factory has no switch for it"
