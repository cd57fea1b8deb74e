"""How far measurements on this very machine lie from its constants: spreads in place of those of published runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from capacity_tui.engine.machine import FitError

# A normal deviation over the median of absolute deviations.
DEVIATIONS_IN_A_MEDIAN = 1.4826
# What is sampled of kernels, by the beginning of its name; and what is timed of whole runs.
KERNELS = ("gemm.", "attention")
COLLECTIVES = "collectives"
# What no part explains of memory, which timed steps say nothing about.
MEMORY_BASE = "memory base"
OWN_RUNS = {"own runs, step time": ("base",), "own runs, memory": ("outside", MEMORY_BASE)}


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
        if each.name == COLLECTIVES:
            # What exchanges inside a node wait for is what was sampled; how far others hide is not.
            found["tensor_parallel"] = DEVIATIONS_IN_A_MEDIAN * each.median
        for name in OWN_RUNS.get(each.name, ()):
            found[name] = own_spread(each)
    return found


def of_memory(here: Mapping[str, float]) -> Mapping[str, float]:
    """Return the spreads of this machine as they count for memory."""
    others = {name: spread for name, spread in here.items() if name not in ("base", MEMORY_BASE)}
    return {**others, "base": here[MEMORY_BASE]} if MEMORY_BASE in here else others


def own_spread(error: FitError) -> float:
    """Spread of a further run beside so many that the constants were fitted to: their worst, larger for few of them."""
    return error.worst * math.sqrt(1.0 + 1.0 / error.count)
