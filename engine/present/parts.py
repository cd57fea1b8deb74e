"""Parts of a report as data, which screen and command line lay out each in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "strong", "quiet"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A line of text; a strong one is a heading or a warning, a quiet one an aside."""

    text: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class TablePart:
    """A table.

    Attributes:
        heads: names of the columns.
        rows: their cells.
        right: numbers of the columns that are flush right.
        kept: numbers of the columns that stay where not all have room; without any all stay, their cells folded.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()


Part = TextPart | TablePart


def table_part(
    heads: Iterable[str], rows: Iterable[Sequence[str]], right: Iterable[int] = (), kept: Iterable[int] = ()
) -> TablePart:
    """Return a table of whatever holds its cells."""
    return TablePart(tuple(heads), tuple(map(tuple, rows)), tuple(right), tuple(kept))
