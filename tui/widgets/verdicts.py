"""How screens show a verdict: its sign alone or before its words, in the role of its colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity_tui.tui.terminal.text import Span

if TYPE_CHECKING:
    from capacity_tui.engine.verdict import Verdict


def mark_of(verdict: Verdict) -> Span:
    """Return the sign of a verdict."""
    return Span(verdict.sign, verdict.tone)


def worded(verdict: Verdict, words: str = "") -> Span:
    """Return the sign of a verdict before its words, or before what they say of one plan."""
    return Span(f"{verdict.sign} {words or verdict.words}", verdict.tone)
