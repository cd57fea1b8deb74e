"""Whether a run is possible and meets its limits: the one verdict of screen, tables, reports and scripts."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from capacity_tui.engine.record import dataclass

Tone: TypeAlias = Literal["good", "warn", "bad", "dim"]


class Holds(StrEnum):
    """Whether a run meets one constraint: at the far end of its range too, by its estimate alone, or not at all."""

    YES = "yes"
    LIKELY = "likely"
    NO = "no"


class Verdict(StrEnum):
    """The verdict of all constraints of a run: the worst decides.

    A run fits where it meets every constraint at the far end of its range too, is tight where it meets one by its
    estimate alone or answers its batch in waves, since the cache holds a part of it, misses a limit of latency, load,
    time or money, does not fit where memory of its devices or of their host is too small for the estimate itself, and
    cannot run where it breaks a rule.
    """

    FITS = "fits"
    TIGHT = "tight"
    MISSES_LIMIT = "misses_limit"
    DOES_NOT_FIT = "does_not_fit"
    CANNOT_RUN = "cannot_run"
    UNKNOWN = "unknown"

    @property
    def words(self) -> str:
        """The verdict as a table says it."""
        return _APPEARANCES[self].words

    @property
    def brief(self) -> str:
        """The same where there is little room."""
        return _APPEARANCES[self].brief or self.words

    @property
    def sign(self) -> str:
        """One character that stands for it."""
        return _APPEARANCES[self].sign

    @property
    def tone(self) -> Tone:
        """The role of its colour."""
        return _APPEARANCES[self].tone

    @property
    def gravity(self) -> int:
        """How severe it is: 0 for a run that fits, the most for one that is impossible."""
        return _GRAVITY.index(self)

    @property
    def holds(self) -> bool | None:
        """Whether every constraint holds by its estimate; None where a device's memory is unknown."""
        return None if self is Verdict.UNKNOWN else self in (Verdict.FITS, Verdict.TIGHT)


@dataclass(frozen=True, slots=True)
class _Appearance:
    sign: str
    words: str
    tone: Tone
    brief: str = ""


_APPEARANCES = {
    Verdict.FITS: _Appearance("✓", "fits", "good"),
    Verdict.TIGHT: _Appearance("!", "tight", "warn"),
    Verdict.MISSES_LIMIT: _Appearance("✗", "misses limit", "bad", "misses"),
    Verdict.DOES_NOT_FIT: _Appearance("✗", "does not fit", "bad", "no fit"),
    Verdict.CANNOT_RUN: _Appearance("–", "cannot run", "dim"),
    Verdict.UNKNOWN: _Appearance("?", "memory unknown", "dim", "unknown"),
}
_GRAVITY = (
    Verdict.FITS,
    Verdict.TIGHT,
    Verdict.UNKNOWN,
    Verdict.MISSES_LIMIT,
    Verdict.DOES_NOT_FIT,
    Verdict.CANNOT_RUN,
)
