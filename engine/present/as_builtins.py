"""Results as plain data, of which JSON and YAML are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum

import numpy as np


def to_builtins(value: object) -> object:
    """Return a result as plain data: dataclasses to mappings, arrays to lists, numbers that are not finite to None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: to_builtins(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_builtins(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_builtins(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return to_builtins(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.value if isinstance(value, StrEnum) else value
