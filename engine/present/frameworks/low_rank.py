"""Low-rank adapters as tools for fine-tuning are given them: Axolotl, LLaMA-Factory, TRL with PEFT, torchtune.

Matrices are named as in checkpoints of Llama, and names for TRL as in TRL 1.16, PEFT 0.21, Transformers 5.23 and
bitsandbytes 0.50; for torchtune as in 0.6.1 (recipes/lora_finetune_*.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from capacity_tui.engine.plan import Targets
from capacity_tui.engine.plan.options import ADAPTED, tool
from capacity_tui.engine.present.frameworks import trainer
from capacity_tui.engine.present.frameworks.exports import (
    as_yaml,
    exported,
    exported_remarks,
    framework_names,
    known_values,
    limits,
)
from capacity_tui.engine.present.frameworks.job import Job, kernel_remarks, layout_remarks, length_remarks
from capacity_tui.engine.present.parts import template
from capacity_tui.engine.printable import printable
from capacity_tui.engine.record import dataclass

LEARNING_RATE = 2e-4  # Written where a plan gives none: usual for adapters (Hu et al. 2021, Dettmers et al. 2023).
EMBEDDING_AND_HEAD = ("embed_tokens", "lm_head")

_NAMED: Mapping[str, str] = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "o_proj"}

_FOUR_BITS = ("nf4", "fp4")
_EIGHT_BITS = ("int8",)
_ALPHA_OVER_RANK = 2


@dataclass(frozen=True, slots=True)
class LowRank:
    """The adapters of a job."""

    rank: int  # their rank
    targets: Targets  # the plan's word for the matrices that have one
    names: tuple[str, ...]  # the names of these matrices; none for all linear layers
    is_weighted: bool  # whether directions and lengths are trained apart (DoRA)
    whole: tuple[str, ...]  # what is trained as a whole beside them
    base: str  # format of the frozen base; empty where it has the type of the run

    @property
    def alpha(self) -> int:
        """Factor of what they add, times their rank."""
        return _ALPHA_OVER_RANK * self.rank

    @property
    def bits(self) -> int | None:
        """Bits of a weight of the base as bitsandbytes packs it; None where it does not."""
        return 4 if self.base in _FOUR_BITS else 8 if self.base in _EIGHT_BITS else None


def module_names(targets: Targets) -> tuple[str, ...]:
    """Return what most models call the matrices that have an adapter."""
    return tuple(_NAMED.get(matrix, f"{matrix}_proj") for matrix in ADAPTED[targets])


_LOW_RANK = frozenset({"lora", "qlora", "dora"})


def low_rank(job: Job) -> LowRank | None:
    """Return the low-rank adapters of a job; None where all weights are trained, or others."""
    training, adapter = job.training, job.training.adapter
    if adapter is None or adapter.kind not in _LOW_RANK:
        return None
    base = training.quantization or (_FOUR_BITS[0] if adapter.kind == "qlora" else "")
    return LowRank(
        rank=int(adapter.rank),
        targets=adapter.targets,
        names=() if adapter.targets == "all" else module_names(adapter.targets),
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


AXOLOTL_VERSION = "Axolotl 0.19"
AXOLOTL_FILE = "axolotl.yaml"


def axolotl_config(job: Job, adapter: LowRank) -> str:
    """Return the file for ``axolotl train``."""
    values = {
        **trainer.spread_values(job),
        "adapter": adapter,
        "checkpoint": _checkpoint(job),
        "learning_rate": learning_rate(job),
        "packs": _packs(job),
        "attention_kernel": trainer.attention_kernel(job),
        "recomputes_itself": trainer.recomputes_itself(job),
    }
    return as_yaml(_heading(job), list(_remarks(job, adapter)), exported("axolotl", job, **values))


def _checkpoint(job: Job) -> str:
    return job.model if job.on_hub else "MODEL"


def _packs(job: Job) -> bool:
    return job.training.preference == "none" and (job.context_parallel == 1 or job.micro_batch == 1)


def _preference_remarks(job: Job, tool_name: str, known: Collection[str]) -> Iterator[str]:
    """Yield what a file does not say of learning from preferences, where its tool has another name or none for it."""
    preference = job.training.preference
    if preference not in {"none", *known}:
        yield f"preference {preference}: {tool_name} has none such, supervised training is written"
    elif preference != "none":
        yield f"preference {preference}: name data with answers that are compared or scored"


def _trainer_remarks(job: Job, adapter: LowRank) -> Iterator[str]:
    """Yield what files do not say whose tool runs Transformers' Trainer."""
    yield from layout_remarks(job)
    yield from adapter_remarks(job, adapter)
    yield from kernel_remarks(job)
    yield from trainer.loop_remarks(job)
    yield from trainer.layout_limits(job)


def _heading(job: Job) -> Iterator[str]:
    yield f"Written for {AXOLOTL_VERSION}."
    spread = f" --launcher torchrun -- --nproc_per_node={job.per_node}" if job.devices > 1 else ""
    nodes = f" --nnodes={job.nodes} --rdzv_backend=c10d --rdzv_endpoint=HOST:PORT" if job.nodes > 1 else ""
    yield f"axolotl train {AXOLOTL_FILE}{spread}{nodes}"


def _remarks(job: Job, adapter: LowRank) -> Iterator[str]:
    yield from _trainer_remarks(job, adapter)
    known = (*known_values("axolotl", "rl"), "reward", "process_reward")
    yield from _preference_remarks(job, "Axolotl", known)
    recomputes_itself = trainer.recomputes_itself(job)
    yield from exported_remarks("axolotl_limits", job, packs=_packs(job), recomputes_itself=recomputes_itself)


