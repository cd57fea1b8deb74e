"""Whether a run fits its hardware: the one verdict of screen, tables, reports and scripts."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """Whether a run fits its hardware.

    A run fits when it does at the upper end of the range of its memory, and does not fit when it would not even at the
    lower end. Between them it is tight.
    """

    FITS = "fits"
    TIGHT = "tight"
    OVER = "does not fit"
    UNKNOWN = "unknown"

    @property
    def words(self) -> str:
        """The verdict as a table says it."""
        return _WORDS[self]


_WORDS = {
    Verdict.FITS: "fits",
    Verdict.TIGHT: "memory is tight",
    Verdict.OVER: "does not fit",
    Verdict.UNKNOWN: "no memory size known to fit into",
}
