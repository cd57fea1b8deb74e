"""DeepSpeed's configuration. Names as in version 0.19 (docs/_pages/config-json.md, runtime/zero/config.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from capacity_tui.engine.plan.imports import tool
from capacity_tui.engine.present.frameworks.job import Job

VERSION = "DeepSpeed 0.19"
FILE = "ds_config.json"


def deepspeed_config(job: Job) -> str:
    """Return ``ds_config.json``; JSON has no comments, so remarks go to the file that names it."""
    data: dict[str, object] = {
        "train_batch_size": job.global_batch,
        "train_micro_batch_size_per_gpu": job.micro_batch,
        "gradient_accumulation_steps": job.accumulation,
        "bf16": {"enabled": job.precision in {"bf16", "fp8", "fp4"}},
        "fp16": {"enabled": job.precision == "fp16"},
        "zero_optimization": _zero(job),
        "activation_checkpointing": {
            "partition_activations": False,
            "cpu_checkpointing": job.parallel.offload == "activations",
        },
    }
    if job.training.gradients is not None:
        data["data_types"] = {"grad_accum_dtype": job.training.gradients}
    if job.tensor_parallel > 1:
        data["tensor_parallel"] = {"autotp_size": job.tensor_parallel}
    if job.training.optimizer in _optimizers():
        rate = job.training.learning_rate or "auto"
        data["optimizer"] = {"type": _optimizers()[job.training.optimizer], "params": {"lr": rate}}
    return json.dumps(data, indent=2) + "\n"


def zero_stage(job: Job) -> int:
    """Return the stage that is written: offloading the optimizer needs one, the parameters the third."""
    least = {"optimizer": 1, "parameters": 3}.get(job.parallel.offload, 0)
    return max(job.zero, least)


def deepspeed_remarks(job: Job) -> Iterator[str]:
    """Yield what DeepSpeed's configuration does not say of the plan."""
    if zero_stage(job) != job.zero:
        yield f"offloading of {job.parallel.offload} needs ZeRO stage {zero_stage(job)}; the plan has {job.zero}"
    if job.training.master_weights == "none":
        yield "DeepSpeed keeps fp32 master weights; the plan has none"
    if job.training.learning_rate is None and job.training.optimizer in _optimizers():
        yield "lr is auto: the Trainer fills it in, DeepSpeed alone does not"
    if job.training.optimizer not in _optimizers():
        yield f"the optimizer {job.training.optimizer} is none of DeepSpeed's own: hand one to deepspeed.initialize"
    if job.training.checkpointing != "none":
        yield "activation checkpointing takes effect where the model calls it, not by ds_config.json"
    if 1 < job.shards < job.data_parallel:
        yield f"sharding groups of {job.shards} replicas: DeepSpeed shards over all {job.data_parallel}"


def _optimizers() -> Mapping[object, str]:
    """Return the types of optimizers by the plan's names."""
    return tool("deepspeed").words("optimizer.type")


def _zero(job: Job) -> dict[str, object]:
    stage = zero_stage(job)
    section: dict[str, object] = {"stage": stage, "overlap_comm": True, "contiguous_gradients": True}
    if job.parallel.offload in {"optimizer", "parameters"}:
        section["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if job.parallel.offload == "parameters":
        section["offload_param"] = {"device": "cpu", "pin_memory": True}
    if stage == 3:
        section["stage3_gather_16bit_weights_on_model_save"] = True
    return section
