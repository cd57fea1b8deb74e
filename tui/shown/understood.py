"""What the start prompt shows of a line while it is typed, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What the word under the cursor of a line may become.

    Attributes:
        word: the whole word.
        kind: what it is, as ``model``.
        line: the line with it.
        cursor: where the cursor stands then.
    """

    word: str
    kind: str
    line: str
    cursor: int


@dataclass(frozen=True, slots=True)
class Understood:
    """What one line was taken for.

    Attributes:
        words: the same in a few words; empty where nothing was understood.
        guesses: what was guessed, and why.
        faults: what was not understood, and what to do.
        suggestions: what the word under the cursor may become.
    """

    words: str
    guesses: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
