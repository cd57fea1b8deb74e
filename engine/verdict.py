"""Whether a run fits its hardware: the one verdict of screen, tables, reports and scripts."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """Whether a run fits its hardware.

    A run is tight when it fits, but would not at the upper end of the range of its memory.
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
    Verdict.TIGHT: "fits, but memory is tight",
    Verdict.OVER: "does not fit",
    Verdict.UNKNOWN: "no memory size known to fit into",
}
