"""torchtitan's TOML. Names as in version 0.2.2 (config/job_config.py); later versions are configured in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from capacity_tui.engine.plan.imports import tool
from capacity_tui.engine.present.frameworks.job import (
    Job,
    data_remarks,
    kernel_remarks,
    layout_remarks,
    length_remarks,
    rate_remarks,
    software_remarks,
)
from capacity_tui.engine.present.frameworks.text import comment, limits

VERSION = "torchtitan 0.2.2"
FILE = "torchtitan.toml"


def torchtitan_config(job: Job) -> str:
    """Return the file for ``run_train.sh``; the model must be one of ``flavors``."""
    heading = [
        f"Written for {VERSION}.",
        f"NGPU={job.per_node} CONFIG_FILE={FILE} ./run_train.sh"
        + (f", on each of {job.nodes} nodes by torchrun's --nnodes and --rdzv_endpoint." if job.nodes > 1 else ""),
    ]
    tables = [f"[{name}]\n{_entries(values)}" for name, values in _sections(job).items()]
    return comment(heading) + limits(list(_remarks(job))) + "\n" + "\n".join(tables)


def _sections(job: Job) -> dict[str, dict[str, object]]:
    name, flavor = flavors()[job.model]
    folder = job.model.rpartition("/")[2]
    model: dict[str, object] = {"name": name, "flavor": flavor, "hf_assets_path": f"./assets/hf/{folder}"}
    if job.precision == "fp8":
        model["converters"] = ["quantize.linear.float8"]
    optimizer: dict[str, object] = {"name": "AdamW"}
    if job.training.learning_rate is not None:
        optimizer["lr"] = job.training.learning_rate
    sections: dict[str, dict[str, object]] = {
        "model": model,
        "optimizer": optimizer,
        "training": _training(job),
        **_loader(job),
        "parallelism": _parallelism(job),
        "activation_checkpoint": _checkpointing(job.training.checkpointing),
        "compile": {"enable": job.training.compile},
    }
    if job.save_steps is not None:
        sections["checkpoint"] = {"enable": True, "interval": job.save_steps}
    return sections


def flavors() -> Mapping[str, tuple[str, ...]]:
    """Return model and flavor by name on the model hub."""
    return tool("torchtitan").models


def _words(option: str) -> Mapping[object, str]:
    """Return the words of an option by what they mean in a plan."""
    return tool("torchtitan").words(option)


def _training(job: Job) -> dict[str, object]:
    """Return batch and precision; with a pipeline, a local batch is all micro-batches of a step."""
    staged = job.pipeline_parallel > 1
    section: dict[str, object] = {
        "local_batch_size": job.micro_batch * (job.accumulation if staged else 1),
        "global_batch_size": job.global_batch,
        "seq_len": int(job.training.seq_len),
        "dtype": "bfloat16" if job.training.master_weights == "none" else "float32",
        "mixed_precision_param": _multiplied_in(job),
        "enable_cpu_offload": job.parallel.offload in {"optimizer", "parameters"},
    }
    return section if job.steps is None else section | {"steps": job.steps}


def _loader(job: Job) -> dict[str, dict[str, object]]:
    """Return the table about the data loader; none where the plan leaves it open."""
    if job.loader_workers is None:
        return {}
    prefetch = {} if job.prefetched is None else {"prefetch_factor": job.prefetched}
    return {"training.dataloader": {"num_workers": job.loader_workers, **prefetch}}


def _multiplied_in(job: Job) -> str:
    return _words("training.mixed_precision_param").get(job.precision, "bfloat16" if job.has_bf16 else "float32")


def _parallelism(job: Job) -> dict[str, object]:
    section: dict[str, object] = {
        "data_parallel_replicate_degree": job.data_parallel // job.shards,
        "data_parallel_shard_degree": job.shards,
        "fsdp_reshard_after_forward": "always" if job.zero == 3 else "never",
        "tensor_parallel_degree": job.tensor_parallel,
        "context_parallel_degree": job.context_parallel,
        "pipeline_parallel_degree": job.pipeline_parallel,
        "expert_parallel_degree": job.expert_parallel,
        "expert_tensor_parallel_degree": job.parallel.etp if job.expert_parallel > 1 else 1,
    }
    if job.context_parallel > 1:
        section["context_parallel_rotate_method"] = _words("parallelism.context_parallel_rotate_method").get(
            job.parallel.context, "allgather"
        )
    if job.pipeline_parallel > 1:
        looped = job.interleave > 1
        section |= {
            "pipeline_parallel_schedule": "Interleaved1F1B" if looped else "1F1B",
            "pipeline_parallel_microbatch_size": job.micro_batch,
            # Equal stages, as the plan counts them.
            "pipeline_parallel_first_stage_less_layers": 0,
            "pipeline_parallel_last_stage_less_layers": 0,
            "pipeline_parallel_layers_per_stage": -(-job.layers // (job.pipeline_parallel * job.interleave)),
        }
    return section


def _checkpointing(name: str) -> dict[str, object]:
    if name in {"none", "full"}:
        return {"mode": name}
    every = name.removeprefix("every-") if name.startswith("every-") else "op"
    return {"mode": "selective", "selective_ac_option": every}


def _remarks(job: Job) -> Iterator[str]:
    training = job.training
    yield from software_remarks(job)
    yield from layout_remarks(job)
    yield from length_remarks(job)
    yield from rate_remarks(job)
    yield from kernel_remarks(job)
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
