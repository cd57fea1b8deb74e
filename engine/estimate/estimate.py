"""One plan in, one estimate out, whatever kind of model it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, counts, load_catalog
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate.assemble import assemble
from capacity_tui.engine.estimate.classical.work import classical_work
from capacity_tui.engine.estimate.equation import Given, recording
from capacity_tui.engine.estimate.evidence_of import evidence_of
from capacity_tui.engine.estimate.limits import plan_limits
from capacity_tui.engine.estimate.networks.work import network_work
from capacity_tui.engine.estimate.plugin import plugin_work
from capacity_tui.engine.estimate.resolve import ResolvedPlan, job_steps, resolve_plan, steps_of
from capacity_tui.engine.estimate.result import Estimate, Iteration
from capacity_tui.engine.estimate.serving.resolve import serving_run
from capacity_tui.engine.estimate.serving.run import ServingRun
from capacity_tui.engine.estimate.serving.work import serving_work
from capacity_tui.engine.estimate.timing.measured import as_measured
from capacity_tui.engine.estimate.transformer.resolve import transformer_run
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.estimate.transformer.training import training_work
from capacity_tui.engine.estimate.work import Work
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models import PluginSpec, plugin_of
from capacity_tui.engine.models.classical import ClassicalSpec
from capacity_tui.engine.models.networks import NetworkSpec
from capacity_tui.engine.notebook import ShownInNotebooks
from capacity_tui.engine.plan import Plan

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


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
    """Estimate a plan whose fields are not ``auto``.

    Args:
        plan: what to run.
        machine: the detected machine, for plans that run on it.
        catalog: facts; the shipped ones with the user's own by default.

    Raises:
        PlanError, CatalogError, HardwareError: the plan cannot be estimated.
    """
    facts = catalog or load_catalog()
    resolved = resolve_plan(plan, facts, machine)
    return Answer(resolved, estimate_resolved(resolved, facts))


def estimate_resolved(resolved: ResolvedPlan, catalog: Catalog, *, recorded: bool = False) -> Estimate:
    """Estimate a resolved plan.

    Args:
        resolved: the plan.
        catalog: facts.
        recorded: whether the estimate keeps the equations as they were evaluated, to be explained from them.

    Raises:
        PlanError: nothing is known about this kind of model.
    """
    if recorded:
        with recording(given_numbers(resolved.cluster, catalog)) as record:
            return replace(estimate_resolved(resolved, catalog), derivations=record)
    work = work_of(resolved, catalog)
    work = replace(work, evidence=evidence_of(resolved, work, catalog))
    found = assemble(work, resolved.cluster, resolved.plan.pricing, ITERATIONS.get(str(resolved.plan.task), "step"))
    return replace(found, limits=plan_limits(resolved.plan, found))


def given_numbers(cluster: Cluster, catalog: Catalog) -> Iterator[Given]:
    """Yield the numbers that formulas are given, under the names that their ``origins`` use.

    These are ``hardware.<figure>`` (``hardware.peaks`` for every precision), ``counts.<id>``, ``coefficients.<id>`` and
    ``scaling_laws.<field>``.
    """
    for figure, quantity in cluster.figures().items():
        yield Given(f"hardware.{figure.partition('.')[0]}", quantity.value, str(quantity))
    for key, count in counts().items():
        yield Given(f"counts.{key}", count.value, f"counted: {count.source}")
    for key, row in catalog.coefficients.items():
        yield Given(f"coefficients.{key}", row.value, f"{row.name}: {row.source}")
    for law in catalog.scaling_laws.values():
        for field, value in law.model_dump().items():
            if isinstance(value, float):
                yield Given(f"scaling_laws.{field}", value, law.name)


def work_of(resolved: ResolvedPlan, catalog: Catalog) -> Work:
    """Return a resolved plan as neutral work.

    Raises:
        PlanError: nothing is known about this kind of model.
    """
    plan, cluster, family = resolved.plan, resolved.cluster, resolved.family.id
    if isinstance(resolved.spec, ClassicalSpec):
        return classical_work(resolved.spec, family, cluster, catalog, plan.hardware.efficiency)
    if isinstance(resolved.spec, NetworkSpec):
        return network_work(plan, resolved.spec, family, cluster, catalog, job_steps(plan))
    if isinstance(resolved.spec, PluginSpec):
        return plugin_work(plan, resolved.spec, plugin_of(family), cluster)
    if resolved.shape is None:
        hint = "transformers can: capacity-tui models --list"
        raise PlanError(f"{family} cannot be estimated yet", hint=hint, place=Place(field=Key.MODEL_NAME))
    if plan.task == "infer":
        return serving_work(serving_run(plan, resolved.shape, cluster, catalog))
    return transformer_work(transformer_run(plan, resolved.shape, cluster, catalog), plan)


def estimate_run(run: TransformerRun | ServingRun, plan: Plan) -> Estimate:
    """Estimate the run of a transformer, or several as arrays.

    Args:
        run: the run.
        plan: the resolved plan it comes from.
    """
    work = serving_work(run) if isinstance(run, ServingRun) else transformer_work(run, plan)
    return assemble(work, run.cluster, plan.pricing, ITERATIONS.get(str(plan.task), "step"))


def transformer_work(run: TransformerRun, plan: Plan) -> Work:
    """Return the training of a transformer as neutral work, at rates measured on the device where there are any.

    Args:
        run: the run, or several as arrays.
        plan: the resolved plan it comes from.
    """
    work = training_work(run, steps_of(plan.training, run.data.global_batch, run.data.seq_len))
    return as_measured(work, run.cluster.device, str(plan.training.precision))
