"""Which files a plan's framework or engine reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate.resolve import ResolvedPlan
from capacity_tui.engine.machine.generations import Setting
from capacity_tui.engine.present.frameworks import accelerate, deepspeed, megatron, serving, torchtitan, trainer
from capacity_tui.engine.present.frameworks.environment import environment_script
from capacity_tui.engine.present.frameworks.job import Job, job_of

ENVIRONMENT = "environment.sh"
_BY_ACCELERATE = (None, "transformers", "fsdp", "ddp", "deepspeed")
_BY_MEGATRON = ("megatron", "nemo")


def framework_files(resolved: ResolvedPlan, catalog: Catalog, settings: Sequence[Setting] = ()) -> Mapping[str, str]:
    """Return the files that run a plan in its framework or inference engine, by name.

    Args:
        resolved: a plan with nothing open.
        catalog: facts about models.
        settings: what suits the hardware.

    Returns:
        texts by file name; there is always ``environment.sh``, which says why there are no others.
    """
    job = job_of(resolved, catalog)
    found = {} if job is None else dict(_serving(job) if job.plan.task == "infer" else _training(job))
    missing = [] if found else [_why_none(job)]
    return {**found, ENVIRONMENT: environment_script(_as_planned(resolved, settings), missing)}


def _as_planned(resolved: ResolvedPlan, settings: Sequence[Setting]) -> list[Setting]:
    """Return the settings with those that the plan decides as it decides them, and what would suit beside it."""
    training = resolved.plan.training
    if resolved.plan.task in {"infer", "fit"}:
        return list(settings)
    planned = {"compile": "on" if training.compile else "off", "precision": str(training.precision)}
    return [
        Setting(setting.name, planned[setting.name], f"as planned; {setting.value} suits the device: {setting.reason}")
        if setting.value != planned.get(setting.name, setting.value)
        else setting
        for setting in settings
    ]


def _training(job: Job) -> Iterator[tuple[str, str]]:
    framework = job.framework
    staged = framework is None and job.pipeline_parallel > 1
    if job.shape.kind == "decoder" and (framework in _BY_MEGATRON or staged):
        yield megatron.FILE, megatron.megatron_script(job)
    elif framework == "torchtitan" and _has_flavor(job):
        yield torchtitan.FILE, torchtitan.torchtitan_config(job)
    elif framework in _BY_ACCELERATE:
        yield accelerate.FILE, accelerate.accelerate_config(job)
        yield trainer.FILE, trainer.training_arguments(job)
        if accelerate.backend(job) == "DEEPSPEED":
            yield deepspeed.FILE, deepspeed.deepspeed_config(job)


def _serving(job: Job) -> Iterator[tuple[str, str]]:
    engine = job.plan.inference.engine
    if job.shape.kind != "decoder":
        return
    if engine == "vllm":
        yield "vllm_serve.sh", serving.vllm_script(job)
    elif engine == "tensorrt-llm":
        yield from serving.tensorrt_files(job)
    elif engine == "llamacpp":
        yield "llama_server.sh", serving.llamacpp_script(job)


def _has_flavor(job: Job) -> bool:
    return job.on_hub and job.model in torchtitan.FLAVORS


def _why_none(job: Job | None) -> str:
    if job is None:
        return "no other file: this model is no transformer, its library takes parameters in code"
    if job.plan.task == "infer":
        return f"no other file: {job.plan.inference.engine} reads none for a model of kind {job.shape.kind}"
    if job.framework == "torchtitan":
        return f"no other file: {torchtitan.VERSION} has no flavor of {job.model} in this shape"
    return f"no other file: none is known for {job.training.framework} and a model of kind {job.shape.kind}"
