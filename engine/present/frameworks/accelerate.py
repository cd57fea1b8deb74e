"""Hugging Face Accelerate's launch file. Names as in version 1.14 (commands/config, parallelism_config.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from capacity_tui.engine.models import checkpointing
from capacity_tui.engine.present.frameworks import deepspeed
from capacity_tui.engine.present.frameworks.job import Job, kernel_remarks, layout_remarks, software_remarks
from capacity_tui.engine.present.frameworks.text import as_yaml

VERSION = "Accelerate 1.14"
FILE = "accelerate.yaml"
Backend = Literal["NO", "MULTI_CPU", "MULTI_GPU", "FSDP", "DEEPSPEED"]
_MIXED = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "fp4": "bf16"}


def accelerate_config(job: Job) -> str:
    """Return the file for ``accelerate launch --config_file``."""
    chosen = backend(job)
    data: dict[str, object] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": chosen,
        "num_machines": job.nodes,
        "num_processes": job.devices,
        "machine_rank": 0,
        "main_training_function": "main",
        "rdzv_backend": "static",
        "same_network": True,
        "use_cpu": job.on_cpu,
    }
    if chosen == "DEEPSPEED":
        # Accelerate refuses a second word on precision beside a DeepSpeed file.
        data["deepspeed_config"] = _deepspeed(job)
    else:
        data["mixed_precision"] = _MIXED.get(job.precision, "no")
    if job.precision == "fp8" and chosen != "DEEPSPEED":
        data["fp8_config"] = {"backend": "TE", "fp8_format": "HYBRID"}
    if chosen == "FSDP":
        data["fsdp_config"] = fsdp_section(job)
        data["parallelism_config"] = {
            "parallelism_config_dp_replicate_size": job.data_parallel // shards(job),
            "parallelism_config_dp_shard_size": shards(job),
            "parallelism_config_tp_size": job.tensor_parallel,
            "parallelism_config_cp_size": job.context_parallel,
        }
    heading = [
        f"Written for {VERSION}" + (f" with {deepspeed.VERSION}." if chosen == "DEEPSPEED" else "."),
        f"accelerate launch --config_file {FILE} train.py, on each of {job.nodes} nodes with its --machine_rank"
        " and --main_process_ip."
        if job.nodes > 1
        else f"accelerate launch --config_file {FILE} train.py",
    ]
    return as_yaml(heading, list(_remarks(job)), data)


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


def _deepspeed(job: Job) -> dict[str, object]:
    section: dict[str, object] = {
        "deepspeed_config_file": deepspeed.FILE,
        "zero3_init_flag": deepspeed.zero_stage(job) == 3,
    }
    # Any other launcher reaches the other nodes itself and wants a list of them.
    return section | {"deepspeed_multinode_launcher": "standard"} if job.nodes > 1 else section


def fsdp_section(job: Job) -> dict[str, object]:
    """Return how FSDP shards the plan."""
    return {
        "fsdp_version": 2,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_reshard_after_forward": job.zero == 3,
        "fsdp_offload_params": job.parallel.offload in {"optimizer", "parameters"},
        "fsdp_activation_checkpointing": recomputes_layers(job),
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        # Ranks that waited for the first to quantize the base would wait for ever.
        "fsdp_cpu_ram_efficient_loading": not has_quantized_base(job),
    }


def has_quantized_base(job: Job) -> bool:
    """Return whether adapters are trained beside a base in fewer bits."""
    adapter = job.training.adapter
    return job.training.quantization is not None or (adapter is not None and adapter.kind == "qlora")


def layout_limits(job: Job) -> Iterator[str]:
    """Yield what this launcher, and tools that build on it, cannot do of the plan's layout."""
    chosen = backend(job)
    if job.pipeline_parallel > 1:
        yield f"{job.pipeline_parallel} pipeline stages: Accelerate has none, so this does not run as planned"
    if job.expert_parallel > 1:
        yield f"{job.expert_parallel}-way expert parallel: Accelerate has none"
    if chosen == "DEEPSPEED" and job.context_parallel > 1:
        yield f"{job.context_parallel}-way context parallel: DeepSpeed has sequence parallel, set up in code"
    if chosen == "FSDP" and job.zero in {0, 1}:
        yield f"ZeRO stage {job.zero}: FSDP shards gradients too (stage 2 is written)"
    if chosen == "FSDP" and job.parallel.offload == "optimizer":
        yield "FSDP offloads parameters and gradients together with the optimizer"
    if chosen == "MULTI_GPU" and job.parallel.offload == "activations":
        yield "offload of activations: wrap the step in torch.autograd.graph.save_on_cpu"


def _remarks(job: Job) -> Iterator[str]:
    yield from software_remarks(job)
    yield from layout_remarks(job)
    yield from kernel_remarks(job)
    yield from layout_limits(job)
    if job.training.precision == "fp4":
        yield "fp4: bf16 is written"
    if backend(job) == "DEEPSPEED":
        yield from deepspeed.deepspeed_remarks(job)
        if job.training.precision == "fp8":
            yield "fp8: DeepSpeed's file says bf16"
