"""Weights that are packed in memory, and unpacked to 16 bits before their products."""

from __future__ import annotations

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.numeric import Number


@equation(
    "bytes = weights · (packed + moved)",
    unit="B",
    source="packed weights are read, what kernels make of them is written and read; the product reads the last",
    units={"packed": "B", "moved": "B"},
    origins={"packed": "stored_weight_bytes"},
)
def unpacking_bytes(weights: Number, packed: Number, moved: Number) -> Number:
    """Bytes of memory traffic that unpacking weights takes, before their product reads them.

    Args:
        weights: how many.
        packed: bytes of a packed weight.
        moved: bytes moved for a weight besides.
    """
    return weights * (packed + moved)
