"""Arguments of the Hugging Face Trainer. Names as in Transformers 5.23 (training_args.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

from capacity_tui.engine.models import checkpointing
from capacity_tui.engine.plan.options import tool
from capacity_tui.engine.present.frameworks.exports import as_yaml, exported, exported_remarks, framework_names
from capacity_tui.engine.present.frameworks.job import (
    Job,
    data_remarks,
    kernel_remarks,
    layout_remarks,
    length_remarks,
    rate_remarks,
    software_remarks,
)

FILE = "training_arguments.yaml"


def training_arguments(job: Job) -> str:
    """Return what ``HfArgumentParser.parse_yaml_file`` reads as ``TrainingArguments``."""
    arguments = "Seq2SeqTrainingArguments" if job.kind == "encoder-decoder" else "TrainingArguments"
    heading = [
        f"Written for Transformers 5.23, for HfArgumentParser({arguments}).parse_yaml_file.",
        "What is activation_checkpointing here was gradient_checkpointing in earlier releases.",
        f"Model: {job.model}",
    ]
    return as_yaml(heading, list(_remarks(job)), settings(job))


def settings(job: Job) -> dict[str, object]:
    """Return the plan's training loop under the names of ``TrainingArguments``, which other tools share."""
    return exported("training_arguments", job, recomputes_itself=recomputes_itself(job))


def attention_kernel(job: Job) -> str:
    """Return the name that ``attn_implementation`` has for the plan's kernel of attention."""
    kernels = tool("trl").words("attn_implementation")
    return "sdpa" if job.on_cpu else kernels.get(job.attention, "sdpa")


def loop_remarks(job: Job) -> Iterator[str]:
    """Yield what settings of this kind do not say of the loop, whoever reads them."""
    yield from length_remarks(job)
    yield from data_remarks(job)
    yield from exported_remarks("training_arguments_limits", job, recomputes_layers=recomputes_layers(job))


def _remarks(job: Job) -> Iterator[str]:
    training, names = job.training, framework_names()
    yield from loop_remarks(job)
    yield from rate_remarks(job)
    yield from kernel_remarks(job)
    if settings_of_trl := names["trl_configs"].get(training.preference):
        yield f"preference {training.preference}: hand these settings to TRL's {settings_of_trl}"
    if job.shape.source_positions:
        most = job.shape.max_context
        yield f"Seq2SeqTrainer: sound is padded to {training.seq_len} positions; labels have at most {most:g} tokens"
    else:
        yield f"sequences of {training.seq_len} tokens: cut the data to them (max_length in TRL)"
    yield f'attention: {_auto_class(job)}.from_pretrained(..., attn_implementation="{attention_kernel(job)}")'
    adapter = training.adapter
    if adapter is not None:
        config = names["peft_configs"].get(adapter.kind, "LoraConfig")
        sized = f"{names['peft_sizes'].get(adapter.kind, 'r')}={adapter.rank}" if adapter.kind != "ia3" else ""
        dora = ", use_dora=True" if adapter.kind == "dora" else ""
        copied = ", and modules_to_save of embedding and head" if adapter.train_embeddings else ""
        yield f"adapter: peft.{config}({sized}{dora}) on {names['adapter_targets'][adapter.targets]}{copied}"
    if training.activation_offload != "none":
        yield "kept activations in host memory: torch.autograd.graph.save_on_cpu (activation_offloading in TRL)"
    kept = training.quantization or ("nf4" if adapter is not None and adapter.kind == "qlora" else None)
    if kept is not None:
        yield f"frozen base in {kept}: hand a quantization_config to from_pretrained"


def _auto_class(job: Job) -> str:
    """Return the class of Transformers that loads a model for training, by its kind."""
    if job.shape.source_positions:
        return "AutoModelForSpeechSeq2Seq"
    return {"encoder-decoder": "AutoModelForSeq2SeqLM", "encoder": "AutoModel"}.get(job.kind, "AutoModelForCausalLM")


VERSION = "Accelerate 1.15"
ACCELERATE_FILE = "accelerate.yaml"
Backend = Literal["NO", "MULTI_CPU", "MULTI_GPU", "FSDP", "DEEPSPEED"]


