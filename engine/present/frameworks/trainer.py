"""Arguments of the Hugging Face Trainer. Names as in Transformers 5 (training_args.py); the same in version 4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from capacity_tui.engine.plan.imports import tool
from capacity_tui.engine.present.frameworks.accelerate import backend, recomputes_layers
from capacity_tui.engine.present.frameworks.job import Job, data_remarks, kernel_remarks, length_remarks, rate_remarks
from capacity_tui.engine.present.frameworks.text import as_yaml

FILE = "training_arguments.yaml"
_TARGETS = {
    "all": "all linear layers",
    "attention": "the matrices of attention",
    "mlp": "the matrices of the feed-forward",
    "query+value": "queries and values",
}


def training_arguments(job: Job) -> str:
    """Return what ``HfArgumentParser.parse_yaml_file`` reads as ``TrainingArguments``."""
    heading = [
        "Written for Transformers 5, for HfArgumentParser(TrainingArguments).parse_yaml_file.",
        f"Model: {job.model}",
    ]
    return as_yaml(heading, list(_remarks(job)), settings(job))


def settings(job: Job) -> dict[str, object]:
    """Return the plan's training loop under the names of ``TrainingArguments``, which other tools share."""
    training = job.training
    data: dict[str, object] = {
        "output_dir": "output",
        "per_device_train_batch_size": job.micro_batch,
        "gradient_accumulation_steps": job.accumulation,
        "bf16": job.precision in {"bf16", "fp8", "fp4"},
        "fp16": job.precision == "fp16",
        # FSDP recomputes by its own switch; the Trainer refuses both.
        "gradient_checkpointing": recomputes_layers(job) and backend(job) != "FSDP",
        "torch_compile": training.compile,
    }
    if job.precision == "tf32":
        data["tf32"] = True
    if training.loss == "fused":
        data["use_liger_kernel"] = True
    if job.on_cpu:
        data["use_cpu"] = True
    if training.optimizer in optimizers():
        data["optim"] = optimizers()[training.optimizer]
    if job.steps is not None:
        data["max_steps"] = job.steps
    if job.save_steps is not None:
        data |= {"save_strategy": "steps", "save_steps": job.save_steps}
    if training.learning_rate is not None:
        data["learning_rate"] = training.learning_rate
    return data | loader(job)


def loader(job: Job) -> dict[str, object]:
    """Return the workers of the data loader under the names that tools around the Trainer share."""
    data: dict[str, object] = {}
    if job.loader_workers is not None:
        data["dataloader_num_workers"] = job.loader_workers
    if job.prefetched is not None:
        data["dataloader_prefetch_factor"] = job.prefetched
    return data


def attention_kernel(job: Job) -> str:
    """Return the name that ``attn_implementation`` has for the plan's kernel of attention."""
    kernels = tool("trl").words("attn_implementation")
    return "sdpa" if job.on_cpu else kernels.get(job.attention, "sdpa")


def optimizers() -> Mapping[object, str]:
    """Return the names of ``optim`` by the plan's."""
    return tool("trainer").words("optim")


def loop_remarks(job: Job) -> Iterator[str]:
    """Yield what settings of this kind do not say of the loop, whoever reads them."""
    training = job.training
    yield from length_remarks(job)
    yield from data_remarks(job)
    if training.optimizer not in optimizers():
        yield f"the optimizer {training.optimizer}: hand one to the Trainer"
    if training.checkpointing not in {"none", "full"}:
        what = "all layers are" if recomputes_layers(job) else "nothing is"
        yield f"checkpointing {training.checkpointing}: {what} recomputed, the Trainer knows all or none"
    if training.loss == "chunked":
        yield "loss chunked: the Trainer has none of its own; hand one to it as compute_loss_func"
    if training.sequence_tiles > 1:
        yield f"{training.sequence_tiles} tiles of the sequence: tile the feed-forwards (TiledMLP in DeepSpeed)"


def _remarks(job: Job) -> Iterator[str]:
    training = job.training
    yield from loop_remarks(job)
    yield from rate_remarks(job)
    yield from kernel_remarks(job)
    yield f"sequences of {training.seq_len} tokens: cut the data to them (max_length in TRL)"
    yield f'attention: AutoModelForCausalLM.from_pretrained(..., attn_implementation="{attention_kernel(job)}")'
    adapter = training.adapter
    if adapter is not None:
        dora = ", use_dora=True" if adapter.kind == "dora" else ""
        copied = ", and modules_to_save of embedding and head" if adapter.train_embeddings else ""
        yield f"adapter: peft.LoraConfig(r={adapter.rank}{dora}) on {_TARGETS[adapter.targets]}{copied}"
    if training.activation_offload != "none":
        yield "kept activations in host memory: torch.autograd.graph.save_on_cpu (activation_offloading in TRL)"
    kept = training.quantization or ("nf4" if adapter is not None and adapter.kind == "qlora" else None)
    if kept is not None:
        yield f"frozen base in {kept}: hand a quantization_config to from_pretrained"
