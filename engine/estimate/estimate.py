"""One plan in, one estimate out, whatever kind of model it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import Catalog, counts, load_catalog
from capacity_tui.engine.cluster import Cluster, grids
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate.assemble import assemble
from capacity_tui.engine.estimate.derivation import Given, recording
from capacity_tui.engine.estimate.evidence import evidence_of, run_splits, with_numbers
from capacity_tui.engine.estimate.figures.values import plan_limits
from capacity_tui.engine.estimate.memory_estimate import context_bytes
from capacity_tui.engine.estimate.resolve import ResolvedPlan, job_steps, resolve_plan, steps_of
from capacity_tui.engine.estimate.result import Estimate, Iteration
from capacity_tui.engine.estimate.serving.resolve import serving_run
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.timing.roofline import as_measured
from capacity_tui.engine.estimate.transformer.resolve import transformer_run
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.work import ModelFacts, Note, Operator, Phase, Work
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.models import Calculated, ClassicalSpec, ModelPlugin, PluginSpec, Spec, plugin_of
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Evidence
from capacity_tui.engine.units import FP16_BYTES, FP32_BYTES, FP64_BYTES, format_number

# What one run of the work is, by task; an optimizer step where nothing else stands here.
ITERATIONS: Mapping[str, Iteration] = {"infer": "batch", "fit": "fit"}


@dataclass(frozen=True, slots=True)
class Answer(ShownInNotebooks):
    """A plan with every default filled in, what its names stand for, and its estimate."""

    resolved: ResolvedPlan
    estimate: Estimate

    @property
    def plan(self) -> Plan:
        """The plan with every default filled in."""
        return self.resolved.plan


def estimate_plan(plan: Plan, machine: Machine | None = None, catalog: Catalog | None = None) -> Answer:
    """Estimate a plan whose fields are not ``auto``."""
    facts = catalog or load_catalog()
    resolved = resolve_plan(plan, facts, machine)
    return Answer(resolved, estimate_resolved(resolved, facts))


def estimate_resolved(resolved: ResolvedPlan, catalog: Catalog, *, recorded: bool = False) -> Estimate:
    """Estimate a resolved plan; with ``recorded`` it keeps its equations, to be explained from them."""
    if recorded:
        with recording(given_numbers(resolved.cluster, catalog)) as record:
            return replace(estimate_resolved(resolved, catalog), derivations=record)
    work = work_of(resolved, catalog)
    work = replace(work, evidence=evidence_of(resolved, work, catalog))
    estimate = assemble(work, resolved.cluster, resolved.plan.pricing, ITERATIONS.get(str(resolved.plan.task), "step"))
    return replace(estimate, limits=plan_limits(resolved.plan, estimate))


def given_numbers(cluster: Cluster, catalog: Catalog) -> Iterator[Given]:
    """Yield the numbers that formulas are given, under the names that their ``origins`` use.

    These are ``hardware.<figure>`` (``hardware.peaks`` for every precision), ``counts.<id>``, ``coefficients.<id>``,
    ``assumptions.<id>``, ``grids`` and ``scaling_laws.<field>``.
    """
    for figure, quantity in cluster.figures().items():
        yield Given(f"hardware.{figure.partition('.')[0]}", quantity.value, str(quantity))
    for key, count in counts().items():
        yield Given(f"counts.{key}", count.value, f"counted: {count.source}")
    for key, row in catalog.coefficients.items():
        yield Given(f"coefficients.{key}", row.value, f"{row.name}: {row.source}")
    for key, assumption in catalog.assumptions.items():
        yield Given(f"assumptions.{key}", assumption.value, f"{assumption.name}: {assumption.source}")
    for grid in grids().values():
        yield Given("grids", grid.grams_per_kwh, grid.words)
    for law in catalog.scaling_laws.values():
        for field, value in law.model_dump().items():
            if isinstance(value, float):
                yield Given(f"scaling_laws.{field}", value, law.name)


def work_of(resolved: ResolvedPlan, catalog: Catalog) -> Work:
    """Return a resolved plan as neutral work; raises PlanError if nothing is known about this kind of model."""
    plan, cluster = resolved.plan, resolved.cluster
    if resolved.shape is None:
        return _work_of_spec(resolved, catalog)
    if plan.is_inference:
        return served_work(serving_run(plan, resolved.shape, cluster, catalog))
    return transformer_work(transformer_run(plan, resolved.shape, cluster, catalog), plan)


def _work_of_spec(resolved: ResolvedPlan, catalog: Catalog) -> Work:
    """Return the work of what is no transformer; what counts it is loaded for its own kind alone."""
    from capacity_tui.engine.estimate.classical.work import classical_work  # noqa: PLC0415 - see above
    from capacity_tui.engine.estimate.networks.work import network_work  # noqa: PLC0415
    from capacity_tui.engine.models.networks import NetworkSpec  # noqa: PLC0415

    plan, cluster, family = resolved.plan, resolved.cluster, resolved.family.id
    if isinstance(resolved.spec, ClassicalSpec):
        return classical_work(resolved.spec, family, cluster, catalog, plan.hardware.efficiency)
    if isinstance(resolved.spec, NetworkSpec):
        return network_work(plan, resolved.spec, family, cluster, catalog, job_steps(plan))
    if isinstance(resolved.spec, PluginSpec):
        return plugin_work(plan, resolved.spec, plugin_of(family), cluster)
    hint = "transformers can: capacity-tui models --list"
    raise PlanError(f"{family} cannot be estimated yet", hint=hint, place=Place(field=Key.MODEL_NAME))


def estimate_run(run: TransformerRun | ServingRun, plan: Plan, evidence: Evidence | None = None) -> Estimate:
    """Estimate the run of a transformer, or several as arrays; without evidence figures have no ranges."""
    work = served_work(run) if isinstance(run, ServingRun) else transformer_work(run, plan)
    if evidence is not None:
        numbers = with_numbers(evidence, work, run.cluster.devices, run_splits(run.layout))
        work = replace(work, evidence=numbers)
    return assemble(work, run.cluster, plan.pricing, ITERATIONS.get(str(plan.task), "step"))


def served_work(run: ServingRun) -> Work:
    """Return the serving of a transformer as neutral work; what counts it is loaded for such plans alone."""
    from capacity_tui.engine.estimate.serving.work import serving_work  # noqa: PLC0415 - see above

    return serving_work(run)


def transformer_work(run: TransformerRun, plan: Plan) -> Work:
    """Return the training of a transformer, or several, as neutral work, at measured rates where there are any."""
    from capacity_tui.engine.estimate.transformer.training import training_work  # noqa: PLC0415 - of its kind alone

    work = training_work(run, steps_of(plan.training, run.data.global_batch, run.data.sequences * run.data.seq_len))
    return as_measured(work, run.cluster.device, str(plan.training.precision))


METHOD = "FLOPs and bytes of the plug-in by roofline"

WIDTHS = {
    "fp64": FP64_BYTES,
    "fp32": FP32_BYTES,
    "tf32": FP32_BYTES,
    "bf16": FP16_BYTES,
    "fp16": FP16_BYTES,
    "fp8": 1.0,
    "int8": 1.0,
}


def plugin_work(plan: Plan, spec: Spec, plugin: ModelPlugin, cluster: Cluster) -> Work:
    """Return one training of a plug-in's model, as one step; raises PlanError where the plug-in failed."""
    calculated = plugin.calculated(spec)
    device = cluster.device
    precision = device.native(str(getattr(spec, "precision", "fp32")))
    precision = precision if precision in device.peaks else "fp32"
    share = plan.hardware.efficiency or device.gemm_reach(precision)
    memory = _memory(calculated, WIDTHS.get(precision, FP32_BYTES))
    peak = sum(memory.values())
    traffic = peak if calculated.traffic_bytes is None else calculated.traffic_bytes
    training = Operator(
        name=calculated.algorithm or plugin.name,
        part="compute",
        phase="forward",
        where="layer",
        flops=calculated.train_flops,
        bytes=traffic,
        rate=device.peak(precision) * share,
        bandwidth=device.bandwidth * device.efficiency.stream,
    )
    on_cpu = device.is_processor
    return Work(
        facts=ModelFacts(
            calculated.params,
            calculated.params,
            calculated.infer_flops_per_sample,
            "sample",
            calculated.complexity_class,
        ),
        memory=memory,
        host_bytes=0.0,
        places={"while it trains": peak},
        fragmentation=0.0,
        context_bytes=context_bytes(0.0 if on_cpu else device.efficiency.context_bytes, 0.0, 0.0),
        phases=(Phase("step", (training,), fixed_seconds=device.efficiency.kernel_launch_seconds),),
        units_per_step=_samples(spec),
        units_per_sample=1.0,
        steps=1.0,
        model_flops_per_step=calculated.train_flops,
        peak_flops=device.peak(precision),
        method=f"{METHOD} {plugin.package}",
        assumed=(*cluster.assumed, *_assumed(calculated)),
        warnings=tuple(_warnings(cluster)),
    )


def _memory(calculated: Calculated, element_bytes: float) -> dict[str, float]:
    model = calculated.params * element_bytes
    if calculated.memory_bytes is None:
        return {"model": model}
    return {"model": min(model, calculated.memory_bytes), "work": max(0.0, calculated.memory_bytes - model)}


def _samples(spec: Spec) -> float:
    """Return how many samples one training passes: ``n`` where the plug-in has such a number, else one."""
    samples = getattr(spec, "n", 1)
    return float(samples) if isinstance(samples, int | float) else 1.0


def _assumed(calculated: Calculated) -> Iterator[str]:
    if calculated.memory_bytes is None:
        yield "memory of the parameters alone"
    if calculated.traffic_bytes is None:
        yield "memory passed through once"


def _warnings(cluster: Cluster) -> Iterator[Note]:
    devices = float(np.max(cluster.devices))
    if devices > 1:
        detail = f"A model of a plug-in trains on one of {format_number(devices)} devices; the others wait and cost."
        yield Note("one_device", "One device does the work", detail)
