"""Modes that make the same plan of a wish, and what to know of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from capacity_tui.engine.choose.modes.filled import ModePlan

MODEL = "model.name"
THE_PLAN = "the plan"
"""Stands over the one column of a plan that leaves nothing open."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Modes whose plans are the same, but for what they say of the run while it goes on.

    Attributes:
        plans: the plans, in the order of the modes; never empty.
    """

    plans: tuple[ModePlan, ...]

    @property
    def shown(self) -> ModePlan:
        """The one that stands for all: the balanced mode's where it is among them."""
        return next((plan for plan in self.plans if plan.mode.id == "balanced"), self.plans[0])

    @property
    def title(self) -> str:
        """The names of the modes."""
        return " = ".join(plan.mode.title for plan in self.plans)

    @property
    def head(self) -> str:
        """What stands over the column."""
        return self.title if self.shown.reasons else THE_PLAN


def alone(plan: ModePlan) -> Alike:
    """Return a plan that stands by itself."""
    return Alike((plan,))


def alike(columns: Sequence[ModePlan]) -> tuple[Alike, ...]:
    """Return the modes of a comparison, those with the same plan together."""
    found: list[list[ModePlan]] = []
    for each in columns:
        same = next((group for group in found if group[0].settings == each.settings), None)
        if same is None:
            found.append([each])
        else:
            same.append(each)
    return tuple(Alike(tuple(group)) for group in found)


def remarks(groups: Sequence[Alike]) -> Iterator[str]:
    """Yield what to know of the columns as a whole: which modes are the same, and whether the jobs are."""
    for group in groups:
        if not group.shown.reasons:
            yield f"{group.title}: nothing is open"
        elif len(group.plans) > 1:
            yield f"{group.title}: the same settings suit them"
    if any(MODEL in group.shown.reasons for group in groups):
        yield "the model is open, so each mode takes another: the columns are different jobs"
