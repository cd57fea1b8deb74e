"""The mode that filled what a plan left open, and what of its shares the run uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from capacity_tui.engine.units import format_percent

ShareOf = Literal["memory", "power"]
_NAMES: dict[ShareOf, str] = {"memory": "the memory", "power": "the power limit"}


@dataclass(frozen=True, slots=True)
class UsedShare:
    """The share of one figure that a run uses, beside what a mode allows.

    Attributes:
        figure: memory of a device, or its power limit.
        used: the run's share of it, as estimated.
        allowed: the mode's.
        why: why the run does not stay inside; empty where it does.
    """

    figure: ShareOf
    used: float
    allowed: float
    why: str = ""

    @property
    def text(self) -> str:
        """Used and allowed in little room, with a mark where more is used."""
        return f"{100 * self.used:.0f}/{100 * self.allowed:.0f} %{' !' if self.why else ''}"

    @property
    def words(self) -> str:
        """Used and allowed in words, and why more is used than is allowed where it is."""
        said = f"{format_percent(self.used)} of {_NAMES[self.figure]}, the mode allows {format_percent(self.allowed)}"
        return f"{said}: {self.why}" if self.why else said


@dataclass(frozen=True, slots=True)
class FilledBy:
    """A mode, and what the run uses of its shares.

    Attributes:
        name: the mode's name.
        line: what it is, in a line.
        shares: used and allowed of memory and power, as far as they are known.
        reserve: what it keeps free beside the estimate.
        outside: what the run has outside of the mode's ranges, and why.
    """

    name: str
    line: str
    shares: tuple[UsedShare, ...] = ()
    reserve: str = ""
    outside: tuple[str, ...] = ()
