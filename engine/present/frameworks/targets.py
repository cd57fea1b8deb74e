"""The menu of exports: what a plan can be written for, and which files its framework or engine reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from capacity_tui.engine.catalog import Catalog, key_of, named_release, nearest
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Answer, Estimate, ResolvedPlan, figure
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.machine import Setting, power_limit_command
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.imports import kept_plan
from capacity_tui.engine.present.frameworks import pretrainers, trainer
from capacity_tui.engine.present.frameworks.commands import (
    DEFAULT_COMMAND,
    LAUNCHERS,
    SERVERS,
    TENSORRT_OPTIONS,
    launch_command,
    serving_files,
    tensorrt_options,
)
from capacity_tui.engine.present.frameworks.exports import (
    as_yaml,
    environment_script,
    exported,
    known_values,
    script,
    yaml_lines,
)
from capacity_tui.engine.present.frameworks.job import NETWORK, Job, job_of, layout_remarks
from capacity_tui.engine.present.frameworks.low_rank import (
    AXOLOTL_FILE,
    LLAMAFACTORY_FILE,
    TORCHTUNE_FILE,
    TORCHTUNE_VERSION,
    LowRank,
    axolotl_config,
    builders,
    llamafactory_config,
    low_rank,
    torchtune_config,
    trl_files,
)
from capacity_tui.engine.present.frameworks.orchestrators import SPANS_NODES, Container, Wishes, container_of
from capacity_tui.engine.present.frameworks.pretrainers import (
    TORCHTITAN_FILE,
    TORCHTITAN_VERSION,
    flavors,
    torchtitan_config,
)
from capacity_tui.engine.present.summary import headline
from capacity_tui.engine.runs.guard import CHECKPOINT, filled_words, values_of
from capacity_tui.engine.solve import EstimatedPlan, as_planned
from capacity_tui.engine.units import HOUR_SECONDS

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
        tool: one of ``adapter_tools`` to write for instead of what the plan names.

    Returns:
        texts by file name; there is always ``environment.sh``, which says why there are no others.
    """
    job = job_of(resolved, catalog)
    data = {} if job is None else dict(_serving(job) if job.plan.is_inference else _training(job, tool))
    missing = [] if data else [_why_none(job)]
    kept = "" if job is None else kept_plan(job.plan, job.steps)
    data = {name: text if name == trainer.DEEPSPEED_FILE else f"{text}\n{kept}" for name, text in data.items()}
    planned = tuple(as_planned(resolved.plan, settings))
    return {**data, ENVIRONMENT: environment_script(planned, missing, _power_limit(resolved, catalog))}


def adapter_tools(resolved: ResolvedPlan, catalog: Catalog) -> tuple[str, ...]:
    """Return the tools whose files can fine-tune the adapters of a plan; none for a plan without."""
    job = job_of(resolved, catalog)
    return () if job is None else tuple(tool for target, tool in TOOLS.items() if not _why_not_tuned(target, job))


def _power_limit(resolved: ResolvedPlan, catalog: Catalog) -> str | None:
    """Return the command that keeps devices inside the share of power a plan watches for; None where none is asked."""
    device, share = resolved.cluster.device, resolved.plan.watch.power_share
    row = catalog.accelerators.get(device.id)
    if row is None or device.tdp_watts is None or not isinstance(share, float) or share >= 1.0:
        return None
    return power_limit_command(row.vendor, mean(device.tdp_watts) * share)


