"""From the one line that says a plan to that plan: what nobody said is left to the modes, or guessed and told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.choose.modes.modes import fill, with_placeholders
from capacity_tui.engine.choose.proposal import open_plan
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.estimate.resolve import resolve_plan
from capacity_tui.engine.estimate.serving.released_weights import released_format
from capacity_tui.engine.estimate.serving.resolve import vendor_of
from capacity_tui.engine.plan.edit import edited
from capacity_tui.engine.plan.line.vocabulary import FIT, INFER, vocabulary
from capacity_tui.engine.plan.line.words import OneLine
from capacity_tui.engine.plan.plan import AUTO, DETECTED, HardwareSection, Plan
from capacity_tui.engine.units import format_count

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine

_MODEL, _HARDWARE, _OF_HARDWARE = "model.name", "hardware.name", "hardware."
_ENGINE = "inference.engine"


@dataclass(frozen=True, slots=True)
class LinePlan:
    """The plan that a line says.

    Attributes:
        plan: the plan.
        assumed: what nobody said, in words.
    """

    plan: Plan
    assumed: tuple[str, ...]


def plan_of_line(
    line: OneLine,
    machine: Machine | None = None,
    hardware: HardwareSection | None = None,
    catalog: Catalog | None = None,
) -> LinePlan:
    """Return the plan that a line says.

    Args:
        line: the line as it was read.
        machine: what was detected.
        hardware: what is planned for where the line names none; this machine by default.
        catalog: facts; the shipped ones with the user's own by default.

    Raises:
        PlanError: a word was not understood, or the words contradict each other; ``further`` has the other faults.
    """
    refuse_faults(line)
    facts = catalog or load_catalog()
    values, assumed = dict(line.values), list(line.guesses)
    if not line.has(_HARDWARE):
        here = hardware or HardwareSection()
        named = {path: value for path, value in values.items() if path.startswith("hardware.")}
        values = {"hardware": here, **{path: value for path, value in values.items() if path not in named}, **named}
        devices = f"{here.devices} x " if here.devices else ""
        assumed.append("on this machine" if here.name == DETECTED else f"on {devices}{here.name}, as before")
    for path, value in vocabulary().usual.get(line.task, {}).items():
        if not any(line.has(other) for other in _lengths(path)):
            values[path] = value
            assumed.append(f"{format_count(value, decimals=0)} {path.rpartition('.')[2]}: nothing was said of them")
    if line.task == FIT and not line.has(_MODEL):
        hint = "name an algorithm, such as xgboost_like or kmeans"
        raise PlanError("nothing says what is fitted", hint=hint, place=Place(field=_MODEL))
    plan = edited(open_plan(line.task), {_MODEL: _sized(facts)[-1], **values}, facts).plan
    if not line.has(_ENGINE) and (guess := _usual_engine(plan, machine, facts)):
        engine, where = guess
        plan = edited(plan, {_ENGINE: engine}, facts).plan
        assumed.append(f"{engine}: what {where} is usually served with; no engine was named")
    if not line.has(_MODEL):
        plan = _largest(plan, machine, facts)
        assumed.append(f"{plan.model.name}: the largest well-known model that fits")
    return LinePlan(plan, tuple(assumed))


def changed_by_line(plan: Plan, line: OneLine, catalog: Catalog | None = None) -> Plan:
    """Return a plan changed by what a line says; other hardware takes the place of all that was said of hardware.

    Raises:
        PlanError: a word was not understood, or does not suit the plan.
    """
    refuse_faults(line)
    own = {path: value for path, value in line.values.items() if path.startswith(_OF_HARDWARE)}
    if not line.has(_HARDWARE):
        return edited(plan, line.values, catalog).plan
    section = {path.removeprefix(_OF_HARDWARE): value for path, value in own.items()}
    rest = {path: value for path, value in line.values.items() if path not in own}
    return edited(plan, {**rest, "hardware": section}, catalog).plan


def refuse_faults(line: OneLine) -> None:
    """Check that a line was understood.

    Raises:
        PlanError: it was not; ``further`` has what else was not.
    """
    if line.faults:
        first = line.faults[0]
        first.further = line.faults[1:]
        raise first


def _usual_engine(plan: Plan, machine: Machine | None, catalog: Catalog) -> tuple[str, str] | None:
    """Return the engine that usually serves a plan's language model, and what it is usual for; None for other plans."""
    if plan.task != INFER:
        return None
    try:
        resolved = resolve_plan(with_placeholders(plan, catalog), catalog, machine)
        name = plan.inference.weights or released_format(plan.model, catalog)[0]
        weights = catalog.quantizations.find(resolved.plan.inference.weights_format if name == AUTO else name)
    except CapacityError:
        return None
    if resolved.shape is None or resolved.shape.kind != "decoder":
        return None
    maker, usual = vendor_of(resolved.cluster.device, catalog), vocabulary().engines
    if weights.family in usual:
        return usual[weights.family], f"a model of {weights.family} weights"
    return (usual[maker], f"a model on {maker}") if maker in usual else None


def _largest(plan: Plan, machine: Machine | None, catalog: Catalog) -> Plan:
    """Return the plan with the largest usual model that fits its hardware, the smallest where none does."""
    changed = plan
    for name in _sized(catalog):
        changed = edited(plan, {_MODEL: name}, catalog).plan
        try:
            if fill(changed, "balanced", machine, catalog).estimate.fits is not False:
                break
        except CapacityError:
            continue
    return changed


def _sized(catalog: Catalog) -> list[str]:
    """Return the usual language models, the largest first."""
    known = (catalog.architectures[name] for name in vocabulary().models if name in catalog.architectures)
    rows = [row for row in known if row.kind == "decoder" and row.params_total and not row.experts]
    return [row.id for row in sorted(rows, key=lambda row: -(row.params_total or 0))]


def _lengths(path: str) -> tuple[str, ...]:
    """Return the fields that say the same as one: a job has one length."""
    section = path.rpartition(".")[0]
    return (path, f"{section}.steps", f"{section}.epochs")