def accelerate_config(job: Job) -> str:
    """Return the file for ``accelerate launch --config_file``."""
    chosen = backend(job)
    heading = [
        f"Written for {VERSION}" + (f" with {DEEPSPEED_VERSION}." if chosen == "DEEPSPEED" else "."),
        f"accelerate launch --config_file {ACCELERATE_FILE} train.py, on each of {job.nodes} nodes "
        "with its --machine_rank"
        " and --main_process_ip."
        if job.nodes > 1
        else f"accelerate launch --config_file {ACCELERATE_FILE} train.py",
    ]
    return as_yaml(heading, list(_accelerate_remarks(job)), exported("accelerate", job, **spread_values(job)))


def backend(job: Job) -> Backend:
    """Return how Accelerate runs the plan."""
    framework = job.framework
    if job.on_cpu:
        return "MULTI_CPU" if job.devices > 1 else "NO"
    moves = job.parallel.offload in {"optimizer", "parameters"}
    if framework == "deepspeed" or (framework in {None, "transformers"} and (job.zero in {1, 2} or moves)):
        return "DEEPSPEED"
    if job.devices == 1 and not moves:
        return "NO"
    split = job.tensor_parallel > 1 or job.context_parallel > 1
    return "FSDP" if job.zero > 0 or split or moves else "MULTI_GPU"


def recomputes_layers(job: Job) -> bool:
    """Return whether whole layers are recomputed: these libraries know all layers or none.

    Keeping the scores alone out of memory is what fused attention does anyway.
    """
    chosen = checkpointing(job.training.checkpointing)
    return chosen.full_layers > 0 or chosen.operations or bool(chosen.modules - {"attention"})


def shards(job: Job) -> int:
    """Return the replicas that share a copy; Accelerate splits layers and sequences of sharded models alone."""
    split = job.tensor_parallel > 1 or job.context_parallel > 1
    return job.data_parallel if job.zero == 0 and split else job.shards


def recomputes_itself(job: Job) -> bool:
    """Return whether the Trainer recomputes layers; FSDP does so by its own switch, and the Trainer refuses both."""
    return recomputes_layers(job) and backend(job) != "FSDP"


def spread_values(job: Job) -> dict[str, object]:
    """Return what files say of how a job is spread over devices."""
    return {
        "backend": backend(job),
        "zero_stage": zero_stage(job),
        "shards": shards(job),
        "sharded_copies": job.data_parallel // shards(job),
        "recomputes_layers": recomputes_layers(job),
        "has_quantized_base": has_quantized_base(job),
    }


def has_quantized_base(job: Job) -> bool:
    """Return whether adapters are trained beside a base in fewer bits."""
    adapter = job.training.adapter
    return job.training.quantization is not None or (adapter is not None and adapter.kind == "qlora")


def layout_limits(job: Job) -> Iterator[str]:
    """Return what this launcher, and tools that build on it, cannot do of the plan's layout."""
    return exported_remarks("accelerate_limits", job, backend=backend(job))


def _accelerate_remarks(job: Job) -> Iterator[str]:
    yield from software_remarks(job)
    yield from layout_remarks(job)
    yield from kernel_remarks(job)
    yield from layout_limits(job)
    if job.training.precision == "fp4":
        yield "fp4: bf16 is written"
    if backend(job) == "DEEPSPEED":
        yield from exported_remarks(
            "deepspeed_limits", job, zero_stage=zero_stage(job), needs_stage=zero_stage(job) != job.zero
        )
        if job.training.precision == "fp8":
            yield "fp8: DeepSpeed's file says bf16"


DEEPSPEED_VERSION = "DeepSpeed 0.19"
DEEPSPEED_FILE = "ds_config.json"


def deepspeed_config(job: Job) -> str:
    """Return ``ds_config.json``; JSON has no comments, so remarks go to the file that names it."""
    return json.dumps(exported("deepspeed", job, zero_stage=zero_stage(job)), indent=2) + "\n"


def zero_stage(job: Job) -> int:
    """Return the stage that is written: offloading the optimizer needs one, the parameters the third."""
    least = {"optimizer": 1, "parameters": 3}.get(job.parallel.offload, 0)
    return max(job.zero, least)
