"""One change of a guarded run's plan: what, why, and what that is estimated to do, as plain data too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from capacity_tui.engine.estimate.estimate import Answer
from capacity_tui.engine.observe.guard.failures import Trouble
from capacity_tui.engine.plan.plan import Plan

Checkpoint: TypeAlias = Literal["newest", "before"]
Taken: TypeAlias = Sequence[Mapping[str, object]]
"""Steps of a run so far, as ``Step.data`` tells them, the newest last."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a plan.

    Attributes:
        trouble: against what it is taken.
        remedy: what it does: a remedy of the plan's, ``fewer``, ``accumulate`` or ``restart``.
        change: new values by plan key; empty where the plan stays.
        before: the values they had.
        answer: the changed plan, estimated.
        reason: what is done and why, in a sentence.
        figures: result keys with what they were estimated at before and after.
        checkpoint: which one to go on from, the newest or the one before.
        environment: variables that let the command have fewer devices.
    """

    trouble: Trouble
    remedy: str
    change: Mapping[str, object]
    before: Mapping[str, object]
    answer: Answer
    reason: str
    figures: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    checkpoint: Checkpoint = "newest"
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """The changed plan."""
        return self.answer.plan

    def data(self) -> dict[str, object]:
        """Return the step as plain data, as it is announced and kept."""
        return {
            "trouble": self.trouble,
            "remedy": self.remedy,
            "change": dict(self.change),
            "before": dict(self.before),
            "reason": self.reason,
            "figures": {key: {"before": before, "after": after} for key, (before, after) in self.figures.items()},
            "checkpoint": self.checkpoint,
            "environment": dict(self.environment),
        }


def most_restarts(answer: Answer) -> int:
    """Return how often a plan lets a run be started again."""
    most = answer.plan.recovery.max_restarts
    return most if isinstance(most, int) else 0


def restarts_of(taken: Taken) -> int:
    """Return how often a run was started again: once for each step."""
    return len(taken)
