"""Grids of settings as people type them, and settings ranked by what they get done in a second."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

import numpy as np

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import equation
from capacity_tui.engine.growth.measuring import Measurement, Measuring, Setting
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_number

_ALIKE = 0.25  # How far the exponent may be from 1 with which what gets done grows over a setting that is a size
_MOST_START = 0.9  # Share of the shortest run that its start can be: what is left of a shorter one would be noise


@equation("efficiency = metric / (seconds - start)", unit="1/s", source="what is learned, over the time that it takes")
def efficiency(metric: Number, seconds: Number, start: Number) -> Number:
    """What a run gets done in a second of work.

    Args:
        metric: what it got done.
        seconds: of the run.
        start: of these, what passes before anything gets done.
    """
    return metric / (seconds - start)


@dataclass(frozen=True, slots=True)
class RankedSetting:
    """A setting with what its runs came to, as medians; None where no run ended well."""

    set: Setting  # what stood for each placeholder
    seconds: float | None  # of a run
    metric: float | None  # what it got done; None where nothing was to be read, and runs are ranked by time alone
    efficiency: float | None  # what it gets done in a second behind its start; without a metric, runs in a second
    peak_memory_bytes: float | None  # the most that a run held
    exit_code: int  # of its last run that failed, 0 where all ended well
    problem: str  # of that run
    runs: int  # that ended well
    # what any of the runs takes before it gets anything done, as runs of several sizes show it; 0 where none do
    start_seconds: float = 0.0


def ranked_settings(measured: Iterable[Measurement]) -> tuple[RankedSetting, ...]:
    """Return settings, the most efficient first and those that failed last."""
    grouped: dict[tuple[tuple[str, str], ...], list[Measurement]] = {}
    for run in measured:
        grouped.setdefault(tuple(run.set.items()), []).append(run)
    start = _start_seconds([_ranked(runs, 0.0) for runs in grouped.values()])
    ranked = [_ranked(runs, start) for runs in grouped.values()]
    return tuple(
        sorted(ranked, key=lambda setting: -1.0 if setting.efficiency is None else setting.efficiency, reverse=True)
    )


def _start_seconds(settings: Sequence[RankedSetting]) -> float:
    """Return what runs take before they get anything done: where the line through runs of several sizes begins."""
    done = [
        (entry.set, entry.metric, entry.seconds)
        for entry in settings
        if entry.metric is not None and entry.metric > 0 and entry.seconds is not None
    ]
    starts = []
    for key in dict.fromkeys(key for setting, _, _ in done for key in setting):
        alike: dict[tuple[tuple[str, str], ...], list[tuple[float, float, float]]] = {}
        for setting, metric, seconds in done:
            size = _number(setting[key])
            if size is not None:
                others = tuple(item for item in setting.items() if item[0] != key)
                alike.setdefault(others, []).append((size, metric, seconds))
        starts += [start for runs in alike.values() if (start := _start_of(sorted(runs))) is not None]
    shortest = min((seconds for _, _, seconds in done), default=0.0)
    return min(median(starts), _MOST_START * shortest) if starts else 0.0


def _start_of(runs: Sequence[tuple[float, float, float]]) -> float | None:
    """Return where the line of time over what got done begins, of runs by size; None where their setting is no size."""
    (small, little, _), (large, much, _) = runs[0], runs[-1]
    if large <= small or much <= little or abs(math.log(much / little) / math.log(large / small) - 1) > _ALIKE:
        return None
    slope, start = np.polyfit([metric for _, metric, _ in runs], [seconds for _, _, seconds in runs], 1)
    return max(0.0, float(start)) if slope > 0 else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < math.inf else None


def _ranked(runs: Sequence[Measurement], start: float) -> RankedSetting:
    well = [run for run in runs if not run.problem]
    failed = [run for run in runs if run.problem]
    seconds = _median(run.seconds for run in well)
    metric = _median(run.metric for run in well)
    done = 1.0 if metric is None else metric
    return RankedSetting(
        set=runs[0].set,
        seconds=seconds,
        metric=metric,
        efficiency=None if seconds is None else float(efficiency(done, seconds, start)),
        peak_memory_bytes=_median(run.peak_memory_bytes for run in well),
        exit_code=failed[-1].exit_code if failed else 0,
        problem=failed[-1].problem if failed else "",
        runs=len(well),
        start_seconds=start,
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


DEFAULT_GRID = ("depth=3..10", "chunk=5..25:5", "samples=100,300,1000")
"""What a hierarchy of patterns is tried with where nobody says: levels, tokens of a chunk, and short runs."""

MOST_SETTINGS = 10_000

_BETWEEN = ".."

_EXAMPLE = "write KEY=V1,V2 or KEY=LO..HI or KEY=LO..HI:STEP, such as depth=3..10"


def parse_grid(texts: Sequence[str], measuring: Measuring) -> tuple[Setting, ...]:
    """Return every setting of a grid, the last key changing first.

    Args:
        texts: a key with its values each; without any those of the default grid that the command takes.
        measuring: the command, in which each key has its place.

    Raises:
        CapacityError: a text is no key with values, a key is given twice, nothing in the command takes it, or there are
            too many settings.
    """
    axes = dict(map(_axis, texts or DEFAULT_GRID))
    if len(axes) < len(texts):
        raise CapacityError("a key is given twice", hint="give all of its values at once, with commas")
    unused = measuring.missing(tuple(axes))
    if not texts:
        axes = {key: values for key, values in axes.items() if key not in unused}
    elif unused:
        missing = " and ".join(f"{{{key}}}" for key in unused)
        raise CapacityError(f"nothing in the command takes {missing}", hint=f"write {missing} where its value goes")
    if not axes:
        raise CapacityError(
            "nothing in the command changes", hint="write {depth} where a value goes, and --grid depth=3..10"
        )
    if math.prod(map(len, axes.values())) > MOST_SETTINGS:
        raise CapacityError("too many settings", hint=f"{format_number(MOST_SETTINGS)} at most: take fewer values")
    return tuple(dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))


def _axis(text: str) -> tuple[str, tuple[str, ...]]:
    key, equals, written = text.partition("=")
    values = tuple(dict.fromkeys(itertools.chain.from_iterable(_values(part.strip()) for part in written.split(","))))
    if not equals or not key.strip() or not values:
        raise CapacityError(f"{text!r:.60} is no key with values", hint=_EXAMPLE)
    return key.strip(), values


def _values(text: str) -> Iterator[str]:
    """Yield one value, or those of a range, both ends among them where the step meets them."""
    if _BETWEEN not in text:
        yield from [text] if text else []
        return
    ends, _, step_text = text.partition(":")
    try:
        low, high = (float(end) for end in ends.split(_BETWEEN, 1))
        step = float(step_text or 1)
    except ValueError:
        raise CapacityError(f"{text!r:.60} is no range", hint=_EXAMPLE) from None
    if not (step > 0 and low <= high and math.isfinite(high - low) and (high - low) / step < MOST_SETTINGS):
        raise CapacityError(f"{text!r:.60} is no range", hint=_EXAMPLE)
    for number in range(math.floor((high - low) / step + 1e-9) + 1):
        yield f"{low + number * step:.12g}"
