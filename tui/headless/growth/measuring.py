"""What commands that measure a command in series have in common: options, and lines told as runs end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.headless.kept import keep_entries
from capacity_tui.tui.headless.output import tell
from capacity_tui.tui.headless.questions import interrupted

if TYPE_CHECKING:
    from capacity_tui.engine.growth import Measurement, Measuring
    from capacity_tui.engine.growth import Series as MeasurementSeries
    from capacity_tui.engine.growth import Setting as MeasuringSetting
    from capacity_tui.engine.observe.history import RunRecord

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def measuring_options(repeats: int, limit: str) -> Callable[[CommandT], CommandT]:
    """Return the options of a command that measures: how often, for how long, and whether anew."""

    def with_options(command: CommandT) -> CommandT:
        for option in (
            click.option("--anew", is_flag=True, help="Measure all of it, also what was measured before a stop."),
            click.option("--timeout", metavar="TIME", default=limit, show_default=True,
                         help="End a run after so long."),
            click.option("--repeats", type=click.IntRange(min=1), default=repeats, show_default=True,
                         help="Runs of each: they say how much runs spread."),
        ):  # fmt: skip
            command = option(command)
        return command

    return with_options


def measured_series(
    measuring: Measuring,
    wanted: Sequence[tuple[MeasuringSetting, int]],
    anew: bool,
    no_history: bool,
    hopeless: Callable[[MeasuringSetting, Iterable[Measurement]], bool] | None = None,
    entry_of: Callable[[Measurement, RunRecord], RunRecord] | None = None,
) -> MeasurementSeries:
    """Measure a series, and tell each run on stderr.

    Args:
        measuring: the command.
        wanted: settings, each with which run of it.
        anew: whether what was measured before a stop is measured again.
        no_history: whether nothing is kept in the history.
        hopeless: whether a setting need not be tried after what was measured so far.
        entry_of: what is kept of a run, of its profile by default.

    Raises:
        CapacityError: the command cannot be started, or no run of it ended well.
    """
    from capacity_tui.engine.growth import KeptMeasurements, measure_series
    from capacity_tui.engine.present.growth import measured_line

    kept = KeptMeasurements(measuring)
    if anew:
        kept.forget()

    def told(measurement: Measurement, entry: RunRecord | None) -> None:
        tell(measured_line(measurement, entry is None))
        if entry is not None:
            keep_entries([entry if entry_of is None else entry_of(measurement, entry)], no_history)

    with interrupted() as stopped:
        found = measure_series(measuring, wanted, told, kept, hopeless, stopped)
    if not found.complete:
        tell(f"stopped after {len(found.measured)} of {found.wanted} runs; the same command goes on from here")
    if not any(not each.problem for each in found.measured):
        last = found.measured[-1].problem if found.measured else "stopped before the first had ended"
        raise CapacityError("no run ended well", last, "try the command by itself first")
    return found
