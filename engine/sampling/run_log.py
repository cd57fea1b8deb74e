"""Step times and peak memory in the logs that training programs write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.units import parse_bytes

_NUMBER = r"(\d+(?:[.,]\d+)*(?:e-?\d+)?)"
# What a step took, with the seconds one unit of the number stands for; 0 where it is steps a second.
_STEPS = (
    (re.compile(rf"elapsed time per iteration \(ms\): {_NUMBER}", re.IGNORECASE), 1e-3),
    (re.compile(rf"\b(?:step|iter(?:ation)?)[ _]time(?: \(ms\))? ?[:=]? ?{_NUMBER} ?ms", re.IGNORECASE), 1e-3),
    (re.compile(rf"\b(?:train_)?(?:step|iter(?:ation)?)[ _]time(?:_in_s| \(s\))? ?[:=]? ?{_NUMBER}(?: ?s\b|$|[ ,|])",
                re.IGNORECASE), 1.0),
    (re.compile(rf"\btime {_NUMBER}ms", re.IGNORECASE), 1e-3),
    (re.compile(rf"[,\[ ]{_NUMBER}s/it\b"), 1.0),
    (re.compile(rf"[,\[ ]{_NUMBER}it/s\b"), 0.0),
    (re.compile(rf"train_steps_per_second['\"]?: {_NUMBER}"), 0.0),
)  # fmt: skip
_PEAKS = (
    re.compile(rf"\bmax(?:imum)?[ _](?:memory[ _])?(?:reserved|allocated)[^0-9\n]{{0,12}}{_NUMBER} ?([KMGT]i?B)",
               re.IGNORECASE),
    re.compile(rf"\bpeak[ _](?:gpu[ _])?(?:memory|mem)[^0-9\n]{{0,16}}{_NUMBER} ?([KMGT]i?B)", re.IGNORECASE),
    re.compile(rf"\bmem(?:ory)?: ?{_NUMBER} ?([KMGT]i?B)", re.IGNORECASE),
)  # fmt: skip
# The first steps compile, allocate and fill caches.
_WARM_UP_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class LogFigures:
    """What a log tells.

    Attributes:
        step_seconds: median step time after warm-up; None where no line tells it.
        peak_bytes: largest memory it names; None likewise.
        steps: number of lines with a step time.
    """

    step_seconds: float | None
    peak_bytes: float | None
    steps: int


def read_log(lines: Iterable[str]) -> LogFigures:
    """Return step time and peak memory from a training log, as Megatron, torchtitan, tqdm and others write it."""
    times: list[float] = []
    peaks: list[float] = []
    for line in lines:
        seconds = _step(line)
        if seconds:
            times.append(seconds)
        peaks.extend(_peak(line))
    steady = times[max(1, round(_WARM_UP_SHARE * len(times))) :] or times
    return LogFigures(median(steady) if steady else None, max(peaks, default=None), len(times))


def _step(line: str) -> float | None:
    for pattern, unit in _STEPS:
        found = pattern.search(line)
        if found:
            number = _float(found[1])
            return number * unit if unit else (1.0 / number if number else None)
    return None


def _peak(line: str) -> list[float]:
    found = (pattern.search(line) for pattern in _PEAKS)
    sizes = []
    for match in found:
        if match is not None:
            try:
                sizes.append(float(parse_bytes(f"{_float(match[1])} {match[2]}")))
            except CapacityError:
                continue
    return sizes


def _float(text: str) -> float:
    return float(text.replace(",", ""))
