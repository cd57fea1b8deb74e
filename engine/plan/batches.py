"""How the batch of an optimizer step is made up."""

from __future__ import annotations

from capacity_tui.engine.plan.plan import Plan


def accumulation_of(plan: Plan) -> int:
    """Return the micro-batches that a replica takes before an optimizer step, of a settled plan."""
    micro_batch, replicas = int(plan.training.micro_batch), int(plan.parallelism.dp or 1)
    return max(1, round(int(plan.training.global_batch or 1) / (micro_batch * replicas)))
