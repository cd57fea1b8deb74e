"""How unevenly tokens spread over the ranks of an expert-parallel group, and what that costs the slowest."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.numeric import Number, any_true, where


@equation(
    "load = 1 + spread · sqrt(ranks / experts) · sqrt(2 · ln(ranks))",
    unit="",
    source="the largest of so many independent means of experts' loads; Wang et al. 2024 on violations of balance",
)
def busiest_load(spread: Number, ranks: Number, experts: Number) -> Number:
    """Tokens that the busiest rank of an expert-parallel group gets, over the mean.

    Args:
        spread: standard deviation of an expert's tokens over their mean.
        ranks: ranks of the group.
        experts: routed experts of a layer.
    """
    return 1.0 + spread * np.sqrt(ranks / np.maximum(experts, 1.0)) * np.sqrt(2.0 * np.log(ranks))


def expert_load(run: TransformerRun) -> Number:
    """Return the tokens of the rank that all others wait for, over the mean; 1 where routing is balanced."""
    if not any_true(run.data.natural_routing > 0) or not any_true(run.layout.ep > 1):
        return 1.0
    load = busiest_load(run.software.expert_spread, run.layout.ep, run.shape.experts)
    return where(run.data.natural_routing > 0, load, 1.0)