def _training(job: Job, tool: str | None) -> Iterator[tuple[str, str]]:
    framework, adapter = job.framework, low_rank(job) if job.is_decoder else None
    named = _tool(tool or job.training.framework)
    if adapter is not None and (named is not None or framework in _BY_ACCELERATE):
        yield from _adapters(job, adapter, named or TRL)
        return
    staged = framework is None and job.pipeline_parallel > 1
    if job.is_decoder and (framework in _BY_MEGATRON or staged):
        yield pretrainers.MEGATRON_FILE, pretrainers.megatron_script(job)
    elif framework == "torchtitan" and job.on_hub and job.model in flavors():
        yield TORCHTITAN_FILE, torchtitan_config(job)
    elif framework in _BY_ACCELERATE and job.kind != NETWORK:
        yield trainer.ACCELERATE_FILE, trainer.accelerate_config(job)
        yield trainer.FILE, trainer.training_arguments(job)
        if trainer.backend(job) == "DEEPSPEED":
            yield trainer.DEEPSPEED_FILE, trainer.deepspeed_config(job)


def _adapters(job: Job, adapter: LowRank, tool: str) -> Iterator[tuple[str, str]]:
    if tool == TORCHTUNE:
        if _has_builder(job):
            yield TORCHTUNE_FILE, torchtune_config(job, adapter)
        return
    split, job = job.tensor_parallel, job if tool == AXOLOTL else job.without_tensor_parallel()
    if tool == AXOLOTL:
        yield AXOLOTL_FILE, axolotl_config(job, adapter)
    elif tool == LLAMA_FACTORY:
        yield LLAMAFACTORY_FILE, llamafactory_config(job, adapter)
    else:
        yield from trl_files(job, adapter, split)
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
    if job.is_decoder:
        yield from serving_files(engine, job)


def _has_builder(job: Job) -> bool:
    return job.on_hub and job.model in builders()


def _why_none(job: Job | None) -> str:
    if job is None or (job.kind == NETWORK and not job.plan.is_inference):
        return "no other file: this model is no transformer, its library takes parameters in code"
    if job.plan.is_inference:
        return f"no other file: {job.plan.inference.engine} reads none for a model of kind {job.kind}"
    if job.framework == "torchtitan":
        return f"no other file: {TORCHTITAN_VERSION} has no flavor of {job.model} in this shape"
    if _tool(job.training.framework) == TORCHTUNE and low_rank(job) is not None:
        return f"no other file: {TORCHTUNE_VERSION} is not known to have a builder of {job.model} with adapters"
    return f"no other file: none is known for {job.training.framework} and a model of kind {job.kind}"


ORCHESTRATORS: Mapping[str, str] = MappingProxyType(
    {"kubernetes": "Kubernetes", "skypilot": "SkyPilot", "dstack": "dstack", "compose": "Docker Compose"}
)
TOOLS: Mapping[str, str] = MappingProxyType({tool.lower(): tool for tool in (TRL, AXOLOTL, LLAMA_FACTORY, TORCHTUNE)})
TARGETS: Mapping[str, str] = MappingProxyType(
    {
        **TOOLS,
        **ORCHESTRATORS,
        **{name: name for name in LAUNCHERS},
        "vllm": "vLLM",
        "sglang": "SGLang",
        "tensorrt-llm": "TensorRT-LLM",
        "llamacpp": "llama.cpp",
        "ollama": "Ollama",
        "tgi": "Text Generation Inference",
    }
)
"""What a plan can be written for: the name of a command, and that for people."""
NO_WISHES = Wishes()


def targets_of(answer: Answer, catalog: Catalog) -> tuple[str, ...]:
    """Return what a plan can be written for."""
    job = job_of(answer.resolved, catalog)
    return () if job is None else tuple(name for name in TARGETS if not _why_not(name, job))


def export_files(target: str, answer: Answer, catalog: Catalog, wishes: Wishes = NO_WISHES) -> Mapping[str, str]:
    """Return the files that start a plan with a target, by name.

    Args:
        answer: the plan, with nothing open, and its estimate.
        wishes: what the plan does not say of where it runs.

    Raises:
        PlanError: there is no such target, or it cannot run the plan.
    """
    if target not in TARGETS:
        near = nearest(target, TARGETS)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(TARGETS)}"
        raise PlanError(f"no export is called {target!r}"[:200], hint=hint)
    job = job_of(answer.resolved, catalog)
    why = "its library takes parameters in code" if job is None else _why_not(target, job)
    if job is None or why:
        possible = targets_of(answer, catalog)
        hint = f"possible: {', '.join(possible)}" if possible else ""
        raise PlanError(f"{TARGETS[target]} cannot run this plan: {why}", hint=hint)
    heading = [headline(answer.plan, answer.estimate), *_estimate_lines(answer)]
    files = dict(_files(target, heading, job, answer, catalog, wishes))
    kept = kept_plan(job.plan, job.steps)
    return {name: text if name.endswith(".json") else f"{text}\n{kept}" for name, text in files.items()}


