"""What NVIDIA's names say: which GPUs share memory with the processor, how large a MIG slice is."""

from __future__ import annotations

import re

VENDOR = "NVIDIA"
UNIFIED_NAMES = re.compile(r"\b(GB10|Orin|Xavier|Thor|Tegra)\b")  # memory shared with the CPU
MIG_SLICES = 7  # NVIDIA MIG user guide: compute slices of A100 and later; A30 has four and says so itself


def slice_share(name: str) -> float | None:
    """Return the part of a GPU's compute slices that a MIG profile such as ``3g.40gb`` has; most GPUs have seven."""
    profile = re.search(r"\b(\d)g\.\d+gb", name)
    return int(profile[1]) / MIG_SLICES if profile else None
