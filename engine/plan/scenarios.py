"""Pinning plans beside a plan, renaming them, taking them over or away: each an ordinary change of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_uppercase

from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.plan.edit import edited
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.plan.sections.scenarios import is_scenario_name

_PATH = "scenarios"


def pinned(plan: Plan, scenario: Plan) -> Plan:
    """Return a plan with another one beside it, under the first letter that is free.

    Raises:
        PlanError: there are as many as there may be.
    """
    name = next(letter for letter in ascii_uppercase if letter not in plan.scenarios)
    return _with(plan, {**plan.scenarios, name: scenario.model_copy(update={_PATH: {}})})


def unpinned(plan: Plan, name: str) -> Plan:
    """Return a plan without one of the plans beside it."""
    return _with(plan, {other: scenario for other, scenario in plan.scenarios.items() if other != name})


def taken(plan: Plan, name: str) -> Plan:
    """Return one of the plans beside a plan in its place; all that stands beside it stays there."""
    return _with(plan.scenarios[name], plan.scenarios)


def renamed(plan: Plan, name: str, new: str) -> Plan:
    """Return a plan with another name for one of the plans beside it, which stays in its place.

    Raises:
        PlanError: nothing may be called so, or another one is.
    """
    new = new.strip()
    if not is_scenario_name(new):
        raise PlanError("not a name", repr(new), "allowed: 1 to 40 characters without a dot", Place(field=_PATH))
    if new != name and new in plan.scenarios:
        raise PlanError("another one is called so", new, place=Place(field=_PATH))
    return _with(plan, {new if other == name else other: scenario for other, scenario in plan.scenarios.items()})


def _with(plan: Plan, scenarios: Mapping[str, Plan]) -> Plan:
    return edited(plan, {_PATH: dict(scenarios)}).plan
