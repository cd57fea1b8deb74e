"""torchtitan's TOML. Names as in version 0.2.2 (config/job_config.py); later versions are configured in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from capacity_tui.engine.plan.imports import tool
from capacity_tui.engine.present.frameworks.exports import comment, exported, limits
from capacity_tui.engine.present.frameworks.job import (
    Job,
    data_remarks,
    kernel_remarks,
    layout_remarks,
    length_remarks,
    rate_remarks,
    software_remarks,
)

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
