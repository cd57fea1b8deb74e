"""One entry of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogEntry:
    """Figures of one line, record or page.

    Attributes:
        figures: by the names of ``LOG_FIGURES``, in basic units; at least one, unless there is a precision.
        program: who writes so, by the name of its row; empty for a user's own expression.
        at_seconds: the time the entry gives itself, in seconds of some clock; None where it gives none.
        precision: number format that the line says; empty where it says none.
    """

    figures: Mapping[str, float]
    program: str
    at_seconds: float | None = None
    precision: str = ""
