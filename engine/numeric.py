"""The type every formula speaks: one number, or an array of them that broadcasts."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Number: TypeAlias = float | NDArray[np.floating[Any]]


def any_true(condition: object) -> bool:
    """Return whether a condition holds anywhere; of a single number without the detour over an array."""
    return bool(np.any(condition)) if isinstance(condition, np.ndarray) else bool(condition)
