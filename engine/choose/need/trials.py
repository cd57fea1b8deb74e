"""Candidates of one question, each planned once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.candidates.candidate import Candidate, candidate
from capacity_tui.engine.choose.search.question import Limit
from capacity_tui.engine.plan import Plan

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(slots=True)
class Evaluator:
    """Plans candidates of one plan as the balanced mode fills them, each of them once.

    Attributes:
        plan: what is asked about.
        limits: what every candidate must keep.
        catalog: facts.
        machine: the detected machine, for plans that run on it.
        callback: is told every candidate that was planned.
        evaluated: what was planned, by change.
    """

    plan: Plan
    limits: tuple[Limit, ...]
    catalog: Catalog
    machine: Machine | None = None
    callback: Callable[[Candidate], None] | None = None
    evaluated: dict[tuple[tuple[str, str], ...], Candidate] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Candidate, ...]:
        """Everything that was planned, in its order."""
        return tuple(self.evaluated.values())

    def evaluate(self, change: Mapping[str, object]) -> Candidate:
        """Return what becomes of the plan with a change."""
        key = tuple((path, str(entry)) for path, entry in change.items())
        if key not in self.evaluated:
            self.evaluated[key] = candidate(self.plan, change, self.catalog, self.machine, limits=self.limits)
            if self.callback is not None:
                self.callback(self.evaluated[key])
        return self.evaluated[key]
