"""How sure networks between nodes are that were measured, in place of the spread of published runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capacity_tui.engine.cluster import Level
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.uncertainty.measured_here import DEVIATIONS_IN_A_MEDIAN

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
