"""What a search says: how many configurations there were, which rules excluded some, and the best of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capacity_tui.engine.notebook import ShownInNotebooks
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Rejected:
    """Configurations that one reason excludes, each counted under the first reason that it meets.

    Attributes:
        rule: what is wrong with them, in words.
        count: how many.
        example: one of them, with the sizes that show it.
    """

    rule: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class SearchResult(ShownInNotebooks):
    """One configuration.

    Attributes:
        set: the change that makes it of the plan that was asked about: plan keys with their values.
        verdict: what its estimate comes to.
        figures: its figures by result key; where no range is known, low and high are the value itself.
        dominated_by: position among the best of one that is no worse in any of the compared figures and better in one;
            None where there is none.
    """

    set: Mapping[str, object]
    verdict: Verdict
    figures: Mapping[str, Interval]
    dominated_by: int | None = None

    @property
    def fits(self) -> bool | None:
        """Whether it keeps every constraint by its estimate; None where a device's memory is unknown."""
        return self.verdict.holds


@dataclass(frozen=True, slots=True)
class Answer(ShownInNotebooks):
    """What a search found, or has found so far.

    Attributes:
        evaluated: configurations that were judged: by rules, and those that these leave by their estimate.
        valid: those that no rule excludes.
        fitting: those of them that memory holds as estimated and that keep every limit at the far end of its range.
        seconds: how long it took.
        rejected: what excluded the others, most first.
        missed: what the valid ones that are not fitting miss: memory, or a limit; each counted under the first.
        top: the best, the very best first; behind them those of the front that are not among them.
        pareto: positions in ``top`` of configurations that nothing dominates in the compared figures.
        compared: result keys of those figures.
        goal: result key of the figure the best are chosen by.
        varied: plan keys that were tried with several values, and how many values each.
        complete: whether everything was looked at.
        share_done: share of it that was, as far as that is known.
    """

    evaluated: int = 0
    valid: int = 0
    fitting: int = 0
    seconds: float = 0.0
    rejected: tuple[Rejected, ...] = ()
    missed: tuple[Rejected, ...] = ()
    top: tuple[SearchResult, ...] = ()
    pareto: tuple[int, ...] = ()
    compared: tuple[str, ...] = ()
    goal: str = ""
    varied: tuple[tuple[str, int], ...] = ()
    complete: bool = False
    share_done: float = 0.0

    @property
    def plans_per_second(self) -> float:
        """Configurations that no rule excludes, each with its estimate, a second."""
        return self.valid / self.seconds if self.seconds > 0 else 0.0
