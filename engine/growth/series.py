"""A series of measurements: many settings of one command, each once or more, as far as the user lets it go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from capacity_tui.engine.growth.growth_fit import FIGURES, Points
from capacity_tui.engine.growth.kept_measurements import KeptMeasurements
from capacity_tui.engine.growth.measuring import Measurement, Measuring, Setting
from capacity_tui.engine.growth.points_file import SIZE
from capacity_tui.engine.observe.history import RunRecord


@dataclass(frozen=True, slots=True)
class Series:
    """What came of a series.

    Attributes:
        measured: each run, in the order in which they were wanted.
        wanted: runs that it has in all.
        complete: whether all of them were taken.
    """

    measured: tuple[Measurement, ...]
    wanted: int
    complete: bool


def measure_series(
    measuring: Measuring,
    wanted: Sequence[tuple[Setting, int]],
    callback: Callable[[Measurement, RunRecord | None], None],
    kept: KeptMeasurements | None = None,
    hopeless: Callable[[Setting, Iterable[Measurement]], bool] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Series:
    """Measure settings one after another; Ctrl-C ends the series, and what was measured stays for the next time.

    Args:
        wanted: settings, each with which run of it.
        callback: gets each measurement as it comes, with an entry for the history where it was taken now.
        kept: what was measured before a stop, and takes what is measured now.
        hopeless: whether a setting need not be tried after what was measured so far.

    Raises:
        CapacityError: the command cannot be started, or what was measured cannot be kept.
    """
    before = {_key(run.set, run.repeat): run for run in (kept.measurements() if kept else ())}
    measured: list[Measurement] = []
    for setting, repeat in wanted:
        known = before.get(_key(setting, repeat))
        if known is not None:
            measured.append(known)
            callback(known, None)
            continue
        if hopeless is not None and hopeless(setting, measured):
            continue
        measurement, entry, interrupted = measuring.run(setting, repeat)
        if interrupted or stopped():
            return Series(tuple(measured), len(wanted), complete=False)
        if kept is not None:
            kept.add(measurement)
        measured.append(measurement)
        callback(measurement, entry)
    if kept is not None:
        kept.forget()
    return Series(tuple(measured), len(wanted), complete=True)


def wanted_sizes(sizes: Iterable[int], repeats: int) -> list[tuple[Setting, int]]:
    """Return the runs of a job of growing size, the smallest first, each size as often as it is repeated."""
    return [({SIZE: str(size)}, repeat) for size in sorted(set(sizes)) for repeat in range(repeats)]


def larger_than_failed(setting: Setting, measured: Iterable[Measurement]) -> bool:
    """Whether a smaller or equal size took too long or failed: a larger one would too."""
    return any(run.problem and int(run.set[SIZE]) <= int(setting[SIZE]) for run in measured)


def points_of(measured: Iterable[Measurement]) -> dict[str, Points]:
    """Return size and value of each figure that grows with the size, of the runs that ended well."""
    well = [run for run in measured if not run.problem]
    by_figure = {
        figure: [(float(run.set[SIZE]), value) for run in well if (value := getattr(run, figure)) and value > 0]
        for figure in FIGURES
    }
    return {figure: points for figure, points in by_figure.items() if points}


def _key(setting: Setting, repeat: int) -> tuple[tuple[tuple[str, str], ...], int]:
    return tuple(sorted(setting.items())), repeat
