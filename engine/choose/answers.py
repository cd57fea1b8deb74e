"""The questions users ask of a plan that may leave fields open: the balanced mode fills those."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.choose.advice.advice import notes
from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.modes.modes import fill
from capacity_tui.engine.choose.scaling import scalability
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import example_names, example_text, load_plan, plan_from_text, read_source
from capacity_tui.engine.plan.imports import import_plan, is_of_tool

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


def answer(plan: Plan, machine: Machine | None = None, catalog: Catalog | None = None) -> Answer:
    """Return a plan with everything filled in, and its estimate with advice and, if it asks for it, scalability.

    Args:
        plan: what to run; fields that are ``auto`` get the balanced mode's values.

    Raises:
        CapacityError: the plan cannot be estimated; the message names field and remedy.
    """
    facts = catalog or load_catalog()
    filled = fill(plan, "balanced", machine, facts)
    resolved, estimate = filled.resolved, filled.annotated_estimate
    case = EstimatedPlan.of(plan, filled, machine)
    recommendations, warnings = notes(case)
    advised = replace(
        estimate,
        recommendations=recommendations,
        warnings=(*estimate.warnings, *warnings),
        scalability=scalability(case),
    )
    return Answer(resolved, advised)


def step_seconds(plan: Plan | Path | str) -> float:
    """Return the seconds of one batch: an optimizer step of training, or a batch served.

    Args:
        plan: a plan, its file, a configuration of another tool, or the name of an example; ``detected`` hardware is
            looked at.

    Raises:
        CapacityError: there is no such plan, or it cannot be estimated.
    """
    loaded = plan if isinstance(plan, Plan) else _loaded(plan)
    machine = _this_machine() if loaded.hardware.name == "detected" else None
    facts = load_catalog()
    return float(fill(loaded, "balanced", machine, facts).estimate.computation.step_seconds.value)


def _this_machine() -> Machine:
    from capacity_tui.engine.machine import detect  # noqa: PLC0415 - most plans name their hardware

    return detect()


def _loaded(name: Path | str) -> Plan:
    if not Path(name).exists() and str(name) in example_names():
        return plan_from_text(example_text(str(name)), str(name))
    source = read_source(str(name))
    return import_plan([str(name)]).plan if is_of_tool(source.document) else load_plan(str(name))