def _files(
    target: str, heading: Sequence[str], job: Job, answer: Answer, catalog: Catalog, wishes: Wishes
) -> Iterator[tuple[str, str]]:
    values = values_of(job.plan)
    if target in ORCHESTRATORS:
        words = filled_words(wishes.words, {**values, CHECKPOINT: f"{{{CHECKPOINT}}}"})
        container = container_of(answer, job, catalog, replace(wishes, words=words))
        if target == "kubernetes":
            yield from _kubernetes_files(heading, container)
        else:
            if target == "skypilot":
                container = replace(container, alternatives=tuple(_alternatives(answer, container, catalog)))
            yield from _one_file(target, f"{target}.yaml", heading, container)
    elif target in LAUNCHERS:
        body = launch_command(target, job, filled_words(wishes.words, values))
        yield f"{target}.sh", script([*heading, f"Written for {LAUNCHERS[target]}."], [], body)
        if target == "accelerate":
            yield trainer.ACCELERATE_FILE, trainer.accelerate_config(job)
        if target == "deepspeed" or (target == "accelerate" and trainer.backend(job) == "DEEPSPEED"):
            yield trainer.DEEPSPEED_FILE, trainer.deepspeed_config(job)
    elif target in TOOLS and (adapter := low_rank(job)) is not None:
        yield from _adapters(job, adapter, TOOLS[target])
    else:
        yield from serving_files(target, job)


def _kubernetes_files(heading: Sequence[str], container: Container) -> Iterator[tuple[str, str]]:
    """Yield the manifests of a plan: a job and a TrainJob of what trains, a deployment or a group of what serves."""
    several = container.job.nodes > 1
    if container.trains:
        yield "job.yaml", _manifests(heading, container, "kubernetes_jobset" if several else "kubernetes_job")
        yield "trainjob.yaml", _manifests(heading, container, "kubernetes_trainjob")
    elif several:
        yield "leaderworkerset.yaml", _manifests(heading, container, "kubernetes_leaderworkerset", _SERVICE)
    else:
        yield "deployment.yaml", _manifests(heading, container, "kubernetes_deployment", _SERVICE)


_SERVICE = "kubernetes_service"


def _one_file(block: str, name: str, heading: Sequence[str], container: Container) -> Iterator[tuple[str, str]]:
    """Yield the one file of an orchestrator, by the rows of a block."""
    yield name, as_yaml(heading, _remarks(container), exported(block, container.job, container=container))
    if container.software == "tensorrt-llm" and not container.trains:
        yield TENSORRT_OPTIONS, tensorrt_options(container.job)


def _manifests(heading: Sequence[str], container: Container, *blocks: str) -> str:
    first, *others = (exported(block, container.job, container=container) for block in blocks)
    text = as_yaml(heading, _remarks(container), first)
    return "---\n".join((text, *(yaml_lines(other) for other in others)))


def _remarks(container: Container) -> list[str]:
    remarks = list(layout_remarks(container.job))
    if container.trains:
        given = container.wishes.words
        remarks += [] if given else [f"no command behind --: {' '.join(DEFAULT_COMMAND)} stands for your training"]
    else:
        remarks += SERVERS[container.software].remarks(container.job)
    if container.alternatives:
        devices = ", ".join(container.alternatives)
        remarks.append(f"{devices}: as good where there is no {container.gpu}, no slower and no dearer by known prices")
    return remarks


