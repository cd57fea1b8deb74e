"""A limit that a plan sets for one of its figures, and whether the figure keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.units import format_seconds


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit of latency.

    Attributes:
        figure: result key of what is limited.
        name: what that is called.
        limit: the most it may be, seconds.
        value: what it is, seconds.
        kept: whether it is at most that.
    """

    figure: str
    name: str
    limit: float
    value: float
    kept: bool

    @property
    def words(self) -> str:
        """Value and limit in words."""
        return f"{self.name} {format_seconds(self.value)}, at most {format_seconds(self.limit)} wanted"
