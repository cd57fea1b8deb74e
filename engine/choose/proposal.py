"""The plan to begin with where nobody has one yet."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.catalog.parsed import parse_shipped
from capacity_tui.engine.choose.modes.modes import fill
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.edit import edited
from capacity_tui.engine.plan.files.loading import plan_from_data
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.schema.field_types import TRAINED

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine


def propose(machine: Machine | None = None, hardware: str | None = None, catalog: Catalog | None = None) -> Plan:
    """Return a plan that suits this machine, or other hardware.

    With an accelerator it trains the largest well-known model that fits; without one, the model and the tokens that
    the balanced mode would choose.

    Args:
        machine: what was detected.
        hardware: other hardware, such as ``8xH100-SXM``.
        catalog: facts; the shipped ones with the user's own by default.
    """
    facts = catalog or load_catalog()
    start = plan_from_data(_proposal()["plan"])
    if not hardware and (machine is None or not machine.accelerators):
        chosen = fill(start, "balanced", machine, facts).plan
        return edited(start, {"model.name": chosen.model.name, "training.tokens": chosen.training.tokens}, facts).plan
    if hardware:
        start = edited(start, {"hardware.name": hardware}, facts).plan
    for model in _proposal()["models"]:
        candidate = edited(start, {"model.name": model, "training.tokens": _proposal()["tokens"]}, facts).plan
        try:
            if fill(candidate, "balanced", machine, facts).estimate.fits:
                break
        except CapacityError:
            continue
    return candidate


def open_plan(task: str | None = None) -> Plan:
    """Return a plan that leaves to the modes all that they can choose in a task, the model too."""
    return plan_from_data(_proposal()["open" if task in (None, *TRAINED) else "open_otherwise"])


@cache
def _proposal() -> dict[str, Any]:
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "proposal.yaml")
    return rows
