"""How far measurements on this very machine lie from its constants: spreads in place of those of published runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from capacity_tui.engine.machine.measured_constants import FitError

# A normal deviation over the median of absolute deviations.
DEVIATIONS_IN_A_MEDIAN = 1.4826
# What is sampled of kernels, by the beginning of its name; and what is timed of whole runs.
KERNELS = ("gemm.", "attention")
OWN_RUNS = {"own runs, step time": "base", "own runs, memory": "outside"}


def spreads_here(errors: Sequence[FitError]) -> Mapping[str, float]:
    """Return the spreads that samples and timed runs of this machine leave, by the names of what they measured.

    Args:
        errors: how well the machine's constants describe what they were fitted to.
    """
    found: dict[str, float] = {}
    kernels = [
        each.median if each.interpolated is None else each.interpolated
        for each in errors
        if each.name.startswith(KERNELS)
    ]
    if kernels:
        found["kernels"] = DEVIATIONS_IN_A_MEDIAN * max(kernels)
    for each in errors:
        if each.name in OWN_RUNS:
            found[OWN_RUNS[each.name]] = own_spread(each)
    return found


def own_spread(error: FitError) -> float:
    """Spread of a further run beside so many that the constants were fitted to: their worst, larger for few of them."""
    return error.worst * math.sqrt(1.0 + 1.0 / error.count)
