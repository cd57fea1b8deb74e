"""The answer to a question asked backwards."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.choose.candidates.candidate import Candidate
from capacity_tui.engine.choose.search.question import Goal, Limit
from capacity_tui.engine.notebook import ShownInNotebooks


@dataclass(frozen=True, slots=True)
class Needed(ShownInNotebooks):
    """Which value of a field keeps the limits.

    Attributes:
        solve: what was asked for: a plan field, or the size of the model.
        limits: what was to be kept.
        goal: what decides between values that keep the limits; None where the outermost one was wanted.
        best: the answer; None where no value keeps the limits.
        neighbour: the next value, which keeps them no longer; None where none was reached.
        nearest: what misses the limits by least, where there is no answer.
        ended_by: what ends the range of the value where no limit does: the field itself, or what the model reads.
        is_monotonic: whether no value fails between two that hold.
        tried: how many values were estimated.
        seconds: how long it took.
        complete: whether everything was looked at: else somebody stopped it.
    """

    solve: str
    limits: tuple[Limit, ...]
    goal: Goal | None
    best: Candidate | None
    neighbour: Candidate | None = None
    nearest: Candidate | None = None
    ended_by: str = ""
    is_monotonic: bool = True
    tried: int = 0
    seconds: float = 0.0
    complete: bool = True

    @property
    def value(self) -> object:
        """The value asked for; None where no value keeps the limits."""
        return None if self.best is None else self.value_of(self.best)

    def value_of(self, candidate: Candidate) -> object:
        """Return the value that a candidate has of what was asked for; None for the size of a model that cannot be."""
        if self.solve in candidate.change:
            return candidate.change[self.solve]
        number = candidate.number(self.solve)
        return None if number is None else int(number)

    @property
    def binding(self) -> str | None:
        """Result key of the limit that the next value breaks, or the nearest one; None where no limit ends it."""
        beyond = self.neighbour if self.best is not None else self.nearest
        if beyond is None:
            return self.ended_by or None
        return next((constraint.key for constraint in beyond.violations), None)
