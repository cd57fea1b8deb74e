"""Device memory outside the framework's allocator."""

from __future__ import annotations

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number


@equation(
    "context = driver + groups · communicator",
    unit="B",
    source="measured sizes: efficiency.yaml, algorithms.yaml",
    part=Figure.MEMORY_CONTEXT,
    units={"driver": "B", "communicator": "B"},
)
def context_bytes(driver: Number, communicator: Number, groups: Number) -> Number:
    """Bytes of driver context and communication library.

    Args:
        driver: bytes of the driver's context, or of the process, with the libraries.
        communicator: bytes of the buffers of one group of ranks.
        groups: kinds of groups a device belongs to: tensor, data, pipeline, expert parallel.
    """
    return driver + groups * communicator


@equation(
    "reserve = allocated · fragmentation",
    unit="B",
    source="the allocator keeps blocks it cannot use: measured reserved over allocated",
    part=Figure.MEMORY_RESERVE,
    units={"allocated": "B"},
)
def reserve_bytes(allocated: Number, fragmentation: Number) -> Number:
    """Bytes the allocator holds beyond its peak.

    Args:
        allocated: bytes of all parts inside the allocator.
        fragmentation: what it holds beyond them, as a share.
    """
    return allocated * fragmentation
