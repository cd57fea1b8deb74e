"""One plan in, one estimate out, whatever kind of model it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate.assemble import assemble
from capacity_tui.engine.estimate.classical.work import classical_work
from capacity_tui.engine.estimate.networks.work import network_work
from capacity_tui.engine.estimate.plugin import plugin_work
from capacity_tui.engine.estimate.resolve import ResolvedPlan, job_steps, resolve_plan
from capacity_tui.engine.estimate.result import Estimate, Iteration
from capacity_tui.engine.estimate.serving.resolve import serving_run
from capacity_tui.engine.estimate.serving.serve import serving_estimate
from capacity_tui.engine.estimate.timing.measured import as_measured
from capacity_tui.engine.estimate.transformer.resolve import transformer_run
from capacity_tui.engine.estimate.transformer.training import training_work
from capacity_tui.engine.estimate.work import Work
from capacity_tui.engine.models.classical.specs import ClassicalSpec
from capacity_tui.engine.models.networks.specs import NetworkSpec
from capacity_tui.engine.models.plugins import PluginSpec, plugin_of
from capacity_tui.engine.plan.plan import Plan

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine


@dataclass(frozen=True, slots=True)
class Answer:
    """A plan with every default filled in, and its estimate."""

    plan: Plan
    estimate: Estimate


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
    return Answer(resolved.plan, estimate_resolved(resolved, facts))


def estimate_resolved(resolved: ResolvedPlan, catalog: Catalog) -> Estimate:
    """Estimate a settled plan.

    Raises:
        PlanError: nothing is known about this kind of model.
    """
    plan, shape = resolved.plan, resolved.shape
    if plan.task == "infer" and shape is not None:
        return serving_estimate(serving_run(plan, shape, resolved.cluster, catalog), plan.pricing)
    work = work_of(resolved, catalog)
    if work is None:
        raise PlanError(
            f"{resolved.family.id} cannot be estimated yet",
            hint="transformers can: capacity-tui models --list",
            place=Place(field="model.name"),
        )
    iterations: Mapping[str, Iteration] = {"infer": "batch", "fit": "fit"}
    return assemble(work, resolved.cluster, plan.pricing, iterations.get(str(plan.task), "step"))


def work_of(resolved: ResolvedPlan, catalog: Catalog) -> Work | None:
    """Return a settled plan as neutral work; None where its family does not speak in operators."""
    if isinstance(resolved.spec, ClassicalSpec):
        efficiency = resolved.plan.hardware.efficiency
        return classical_work(resolved.spec, resolved.family.id, resolved.cluster, catalog, efficiency)
    if isinstance(resolved.spec, NetworkSpec):
        steps = job_steps(resolved.plan)
        return network_work(resolved.plan, resolved.spec, resolved.family.id, resolved.cluster, catalog, steps)
    if isinstance(resolved.spec, PluginSpec):
        return plugin_work(resolved.plan, resolved.spec, plugin_of(resolved.family.id), resolved.cluster)
    if resolved.shape is None or resolved.plan.task == "infer":
        return None
    run = transformer_run(resolved.plan, resolved.shape, resolved.cluster, catalog)
    work = training_work(run, job_steps(resolved.plan))
    return as_measured(work, resolved.cluster.device, str(resolved.plan.training.precision))
