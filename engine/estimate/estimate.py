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
from capacity_tui.engine.estimate.resolve import Settled, job_steps, settle
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
    settled = settle(plan, facts, machine)
    return Answer(settled.plan, estimate_settled(settled, facts))


def estimate_settled(settled: Settled, catalog: Catalog) -> Estimate:
    """Estimate a settled plan.

    Raises:
        PlanError: nothing is known about this kind of model.
    """
    plan, shape = settled.plan, settled.shape
    if plan.task == "infer" and shape is not None:
        return serving_estimate(serving_run(plan, shape, settled.cluster, catalog), plan.pricing)
    work = work_of(settled, catalog)
    if work is None:
        raise PlanError(
            f"{settled.family.id} cannot be estimated yet",
            hint="transformers can: capacity-tui models --list",
            place=Place(field="model.name"),
        )
    iterations: Mapping[str, Iteration] = {"infer": "batch", "fit": "fit"}
    return assemble(work, settled.cluster, plan.pricing, iterations.get(str(plan.task), "step"))


def work_of(settled: Settled, catalog: Catalog) -> Work | None:
    """Return a settled plan as neutral work; None where its family does not speak in operators."""
    if isinstance(settled.spec, ClassicalSpec):
        efficiency = settled.plan.hardware.efficiency
        return classical_work(settled.spec, settled.family.id, settled.cluster, catalog, efficiency)
    if isinstance(settled.spec, NetworkSpec):
        steps = job_steps(settled.plan)
        return network_work(settled.plan, settled.spec, settled.family.id, settled.cluster, catalog, steps)
    if isinstance(settled.spec, PluginSpec):
        return plugin_work(settled.plan, settled.spec, plugin_of(settled.family.id), settled.cluster)
    if settled.shape is None or settled.plan.task == "infer":
        return None
    run = transformer_run(settled.plan, settled.shape, settled.cluster, catalog)
    work = training_work(run, job_steps(settled.plan))
    return as_measured(work, settled.cluster.device, str(settled.plan.training.precision))
