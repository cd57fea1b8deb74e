"""The plan to begin with where nobody has one yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from capacity_tui.engine.catalog import Catalog, load_catalog, parse_shipped
from capacity_tui.engine.choose.modes.filled import ModePlan
from capacity_tui.engine.choose.modes.modes import fill
from capacity_tui.engine.choose.modes.shares import used_shares
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.schema import TRAINED

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


def propose(machine: Machine | None = None, hardware: str | None = None, catalog: Catalog | None = None) -> Plan:
    """Return a plan that suits this machine, or other hardware.

    With an accelerator it trains the largest well-known model that the balanced mode holds inside its share of the
    memory; without one, the model and the tokens that this mode would choose.

    Args:
        hardware: other hardware, such as ``8xH100-SXM``.
    """
    facts = catalog or load_catalog()
    start = plan_from_data(_proposal()["plan"])
    if not hardware and (machine is None or not machine.accelerators):
        chosen = fill(start, "balanced", machine, facts).plan
        return edited(
            start, {Key.MODEL_NAME: chosen.model.name, Key.TRAINING_TOKENS: chosen.training.tokens}, facts
        ).plan
    if hardware:
        start = edited(start, {Key.HARDWARE_NAME: hardware}, facts).plan
    start = edited(start, {Key.TRAINING_TOKENS: _proposal()["tokens"]}, facts).plan
    largest = largest_model(start, _proposal()["models"], machine, facts)
    return edited(start, {Key.MODEL_NAME: largest.comfortable or largest.smallest}, facts).plan


@dataclass(frozen=True, slots=True)
class LargestModel:
    """How large a model some hardware takes.

    Attributes:
        comfortable: the largest that the balanced mode holds inside its share of the memory, with nothing given up for
            that; None where none is.
        edge: the largest that fits at all, where that is a larger one.
        smallest: of those that were tried.
    """

    comfortable: str | None
    edge: str | None
    smallest: str


def largest_model(plan: Plan, names: Sequence[str], machine: Machine | None, catalog: Catalog) -> LargestModel:
    """Return the largest models that a plan can have.

    Args:
        plan: the plan, whose model does not count.
        names: of models, the largest first.
    """
    edge = None
    for name in names:
        try:
            filled = fill(edited(plan, {Key.MODEL_NAME: name}, catalog).plan, "balanced", machine, catalog)
        except CapacityError:
            continue
        if _is_comfortable(filled):
            return LargestModel(name, edge, names[-1])
        if filled.estimate.fits and edge is None:
            edge = name
    return LargestModel(None, edge, names[-1])


def _is_comfortable(filled: ModePlan) -> bool:
    """Whether a plan stays inside its mode's share of memory, and nothing was given up for that."""
    shares = used_shares(filled.mode, filled.estimate, filled.resolved.cluster)
    is_inside = not any(share.why for share in shares if share.figure == "memory")
    gave_up = any(note.code in ("way_out", "nothing_fits") for note in filled.estimate.warnings)
    return filled.estimate.fits is not False and is_inside and not gave_up


def open_plan(task: str | None = None) -> Plan:
    """Return a plan that leaves to the modes all that they can choose in a task, the model too."""
    return plan_from_data(_proposal()["open" if task in (None, *TRAINED) else "open_otherwise"])


@cache
def _proposal() -> dict[str, Any]:
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "proposal.yaml")
    return rows