def _alternatives(answer: Answer, container: Container, catalog: Catalog) -> Iterator[str]:
    """Yield devices, as clouds call them, that hold the plan as surely in its layout, no slower and for no more money.

    A cloud takes the cheapest hour of several: of slower devices that would be a job that costs more.
    """
    own, seen = answer.estimate, {container.gpu}
    case = EstimatedPlan(answer.plan, answer.resolved, own, catalog)
    most_seconds, most_dollars = _step(own)
    for device in known_values("cloud_names", "accelerator") if container.gpus and most_dollars else ():
        word, row = replace(container, device=str(device)).gpu, catalog.accelerators.get(str(device))
        if row is None or row.vendor != container.vendor or word in seen:
            continue
        candidate = case.evaluate({Key.HARDWARE_NAME: device})
        job = None if candidate.filled is None else job_of(candidate.filled.resolved, catalog)
        if job is None or (job.nodes, job.per_node) != (container.job.nodes, container.job.per_node):
            continue
        seconds, dollars = _step(candidate.estimate)
        is_as_sure = candidate.estimate.verdict.gravity <= own.verdict.gravity
        if is_as_sure and seconds <= most_seconds and dollars is not None and dollars <= (most_dollars or 0.0):
            seen.add(word)
            yield word


def _step(estimate: Estimate) -> tuple[float, float | None]:
    """Return what a step or batch takes: seconds, and dollars where prices are known."""
    seconds = mean(estimate.computation.step_seconds.value)
    hourly = figure(estimate, Figure.COST_USD_PER_HOUR).number
    return seconds, None if hourly is None else seconds * hourly / HOUR_SECONDS


def _why_not(target: str, job: Job) -> str:
    """Return why a target cannot run a plan; empty where it can."""
    serves = job.plan.is_inference
    if target in LAUNCHERS:
        return "it starts trainings, and this plan serves" if serves else ""
    if target in ORCHESTRATORS:
        return _why_not_there(target, job)
    if target in TOOLS:
        return _why_not_tuned(target, job)
    if not serves:
        return "it serves models, and this plan trains one"
    return "" if job.is_decoder else f"it serves no model of kind {job.kind}"


def _why_not_tuned(target: str, job: Job) -> str:
    """Return why a tool cannot fine-tune the adapters of a plan; empty where it can."""
    if job.plan.is_inference or low_rank(job) is None or not job.is_decoder:
        return "its file is written for low-rank adapters of a decoder, which this plan does not train"
    if TOOLS[target] == TORCHTUNE and not _has_builder(job):
        return f"{TORCHTUNE_VERSION} is not known to have a builder of {job.model} with adapters"
    return ""


def _why_not_there(target: str, job: Job) -> str:
    """Return why an orchestrator cannot run a plan; empty where it can."""
    engine, several = named_release(job.plan.inference.engine)[0], job.nodes > 1
    if job.plan.is_inference and engine not in SERVERS:
        return f"no command is known that serves with {engine}: inference.engine is one of {', '.join(SERVERS)}"
    if job.plan.is_inference and several and (engine not in SPANS_NODES or target == "dstack"):
        return f"the plan serves on {job.nodes} nodes, and no command is known that joins them"
    if target == "compose" and several:
        return f"Compose starts containers on one machine, and the plan has {job.nodes} nodes"
    return ""


def _estimate_lines(answer: Answer) -> Iterator[str]:
    """Yield what was estimated of a plan, for the head of its files."""
    estimate = answer.estimate
    yield f"Estimated: {estimate.verdict_text}"
    for key in (
        Figure.ESTIMATED_TRAIN_TIME_SECONDS,
        Figure.RELIABILITY_CALENDAR_SECONDS,
        Figure.COST_USD,
        Figure.COST_USD_PER_HOUR,
    ):
        value = figure(estimate, key)
        if value.number is not None:
            yield f"  {value.title}: {value.text}" + (f" ({value.range_text})" if value.range_text else "")
