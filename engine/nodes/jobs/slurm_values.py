"""Times and resources as Slurm writes them."""

from __future__ import annotations

import re
from datetime import datetime

_DURATION = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})")
_GPUS = re.compile(r"gpu(?::(?P<kind>[^:(,]+))?:(?P<count>\d+)(?=[(,]|$)")
_CLOCK_PARTS = (1.0, 60.0, 3600.0)
_DAY = 86_400.0


def seconds_of(text: str) -> float | None:
    """Return the seconds of a duration such as ``2-00:00:00``; None for one without end or that is not set."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    parts = [float(part) for part in match["clock"].split(":")]
    if len(parts) == 1 and match["days"] is None:
        return parts[0] * _CLOCK_PARTS[1]
    factors = _CLOCK_PARTS[::-1] if match["days"] else _CLOCK_PARTS[len(parts) - 1 :: -1]
    return float(match["days"] or 0) * _DAY + sum(part * factor for part, factor in zip(parts, factors, strict=False))


def duration_of(seconds: float) -> str:
    """Return seconds as Slurm reads them: days, hours and minutes, rounded up to a minute."""
    minutes = max(1, -(-int(seconds) // 60))
    days, rest = divmod(minutes, 24 * 60)
    hours, minutes = divmod(rest, 60)
    return f"{days}-{hours:02d}:{minutes:02d}:00"


def time_of(text: str) -> str | None:
    """Return a time of Slurm, ISO 8601 in local time; None where unknown."""
    try:
        return datetime.fromisoformat(text.strip()).isoformat()
    except ValueError:
        return None


def gpus_of_gres(text: str) -> dict[str, int]:
    """Return how many GPUs of each type ``gpu:h100:8(S:0-1)`` names; those without a type under an empty one."""
    counts: dict[str, int] = {}
    for match in _GPUS.finditer(text):
        kind = (match["kind"] or "").lower()
        counts[kind] = counts.get(kind, 0) + int(match["count"])
    return counts
