"""How large a model some hardware tunes and runs: comfortably, and on the edge of its memory, in each usual way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.cluster import resolve_cluster
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, figure
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.answers import fitting_models, open_plan, proposal, usual_models
from capacity_tui.engine.solve.candidate import MEMORY
from capacity_tui.engine.units import PERCENT

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(frozen=True, slots=True)
class Rung:
    """The largest model of one way to use hardware.

    Attributes:
        way: what is done and how, such as ``fine-tune: QLoRA``.
        is_comfortable: whether the balanced mode holds it with room to spare; else it just fits.
        model: its name.
        estimate: what it comes to.
        values: what makes the plan one of it, by path.
    """

    way: str
    is_comfortable: bool
    model: str
    estimate: Estimate
    values: Mapping[str, object]

    @property
    def room(self) -> str:
        """How it fits, in words."""
        return "comfortable" if self.is_comfortable else "on the edge"

    @property
    def share(self) -> str:
        """How much of the memory it takes."""
        return figure(self.estimate, Figure.MEMORY_UTILIZATION_PERCENT).text

    @property
    def speed(self) -> str:
        """How fast it is: tokens trained, or answered to one user, in a second."""
        is_served = self.estimate.computation.infer is not None
        return figure(self.estimate, Figure.DECODE_TOKENS_PER_SECOND if is_served else Figure.TOKENS_PER_SECOND).text


def ladder(plan: Plan, machine: Machine | None = None, catalog: Catalog | None = None) -> Iterator[Rung]:
    """Yield the largest models that the hardware of a plan takes, way by way, the comfortable one of each first.

    Args:
        plan: its hardware is what counts.

    Raises:
        CapacityError: nothing is known of that hardware.
    """
    from capacity_tui.engine.solve.need.bounds import Bounds  # noqa: PLC0415 - a search of its own, behind this one

    facts = catalog or load_catalog()
    names = usual_models(facts)
    resolve_cluster(plan.hardware, plan.pricing, facts, machine)
    for way in proposal()["ladder"]:
        values = {Key.TASK: way["task"], **way["values"]}
        start = open_plan(way["task"]).model_copy(update={"hardware": plan.hardware, "pricing": plan.pricing})
        try:
            start = edited(start, {Key.MODEL_NAME: names[-1], **values}, facts).plan
        except CapacityError:
            continue
        bounds = Bounds(start, facts, machine)
        held = [name for name in names if bounds.at_best({Key.MODEL_NAME: name}).get(MEMORY, 0.0) <= PERCENT]
        comfortable, edge = fitting_models(start, held, machine, facts)
        for fitting in (comfortable, edge):
            if fitting is not None:
                name, filled = fitting
                is_comfortable = fitting is comfortable
                yield Rung(way["name"], is_comfortable, name, filled.estimate, {**values, Key.MODEL_NAME: name})
