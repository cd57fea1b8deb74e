"""Ranks settings by what they get done in a second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.growth.measuring import Measurement, Setting
from capacity_tui.engine.numeric import Number


@equation("efficiency = metric / seconds", unit="1/s", source="what is learned, over the time that it takes")
def efficiency(metric: Number, seconds: Number) -> Number:
    """What a run gets done in a second.

    Args:
        metric: what it got done.
        seconds: of the run.
    """
    return metric / seconds


@dataclass(frozen=True, slots=True)
class RankedSetting:
    """A setting with what its runs came to, as medians; None where no run ended well.

    Attributes:
        set: what stood for each placeholder.
        seconds: of a run.
        metric: what it got done; None where nothing was to be read, and runs are ranked by time alone.
        efficiency: what it gets done in a second; without a metric, runs in a second.
        peak_memory_bytes: the most that a run held.
        exit_code: of its last run that failed, 0 where all ended well.
        problem: of that run.
        runs: that ended well.
    """

    set: Setting
    seconds: float | None
    metric: float | None
    efficiency: float | None
    peak_memory_bytes: float | None
    exit_code: int
    problem: str
    runs: int


def ranked_settings(measured: Iterable[Measurement]) -> tuple[RankedSetting, ...]:
    """Return settings, the most efficient first and those that failed last."""
    grouped: dict[tuple[tuple[str, str], ...], list[Measurement]] = {}
    for each in measured:
        grouped.setdefault(tuple(each.set.items()), []).append(each)
    ranked = [_ranked(runs) for runs in grouped.values()]
    return tuple(sorted(ranked, key=lambda each: -1.0 if each.efficiency is None else each.efficiency, reverse=True))


def _ranked(runs: Sequence[Measurement]) -> RankedSetting:
    well = [each for each in runs if not each.problem]
    failed = [each for each in runs if each.problem]
    seconds = _median(each.seconds for each in well)
    metric = _median(each.metric for each in well)
    done = 1.0 if metric is None else metric
    return RankedSetting(
        set=runs[0].set,
        seconds=seconds,
        metric=metric,
        efficiency=None if seconds is None else float(efficiency(done, seconds)),
        peak_memory_bytes=_median(each.peak_memory_bytes for each in well),
        exit_code=failed[-1].exit_code if failed else 0,
        problem=failed[-1].problem if failed else "",
        runs=len(well),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
