"""Which files a plan's framework or engine reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from capacity_tui.engine.catalog import Catalog, key_of, named_release
from capacity_tui.engine.estimate import ResolvedPlan
from capacity_tui.engine.machine import Setting, power_limit_command
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.imports import kept_plan
from capacity_tui.engine.present.frameworks import low_rank as axolotl
from capacity_tui.engine.present.frameworks import low_rank as llamafactory
from capacity_tui.engine.present.frameworks import megatron, serving, torchtitan, torchtune, trainer, trl
from capacity_tui.engine.present.frameworks.exports import environment_script
from capacity_tui.engine.present.frameworks.job import NETWORK, Job, job_of
from capacity_tui.engine.present.frameworks.low_rank import LowRank, low_rank
from capacity_tui.engine.solve import as_planned

ENVIRONMENT = "environment.sh"
_BY_ACCELERATE = (None, "transformers", "fsdp", "ddp", "deepspeed")
_BY_MEGATRON = ("megatron", "nemo")
TRL, AXOLOTL, LLAMA_FACTORY, TORCHTUNE = "TRL", "Axolotl", "LLaMA-Factory", "torchtune"
"""Tools that fine-tune adapters, as plans may name them."""


def framework_files(
    resolved: ResolvedPlan, catalog: Catalog, settings: Sequence[Setting] = (), tool: str | None = None
) -> Mapping[str, str]:
    """Return the files that run a plan in its framework or inference engine, by name.

    Args:
        resolved: a plan with nothing open.
        catalog: facts about models.
        settings: what suits the hardware.
        tool: one of ``adapter_tools`` to write for instead of what the plan names.

    Returns:
        texts by file name; there is always ``environment.sh``, which says why there are no others.
    """
    job = job_of(resolved, catalog)
    data = {} if job is None else dict(_serving(job) if job.plan.task == "infer" else _training(job, tool))
    missing = [] if data else [_why_none(job)]
    kept = "" if job is None else kept_plan(job.plan, job.steps)
    data = {name: text if name == trainer.DEEPSPEED_FILE else f"{text}\n{kept}" for name, text in data.items()}
    planned = tuple(as_planned(resolved.plan, settings))
    return {**data, ENVIRONMENT: environment_script(planned, missing, _power_limit(resolved, catalog))}


def adapter_tools(resolved: ResolvedPlan, catalog: Catalog) -> tuple[str, ...]:
    """Return the tools whose files can fine-tune the adapters of a plan; none for a plan without."""
    job = job_of(resolved, catalog)
    if job is None or job.plan.task == "infer" or low_rank(job) is None or job.kind != "decoder":
        return ()
    return (TRL, AXOLOTL, LLAMA_FACTORY, *([TORCHTUNE] if _has_builder(job) else []))


def _power_limit(resolved: ResolvedPlan, catalog: Catalog) -> str | None:
    """Return the command that keeps devices inside the share of power a plan watches for; None where none is asked."""
    device, share = resolved.cluster.device, resolved.plan.watch.power_share
    row = catalog.accelerators.get(device.id)
    if row is None or device.tdp_watts is None or not isinstance(share, float) or share >= 1.0:
        return None
    return power_limit_command(row.vendor, mean(device.tdp_watts) * share)


def _training(job: Job, tool: str | None) -> Iterator[tuple[str, str]]:
    framework, adapter = job.framework, low_rank(job) if job.kind == "decoder" else None
    named = _tool(tool or job.training.framework)
    if adapter is not None and (named is not None or framework in _BY_ACCELERATE):
        yield from _adapters(job, adapter, named or TRL)
        return
    staged = framework is None and job.pipeline_parallel > 1
    if job.kind == "decoder" and (framework in _BY_MEGATRON or staged):
        yield megatron.FILE, megatron.megatron_script(job)
    elif framework == "torchtitan" and _has_flavor(job):
        yield torchtitan.FILE, torchtitan.torchtitan_config(job)
    elif framework in _BY_ACCELERATE and job.kind != NETWORK:
        yield trainer.ACCELERATE_FILE, trainer.accelerate_config(job)
        yield trainer.FILE, trainer.training_arguments(job)
        if trainer.backend(job) == "DEEPSPEED":
            yield trainer.DEEPSPEED_FILE, trainer.deepspeed_config(job)


def _adapters(job: Job, adapter: LowRank, tool: str) -> Iterator[tuple[str, str]]:
    """Yield the files of one of the tools that fine-tune adapters."""
    if tool == TORCHTUNE:
        if _has_builder(job):
            yield torchtune.FILE, torchtune.torchtune_config(job, adapter)
        return
    split, job = job.tensor_parallel, job if tool == AXOLOTL else job.without_tensor_parallel()
    if tool == AXOLOTL:
        yield axolotl.FILE, axolotl.axolotl_config(job, adapter)
    elif tool == LLAMA_FACTORY:
        yield llamafactory.LLAMAFACTORY_FILE, llamafactory.llamafactory_config(job, adapter)
    else:
        yield from trl.trl_files(job, adapter, split)
    if tool == TRL or (tool == LLAMA_FACTORY and trainer.backend(job) == "FSDP"):
        yield trainer.ACCELERATE_FILE, trainer.accelerate_config(job)
    if trainer.backend(job) == "DEEPSPEED":
        yield trainer.DEEPSPEED_FILE, trainer.deepspeed_config(job)


def _tool(name: str | None) -> str | None:
    """Return the tool that a plan names, None where it names other software."""
    tools = {key_of(tool): tool for tool in (AXOLOTL, LLAMA_FACTORY, TORCHTUNE, TRL)}
    return None if name is None else tools.get(key_of(name))


def _serving(job: Job) -> Iterator[tuple[str, str]]:
    engine, _ = named_release(job.plan.inference.engine)
    if job.kind == "decoder":
        yield from serving.serving_files(engine, job)


def _has_flavor(job: Job) -> bool:
    return job.on_hub and job.model in torchtitan.flavors()


def _has_builder(job: Job) -> bool:
    return job.on_hub and job.model in torchtune.BUILDERS


def _why_none(job: Job | None) -> str:
    if job is None or (job.kind == NETWORK and job.plan.task != "infer"):
        return "no other file: this model is no transformer, its library takes parameters in code"
    if job.plan.task == "infer":
        return f"no other file: {job.plan.inference.engine} reads none for a model of kind {job.kind}"
    if job.framework == "torchtitan":
        return f"no other file: {torchtitan.VERSION} has no flavor of {job.model} in this shape"
    if _tool(job.training.framework) == TORCHTUNE and low_rank(job) is not None:
        return f"no other file: {torchtune.VERSION} is not known to have a builder of {job.model} with adapters"
    return f"no other file: none is known for {job.training.framework} and a model of kind {job.kind}"
