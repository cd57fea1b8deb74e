"""A bar of a few cells that says how full something is."""

from __future__ import annotations

_FULL, _EMPTY = "▇", "░"


def gauge(share: float, width: int) -> str:
    """Return a bar; any share above nothing fills a cell, and nothing below all of it fills the last one.

    Args:
        share: how full, 1 for full; more is drawn as full.
        width: cells from left to right.
    """
    filled = round(min(max(share, 0.0), 1.0) * width)
    if 0.0 < share < 1.0 and width > 1:
        filled = min(max(filled, 1), width - 1)
    return _FULL * filled + _EMPTY * (width - filled)
