"""What questions about a plan have in common, and figures of an estimate as cells of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Self

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import column_head, column_text
from capacity_tui.engine.record import dataclass
from capacity_tui.tui.shown.results import Cell

if TYPE_CHECKING:
    from capacity_tui.engine.uncertainty import Interval


@dataclass(frozen=True)
class PlanQuestion(ABC):
    """A question about a plan.

    Attributes:
        plan: the plan.
        machine: what was detected.
        catalog: the catalogues.
        given: what the user said, by the keys of its parts.
    """

    plan: Plan
    machine: Machine | None = field(compare=False)
    catalog: Catalog = field(compare=False, repr=False)
    given: Mapping[str, str] = field(default_factory=dict)

    def edited(self, key: str, text: str) -> Self:
        """Return the question with one part said otherwise.

        Raises:
            CapacityError: the text makes no sense there.
        """
        given = {**self.given, key: text.strip()}
        after = replace(self, given={name: value for name, value in given.items() if value})
        after.asked()
        return after

    @abstractmethod
    def asked(self) -> object:
        """Return the question of the engine.

        Raises:
            CapacityError: a part of it makes no sense.
        """


def range_text(key: str, value: Interval) -> str:
    """Return the range of a figure behind its head."""
    return f"{column_head(key)} {column_text(key, float(value.low))} – {column_text(key, float(value.high))}"


def figure_cell(key: str, value: Interval | None) -> Cell:
    """Return the cell of a figure; ``n/a`` where it is not known."""
    if value is None:
        return Cell("n/a")
    return Cell(column_text(key, float(value.value)), float(value.value))
