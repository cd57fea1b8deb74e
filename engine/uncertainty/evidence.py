"""What is known about how sure the figures of a run are, before any of them is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from capacity_tui.engine.catalog.rows import Reliability
from capacity_tui.engine.cluster import Level
from capacity_tui.engine.machine import FitError
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty.features import RunFeatures
from capacity_tui.engine.uncertainty.intervals import Range
from capacity_tui.engine.uncertainty.own_runs import OwnRuns

# What waits for its exchanges, whose times are those of the collectives that a network is measured by. How far other
# parts hide behind kernels, or how evenly tokens go to experts, no timing of a network tells.
EXCHANGES = "tensor_parallel"


@dataclass(frozen=True, slots=True)
class MeasuredNetworks:
    """Networks of a cluster, all of them measured.

    Attributes:
        inside: devices that reach each other without them.
        spread: standard deviation of the logarithm of measured over estimated of collectives over them.
    """

    inside: Number
    spread: float


def measured_networks(networks: Sequence[Level], inside: Number) -> MeasuredNetworks | None:
    """Return how sure the networks of a cluster are; None unless each was measured and tells its error.

    Args:
        networks: its levels around what devices reach directly.
        inside: devices that reach each other directly.
    """
    errors = [level.error for level in networks if level.error is not None]
    if not errors or len(errors) < len(networks):
        return None
    return MeasuredNetworks(inside, DEVIATIONS_IN_A_MEDIAN * max(errors))


FigureName = Literal["step", "prefill", "decode", "memory"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the ranges of a run rest on.

    Attributes:
        rows: spreads of its kind of figures, by figure: ``step``, ``prefill``, ``decode``, ``memory``.
        features: what the run is like.
        flags: properties that make it less sure, 1 or 0, by name of their spread.
        here: spreads found on this very machine.
        own: runs of the user's own on such a device, and what this one is like to them by words.
        known: ranges that are given as they are, by figure.
        networks: how sure the networks are, where they were measured.
        oldest_rate: rate of older releases over the estimated one, where the run does not say its release; else 1.
    """

    rows: Mapping[FigureName, Reliability] = field(default_factory=dict)
    features: RunFeatures = field(default_factory=RunFeatures)
    flags: Mapping[str, Number] = field(default_factory=dict)
    here: Mapping[str, float] = field(default_factory=dict)
    own: tuple[OwnRuns, Mapping[str, str]] | None = None
    known: Mapping[FigureName, Range] = field(default_factory=dict)
    networks: MeasuredNetworks | None = None
    oldest_rate: float = 1.0


# A normal deviation over the median of absolute deviations.
DEVIATIONS_IN_A_MEDIAN = 1.4826

# What is sampled of kernels, by the beginning of its name; and what is timed of whole runs.
KERNELS = ("gemm.", "attention")

COLLECTIVES = "collectives"


def spreads_here(errors: Sequence[FitError]) -> Mapping[str, float]:
    """Return the spreads that samples of this machine leave, by the names of what they measured.

    Args:
        errors: how well the machine's constants describe what they were fitted to.
    """
    spreads: dict[str, float] = {}
    kernels = [
        error.median if error.interpolated is None else error.interpolated
        for error in errors
        if error.name.startswith(KERNELS)
    ]
    if kernels:
        spreads["kernels"] = DEVIATIONS_IN_A_MEDIAN * max(kernels)
    for error in errors:
        if error.name == COLLECTIVES:
            # What exchanges inside a node wait for is what was sampled; how far others hide is not.
            spreads["tensor_parallel"] = DEVIATIONS_IN_A_MEDIAN * error.median
    return spreads
