"""Finished samples and stages of work, read from lines of a command's output."""

from __future__ import annotations

import re
from collections.abc import Mapping

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.observe.profile.profiling import ProfilingEngine
from capacity_tui.engine.observe.profile.stages import Entry


class WorkInOutput:
    """Finds work in lines.

    Args:
        samples: expression of a line that counts samples: its group is how many are done so far; without a group
            each such line is one. None where no line does.
        stages: expression of the line with which each stage begins, by name.

    Raises:
        CapacityError: an expression cannot be read.
    """

    def __init__(self, samples: str | None, stages: Mapping[str, str]) -> None:
        self._samples = None if samples is None else _expression(samples)
        self._stages = {name: _expression(text) for name, text in stages.items()}
        self._counted = 0.0
        self._open: Entry | None = None

    def take(self, line: str, at: float, engine: ProfilingEngine) -> None:
        """Record the work of a line that came at a time on the monotonic clock."""
        for name, expression in self._stages.items():
            if expression.search(line):
                self.end(at, engine)
                self._open = engine.stages.enter(name, at)
        match = self._samples.search(line) if self._samples else None
        if match is None:
            return
        done = self._done(match)
        engine.done(done)
        if self._open is not None:
            self._open[2].done(done)

    def never_begun(self, engine: ProfilingEngine) -> tuple[str, ...]:
        """Return the stages whose line did not come."""
        begun = {stage.name for stage in engine.stages.totals()}
        return tuple(name for name in self._stages if name not in begun)

    def end(self, at: float, engine: ProfilingEngine) -> None:
        """End the stage that is open."""
        if self._open is not None:
            engine.stages.leave(self._open, at)
            self._open = None

    def _done(self, match: re.Match[str]) -> float:
        """Return how many samples a line counts that were not counted before."""
        if not match.re.groups:
            return 1.0
        try:
            count = float((match[1] or "").replace(",", "").replace("_", ""))
        except ValueError:
            return 0.0
        new = max(0.0, count - self._counted)
        self._counted += new
        return new


def _expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise CapacityError(f"{text!r} is no regular expression", str(error)) from error
