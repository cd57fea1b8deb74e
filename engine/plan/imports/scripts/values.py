"""Values of Python scripts that are no plain ones: what only a run tells, and what a script changes later."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.catalog import Plain


class OfARun(str):
    """A value as it is written that only running the script tells."""

    __slots__ = ()


class FurtherOptions(OfARun):
    """What is written in place of options of which only a run tells any: ``"$@"``, ``**kwargs``."""

    __slots__ = ()
    why = "only running the script tells {}: what it gives is not read"


class Changed(dict[str, Plain]):
    """A mapping of a script that is changed on a line of it, with what it is up to there."""

    __slots__ = ("before", "line")

    def __init__(self, now: Mapping[str, Plain], before: dict[str, Plain], line: int) -> None:
        super().__init__(now)
        self.before, self.line = before, line

    def at(self, line: float) -> dict[str, Plain]:
        """Return what it is on a line of the script."""
        if line > self.line:
            return dict(self)
        return self.before.at(line) if isinstance(self.before, Changed) else self.before
