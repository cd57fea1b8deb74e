"""The change of a plan that a trainer asked for by its callback before memory ran out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.estimate.estimate import Answer
from capacity_tui.engine.keys import Key
from capacity_tui.engine.observe.guard.step import Step, Taken, most_restarts, restarts_of

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine


def smaller_batch(
    answer: Answer, wanted: Mapping[str, object], taken: Taken, machine: Machine | None = None
) -> Step | None:
    """Return the step to the micro-batch that a trainer asked for, the global batch kept by accumulation.

    None where it asked for none, where it has it already, or where the plan allows no more restarts.

    Args:
        answer: the plan as the run has it, filled in and estimated.
        wanted: what it asked for.
        taken: steps of this run so far.
        machine: the machine it runs on, where its plan does not name one.
    """
    before, after = answer.plan.training.micro_batch, wanted.get("micro_batch")
    if not isinstance(after, int) or after == before or restarts_of(taken) >= most_restarts(answer):
        return None
    case = EstimatedPlan(answer.plan, answer.resolved, answer.estimate, load_catalog(), machine)
    trial = case.changed({Key.TRAINING_MICRO_BATCH: after})
    if trial.filled is None:
        return None
    reason = f"Micro-batch {before} to {after}: the trainer stopped behind a checkpoint, as memory was getting short"
    return Step(
        "memory_pressure",
        "micro_batch",
        {Key.TRAINING_MICRO_BATCH: after},
        {Key.TRAINING_MICRO_BATCH: before},
        Answer(trial.filled.resolved, trial.estimate),
        reason,
    )
