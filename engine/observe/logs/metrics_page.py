"""Metrics as Prometheus collects them: one page of names, labels and numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

# A share is the same for all engines of a page, whereas what they count adds up.
_SHARE = re.compile(r"_(?:perc|ratio|usage)$")
_LINE = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>(?:[^}\"]|\"(?:[^\"\\]|\\.)*\")*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*"
)
_BUCKET, _SUM, _COUNT = "_bucket", "_sum", "_count"


def read_metrics(text: str, before: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the numbers of a page by name, added up over labels, and what a later page is compared with.

    Of a histogram the mean of what came since the page before is given under its own name.
    """
    totals: dict[str, float] = {}
    for line in text.splitlines():
        match = None if line.startswith("#") else _LINE.fullmatch(line.strip())
        if match is None or match["name"].endswith(_BUCKET):
            continue
        try:
            value = float(match["value"])
        except ValueError:
            continue
        if math.isfinite(value):
            name, known = match["name"], totals.get(match["name"], 0.0)
            totals[name] = max(known, value) if _SHARE.search(name) else known + value
    means: dict[str, float] = {}
    for name, total in totals.items():
        base = name.removesuffix(_SUM)
        if base != name and base + _COUNT in totals:
            count = totals[base + _COUNT] - before.get(base + _COUNT, 0.0)
            change = total - before.get(name, 0.0)
            if count > 0 and change >= 0:
                means[base] = change / count
    return {**totals, **means}, totals
