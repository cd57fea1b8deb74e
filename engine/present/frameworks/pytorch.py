"""Files of PyTorch's own trainers: torchtune's YAML for its recipes with adapters, torchtitan's TOML.

Names as in torchtune 0.6.1 (recipes/lora_finetune_*.py) and torchtitan 0.2.2 (config/job_config.py); later versions of
torchtitan are configured in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from capacity_tui.engine.plan.imports import tool
from capacity_tui.engine.present.frameworks import trainer
from capacity_tui.engine.present.frameworks.exports import as_yaml, comment, exported, limits
from capacity_tui.engine.present.frameworks.job import (
    Job,
    data_remarks,
    kernel_remarks,
    layout_remarks,
    length_remarks,
    run_remarks,
)
from capacity_tui.engine.present.frameworks.low_rank import LowRank, adapter_remarks, learning_rate
from capacity_tui.engine.record import dataclass

TORCHTUNE_VERSION = "torchtune 0.6.1"
TORCHTUNE_FILE = "torchtune.yaml"


@dataclass(frozen=True, slots=True)
class Builder:
    """A model as torchtune builds it."""

    model: str  # its builder with adapters, behind ``torchtune.models.``; ``{}`` stands for ``lora`` or ``qlora``
    tokenizer: str  # its tokenizer likewise
    kind: str  # of the checkpoint
    files: int  # how many files the checkpoint has


_LLAMA = "llama3.llama3_tokenizer"
BUILDERS: Mapping[str, Builder] = {
    "meta-llama/Meta-Llama-3-8B": Builder("llama3.{}_llama3_8b", _LLAMA, "LLAMA3", 4),
    "meta-llama/Meta-Llama-3-70B": Builder("llama3.{}_llama3_70b", _LLAMA, "LLAMA3", 30),
    "meta-llama/Llama-3.1-8B": Builder("llama3_1.{}_llama3_1_8b", _LLAMA, "LLAMA3", 4),
    "meta-llama/Llama-3.1-70B": Builder("llama3_1.{}_llama3_1_70b", _LLAMA, "LLAMA3", 30),
    "meta-llama/Llama-3.2-1B": Builder("llama3_2.{}_llama3_2_1b", _LLAMA, "LLAMA3_2", 1),
    "meta-llama/Llama-3.2-3B": Builder("llama3_2.{}_llama3_2_3b", _LLAMA, "LLAMA3_2", 2),
    "Qwen/Qwen2.5-0.5B": Builder("qwen2_5.{}_qwen2_5_0_5b", "qwen2_5.qwen2_5_tokenizer", "QWEN2", 1),
    "Qwen/Qwen2.5-3B": Builder("qwen2_5.{}_qwen2_5_3b", "qwen2_5.qwen2_5_tokenizer", "QWEN2", 2),
}
"""By name on the model hub, as the configurations that come with that version have them."""
_OPTIMIZERS: Mapping[str, Mapping[str, object]] = {
    "adamw": {"_component_": "torch.optim.AdamW", "fused": True},
    "adamw8bit": {"_component_": "bitsandbytes.optim.AdamW8bit"},
    "sgd": {"_component_": "torch.optim.SGD"},
}


def recipe(job: Job) -> str:
    """Return the recipe that runs the file."""
    return "lora_finetune_distributed" if job.devices > 1 else "lora_finetune_single_device"


def torchtune_config(job: Job, adapter: LowRank) -> str:
    """Return the file for ``tune run``; the model must be one of ``BUILDERS``."""
    training, builder = job.training, BUILDERS[job.model]
    multiplies = job.has_bf16 and job.precision not in {"fp32", "tf32"}
    options = exported(
        "torchtune",
        job,
        adapter=adapter,
        model_builder=f"torchtune.models.{builder.model.format('qlora' if adapter.base == 'nf4' else 'lora')}",
        tokenizer={**_tokenizer(job, builder), "max_seq_len": int(training.seq_len)},
        folder=_folder(job),
        checkpoint_files=_files(builder.files),
        model_type=builder.kind,
        optimizer={**_OPTIMIZERS.get(training.optimizer, _OPTIMIZERS["adamw"]), "lr": learning_rate(job)},
        number_type="bf16" if multiplies else "fp32",
        recomputes_layers=trainer.recomputes_layers(job),
        offloads_activations=training.activation_offload != "none" or job.parallel.offload == "activations",
    )
    return as_yaml(_heading(job), list(_torchtune_remarks(job, adapter)), options)


def _heading(job: Job) -> Iterator[str]:
    yield f"Written for {TORCHTUNE_VERSION}."
    yield f"tune download {job.model} --output-dir {_folder(job)}"
    spread = f" --nproc_per_node {job.per_node}" if job.devices > 1 else ""
    yield f"tune run{spread} {recipe(job)} --config {TORCHTUNE_FILE}"


def _tokenizer(job: Job, builder: Builder) -> dict[str, object]:
    folder, component = _folder(job), f"torchtune.models.{builder.tokenizer}"
    if builder.tokenizer == _LLAMA:
        return {"_component_": component, "path": f"{folder}/original/tokenizer.model"}
    return {"_component_": component, "path": f"{folder}/vocab.json", "merges_file": f"{folder}/merges.txt"}


def _folder(job: Job) -> str:
    return f"./{job.model.rpartition('/')[2]}"


def _files(count: int) -> object:
    if count == 1:
        return ["model.safetensors"]
    return {"filename_format": "model-{}-of-{}.safetensors", "max_filename": f"{count:05d}"}


def _torchtune_remarks(job: Job, adapter: LowRank) -> Iterator[str]:
    training = job.training
    yield from layout_remarks(job)
    yield from adapter_remarks(job, adapter)
    yield from kernel_remarks(job)
    yield from length_remarks(job)
    yield "dataset: name your data; an epoch is cut after the plan's steps, give more epochs where the data are shorter"
    if job.save_steps is not None:
        yield f"a checkpoint every {job.save_steps} steps: this recipe saves at the end of an epoch"
    split = job.tensor_parallel * job.pipeline_parallel * job.context_parallel * job.expert_parallel
    if split > 1:
        yield "tensor, pipeline, context and expert parallel: this recipe shards only replicas"
    if job.devices > 1 and job.zero in {0, 1}:
        yield f"ZeRO stage {job.zero}: FSDP shards gradients too (stage 2 is written)"
    if adapter.base and adapter.base != "nf4":
        yield f"frozen base in {adapter.base}: torchtune packs only nf4, the base stays as it is"
    if adapter.whole:
        yield "embedding and head as a whole: torchtune trains only adapters"
    if training.optimizer not in _OPTIMIZERS:
        yield f"the optimizer {training.optimizer}: AdamW is written"
    if training.checkpointing not in {"none", "full"}:
        yield f"checkpointing {training.checkpointing}: torchtune recomputes all layers or none"
    if training.loss == "fused":
        yield "loss fused: torchtune's chunked one is written"
    if training.document_tokens is None:
        yield "packed documents: attention stops at their ends, the plan counts it over the whole sequence"


TORCHTITAN_VERSION = "torchtitan 0.2.2"
TORCHTITAN_FILE = "torchtitan.toml"


def torchtitan_config(job: Job) -> str:
    """Return the file for ``run_train.sh``; the model must be one of ``flavors``."""
    heading = [
        f"Written for {TORCHTITAN_VERSION}.",
        f"NGPU={job.per_node} CONFIG_FILE={TORCHTITAN_FILE} ./run_train.sh"
        + (f", on each of {job.nodes} nodes by torchrun's --nnodes and --rdzv_endpoint." if job.nodes > 1 else ""),
    ]
    tables = [f"[{name}]\n{_entries(values)}" for name, values in _sections(job).items()]
    return comment(heading) + limits(list(_torchtitan_remarks(job))) + "\n" + "\n".join(tables)


def _sections(job: Job) -> dict[str, dict[str, object]]:
    name, flavor = flavors()[job.model]
    staged, recomputed = job.pipeline_parallel > 1, job.training.checkpointing
    every = recomputed.removeprefix("every-") if recomputed.startswith("every-") else "op"
    is_whole = recomputed in {"none", "full"}
    sections = exported(
        "torchtitan",
        job,
        model_name=name,
        flavor=flavor,
        assets=f"./assets/hf/{job.model.rpartition('/')[2]}",
        # With a pipeline, a local batch is all micro-batches of a step.
        local_batch=job.micro_batch * (job.accumulation if staged else 1),
        multiplied_in=_multiplied_in(job),
        sharded_copies=job.data_parallel // job.shards,
        expert_tensor_parallel=job.parallel.etp if job.expert_parallel > 1 else 1,
        is_staged=staged,
        layers_per_stage=-(-job.layers // (job.pipeline_parallel * job.interleave)),
        checkpointing_mode=recomputed if is_whole else "selective",
        selective_option=None if is_whole else every,
    )
    return cast("dict[str, dict[str, object]]", sections)


def flavors() -> Mapping[str, tuple[str, ...]]:
    """Return model and flavor by name on the model hub."""
    return tool("torchtitan").models


def _words(option: str) -> Mapping[object, str]:
    """Return the words of an option by what they mean in a plan."""
    return tool("torchtitan").words(option)


def _multiplied_in(job: Job) -> str:
    return _words("training.mixed_precision_param").get(job.precision, "bfloat16" if job.has_bf16 else "float32")


def _torchtitan_remarks(job: Job) -> Iterator[str]:
    training = job.training
    yield from run_remarks(job)
    yield "training.dataset: name your data"
    yield from data_remarks(job)
    if job.zero == 1:
        yield "ZeRO stage 1: torchtitan shards gradients too (stage 2 is written)"
    if job.precision not in _words("training.mixed_precision_param"):
        yield f"{job.precision}: torchtitan does not train in it, {_multiplied_in(job)} is written"
    if training.optimizer not in _words("optimizer.name"):
        yield f"the optimizer {training.optimizer}: AdamW is written"
    named = training.checkpointing in {"none", "full", "selective-ops"} or training.checkpointing.startswith("every-")
    if not named:
        yield f"checkpointing {training.checkpointing}: selection by operations is written"
    if training.adapter is not None:
        yield "adapters: torchtitan trains all weights"
    if job.context_parallel > 1 and job.parallel.context not in _words("parallelism.context_parallel_rotate_method"):
        yield f"context {job.parallel.context}: torchtitan exchanges keys and values, all-gather is written"
    if job.parallel.offload == "activations":
        yield "offload of activations: torchtitan has none"


def _entries(values: Mapping[str, object]) -> str:
    return "".join(f"{name} = {_value(value)}\n" for name, value in values.items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_value(entry) for entry in value)}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
