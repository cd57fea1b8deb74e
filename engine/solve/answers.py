"""What users ask of a plan that may leave fields open: its estimate, its explanation, the plan to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capacity_tui.engine.catalog import Catalog, load_catalog, parse_shipped
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Answer, Scaling, estimate_resolved, resolve_plan
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.files import (
    example_names,
    example_text,
    load_plan,
    plan_from_data,
    plan_from_text,
    read_source,
)
from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import TRAINED
from capacity_tui.engine.solve.advice.advice import notes
from capacity_tui.engine.solve.candidate import EstimatedPlan
from capacity_tui.engine.solve.modes.mode_plan import ModePlan, used_shares
from capacity_tui.engine.solve.modes.model_choice import HOUR, job_seconds
from capacity_tui.engine.solve.modes.modes import compare, fill, open_fields

if TYPE_CHECKING:
    from capacity_tui.engine.explain import Explanation
    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.solve.steps import Lever


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
        scalability=_scalability(case),
    )
    return Answer(resolved, advised)


def _scalability(case: EstimatedPlan) -> tuple[Scaling, ...]:
    if not case.plan.scalability.enabled:
        return ()
    from capacity_tui.engine.solve.scaling import scalability  # noqa: PLC0415 - few plans ask for it

    return scalability(case)


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
    from capacity_tui.engine.plan.imports import import_plan, is_of_tool  # noqa: PLC0415 - an answer does not wait for it

    if not is_of_tool(source.document):
        return load_plan(str(name))
    return import_plan([str(name)]).plan


def propose(machine: Machine | None = None, hardware: str | None = None, catalog: Catalog | None = None) -> Plan:
    """Return a plan that suits this machine, or other hardware.

    With an accelerator it trains the largest well-known model that ends within a day and that the conservative and the
    balanced mode hold inside their shares of the memory; where there is none, or no accelerator, model and tokens stay
    open, and each mode chooses its own.
    """
    facts, rows = catalog or load_catalog(), proposal()
    start = plan_from_data(rows["plan"])
    if hardware:
        start = edited(start, {Key.HARDWARE_NAME: hardware}, facts).plan
    names = rows["models"] if hardware or (machine is not None and machine.accelerators) else ()
    for name in names:
        named = edited(start, {Key.MODEL_NAME: name, Key.TRAINING_TOKENS: rows["tokens"]}, facts).plan
        if _leaves_choices(named, rows["hours"], machine, facts):
            return named
    return start


def _leaves_choices(plan: Plan, hours: float, machine: Machine | None, catalog: Catalog) -> bool:
    """Whether a plan ends in time, and two modes keep their shares of memory, so that the third can be larger."""
    try:
        compared = compare(plan, machine, catalog)
    except CapacityError:
        return False
    seconds = job_seconds(compared.balanced)
    in_time = seconds is not None and seconds <= hours * HOUR
    return in_time and _is_comfortable(compared.conservative) and _is_comfortable(compared.balanced)


@dataclass(frozen=True, slots=True)
class LargestModel:
    """How large a model some hardware takes."""

    # the largest that the balanced mode holds inside its share of the memory, with nothing given up for that; None
    # where none is
    comfortable: str | None
    edge: str | None  # the largest that fits at all, where that is a larger one
    smallest: str  # of those that were tried


def usual_models(catalog: Catalog) -> list[str]:
    """Return the usual language models, the largest first."""
    from capacity_tui.engine.plan import line  # noqa: PLC0415 - the words of lines are loaded for them alone

    return line.usual_models(catalog)


def largest_model(plan: Plan, names: Sequence[str], machine: Machine | None, catalog: Catalog) -> LargestModel:
    """Return the largest models that a plan can have."""
    comfortable, edge = fitting_models(plan, names, machine, catalog)
    return LargestModel(comfortable and comfortable[0], edge and edge[0], names[-1])


def fitting_models(
    plan: Plan, names: Sequence[str], machine: Machine | None, catalog: Catalog
) -> tuple[tuple[str, ModePlan] | None, tuple[str, ModePlan] | None]:
    """Return the largest model that fits with room to spare, and the largest that fits at all where it is larger."""
    edge = None
    for name in names:
        try:
            filled = fill(edited(plan, {Key.MODEL_NAME: name}, catalog).plan, "balanced", machine, catalog)
        except CapacityError:
            continue
        if _is_comfortable(filled):
            return (name, filled), edge
        if filled.estimate.fits and edge is None:
            edge = name, filled
    return None, edge


def _is_comfortable(filled: ModePlan) -> bool:
    """Whether a plan stays inside its mode's share of memory, and nothing was given up for that."""
    shares = used_shares(filled.mode, filled.estimate, filled.resolved.cluster)
    is_inside = not any(share.why for share in shares if share.figure == "memory")
    gave_up = any(note.code in ("way_out", "nothing_fits") for note in filled.estimate.warnings)
    return bool(filled.estimate.fits) and is_inside and not gave_up  # unknown memory holds nothing surely


def open_plan(task: str | None = None) -> Plan:
    """Return a plan that leaves to the modes all that they can choose in a task, the model too."""
    return plan_from_data(proposal()["open" if task in (None, *TRAINED) else "open_otherwise"])


@cache
def proposal() -> dict[str, Any]:
    """Return what is proposed where nobody has a plan yet."""
    rows: dict[str, Any] = parse_shipped("proposal.yaml")
    return rows


@dataclass(frozen=True, slots=True)
class Explained(ShownInNotebooks):
    """Why a figure is what it is, and what would improve it most."""

    explanation: Explanation
    lever: Lever | None


def explain(plan: Plan, key: str, machine: Machine | None = None, catalog: Catalog | None = None) -> Explained:
    """Explain one figure of a plan: formula, numbers put in, sources, strongest lever.

    A plan without open fields is estimated once for its explanation; the lever tries changes of it.

    Raises:
        CapacityError: no result has that key, or the plan cannot be estimated.
    """
    from capacity_tui.engine.explain import explain_estimate  # noqa: PLC0415 - loaded where somebody asks why
    from capacity_tui.engine.solve.steps import strongest_lever  # noqa: PLC0415

    facts = catalog or load_catalog()
    is_open = bool(open_fields(plan))
    resolved = fill(plan, "balanced", machine, facts).resolved if is_open else resolve_plan(plan, facts, machine)
    estimate = estimate_resolved(resolved, facts, recorded=True)
    explanation = explain_estimate(resolved, estimate, key, facts)
    return Explained(
        explanation, strongest_lever(EstimatedPlan(plan, resolved, estimate, facts, machine), explanation.key)
    )
