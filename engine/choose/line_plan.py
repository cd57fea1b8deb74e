"""From the one line that says a plan to that plan: what nobody said is left to the modes, or guessed and told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.choose.modes.modes import fill
from capacity_tui.engine.choose.proposal import open_plan
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.plan.edit import edited
from capacity_tui.engine.plan.line.vocabulary import FIT, vocabulary
from capacity_tui.engine.plan.line.words import OneLine
from capacity_tui.engine.plan.plan import DETECTED, HardwareSection, Plan
from capacity_tui.engine.units import format_count

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine

_MODEL, _HARDWARE, _OF_HARDWARE = "model.name", "hardware.name", "hardware."


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
    if line.has(_MODEL):
        return LinePlan(edited(open_plan(line.task), values, facts).plan, tuple(assumed))
    if line.task == FIT:
        hint = "name an algorithm, such as xgboost_like or kmeans"
        raise PlanError("nothing says what is fitted", hint=hint, place=Place(field=_MODEL))
    plan = _largest(edited(open_plan(line.task), {_MODEL: _sized(facts)[-1], **values}, facts).plan, machine, facts)
    return LinePlan(plan, (*assumed, f"{plan.model.name}: the largest well-known model that fits"))


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