LLAMAFACTORY_VERSION = "LLaMA-Factory 0.9.5"
LLAMAFACTORY_FILE = "llamafactory.yaml"


def llamafactory_config(job: Job, adapter: LowRank) -> str:
    """Return the file for ``llamafactory-cli train``."""
    loop = trainer.settings(job)
    recomputes = loop.pop("activation_checkpointing")
    loop.pop("use_liger_kernel", None)
    options = exported(
        "llamafactory",
        job,
        backend=trainer.backend(job),
        adapter=adapter,
        checkpoint=_checkpoint(job),
        targets=",".join(adapter.names) or "all",
        whole=",".join(adapter.whole) or None,
        attention="sdpa" if job.on_cpu else tool("llamafactory").words("flash_attn").get(job.attention, "sdpa"),
        recomputes_itself=recomputes,
    )
    data = {**options, **loop, "learning_rate": learning_rate(job)}
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


def _llamafactory_remarks(job: Job, adapter: LowRank) -> Iterator[str]:
    yield from _trainer_remarks(job, adapter)
    yield from _preference_remarks(job, "LLaMA-Factory", known_values("llamafactory", "stage"))
    yield from exported_remarks("llamafactory_limits", job)


TRL_VERSION = "TRL 1.16, PEFT 0.21 and Transformers 5.23"
SCRIPT = "train.py"
SETTINGS = "sft_config.yaml"
_TYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16"}


def trl_files(job: Job, adapter: LowRank, split: int = 1) -> Iterator[tuple[str, str]]:
    """Yield the script that fine-tunes the plan, and the settings it reads; of preferences the settings alone.

    Args:
        split: the devices over which the plan splits a layer, which the script does not do.
    """
    if job.training.preference != "none":
        yield trainer.FILE, trainer.training_arguments(job)  # the script is of supervised training
        return
    yield SCRIPT, _script(job, adapter, split)
    yield SETTINGS, _settings(job)


def _settings(job: Job) -> str:
    """Return what ``HfArgumentParser.parse_yaml_file`` reads as ``SFTConfig``."""
    training = job.training
    data = trainer.settings(job) | {
        "learning_rate": learning_rate(job),
        "max_length": int(training.seq_len),
        # The plan counts every sequence as full; documents end inside them only where it says so.
        "packing": True,
        "packing_strategy": "wrapped" if training.document_tokens is None else "bfd",
        "activation_offloading": training.activation_offload != "none",
    }
    return as_yaml([f"Written for {TRL_VERSION}: settings of {SCRIPT}, SFTConfig."], list(_settings_remarks(job)), data)


def _settings_remarks(job: Job) -> Iterator[str]:
    yield from trainer.loop_remarks(job)
    if job.training.document_tokens is not None and trainer.attention_kernel(job) in {"sdpa", "eager"}:
        yield "documents: TRL keeps packed ones apart only with flash attention"


def _script(job: Job, adapter: LowRank, split: int) -> str:
    remarks = [*adapter_remarks(job, adapter), *kernel_remarks(job)]
    if split > 1:
        remarks.append(
            f"tensor parallel {split}: this script splits no layer, FSDP spreads the model in its place, and layers "
            "are computed again in the backward pass, since each device has whole ones"
        )
    named = "DoRA" if adapter.is_weighted else "LoRA"
    values = {
        "title": printable(job.model).replace("\\", "/").replace('"', "'"),
        "method": f"{named} on a base in {adapter.base}" if adapter.base else named,
        "written_for": TRL_VERSION,
        "launch_file": trainer.ACCELERATE_FILE,
        "script": SCRIPT,
        "settings": SETTINGS,
        "limits": limits(remarks),
        "model": job.model if job.on_hub else None,
        "adapter": adapter,
        "type": f"torch.{_TYPES.get(job.precision, 'bfloat16')}",
        "is_sharded": trainer.backend(job) in {"FSDP", "DEEPSPEED"},  # sharding moves weights as they are stored
        "attention": trainer.attention_kernel(job),
    }
    return template("train.py.jinja").render(values) + "\n"


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


def builders() -> Mapping[str, Builder]:
    """Return the models that have a builder with adapters, by name on the model hub."""
    return {name: Builder(**row) for name, row in framework_names()["torchtune_builders"].items()}


def recipe(job: Job) -> str:
    """Return the recipe that runs the file."""
    return "lora_finetune_distributed" if job.devices > 1 else "lora_finetune_single_device"


def torchtune_config(job: Job, adapter: LowRank) -> str:
    """Return the file for ``tune run``; the model must be one of ``builders``."""
    training, builder = job.training, builders()[job.model]
    optimizers = framework_names()["torchtune_optimizers"]
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
        optimizer={**optimizers.get(training.optimizer, optimizers["adamw"]), "lr": learning_rate(job)},
        number_type="bf16" if multiplies else "fp32",
        recomputes_layers=trainer.recomputes_layers(job),
        offloads_activations=training.activation_offload != "none" or job.parallel.offload == "activations",
    )
    return as_yaml(_torchtune_heading(job), list(_torchtune_remarks(job, adapter)), options)


def _torchtune_heading(job: Job) -> Iterator[str]:
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
    yield from _preference_remarks(job, "this recipe", ())
    yield from layout_remarks(job)
    yield from adapter_remarks(job, adapter)
    yield from kernel_remarks(job)
    yield from length_remarks(job)
    split = job.tensor_parallel * job.pipeline_parallel * job.context_parallel * job.expert_parallel
    has_optimizer = job.training.optimizer in framework_names()["torchtune_optimizers"]
    yield from exported_remarks("torchtune_limits", job, adapter=adapter, split=split, has_optimizer=has_optimizer)
