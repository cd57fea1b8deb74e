"""Which rows have the words one looks for, and the order of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from capacity_tui.tui.found import FoundColumn, FoundRow

_FRONT = "front"
"""A word that every row of the Pareto front has."""
_LAST = float("inf")


def is_found(row: FoundRow, words: Iterable[str], is_front: bool) -> bool:
    """Return whether a row has all words, in lower case, in its cells, its verdict or what it sets."""
    text = " ".join((*(cell.text for cell in row.cells), *row.about, row.verdict.words, _FRONT if is_front else ""))
    return all(word in text.casefold() for word in words)


def in_order(
    kept: Sequence[int],
    rows: Sequence[FoundRow],
    columns: Sequence[FoundColumn],
    sorted_by: int | None,
    is_reversed: bool,
) -> list[int]:
    """Return indices of rows in order: as they were found, or by a column with the better ones first.

    What is not known stands last either way.
    """
    if sorted_by is None:
        order = list(kept)
        return order[::-1] if is_reversed else order
    sign = -1.0 if (columns[sorted_by].better > 0) != is_reversed else 1.0

    def by(index: int) -> tuple[bool, float]:
        number = rows[index].cells[sorted_by].number
        return number is None, _LAST if number is None else sign * number

    if columns[sorted_by].is_number:
        return sorted(kept, key=by)
    return sorted(kept, key=lambda index: rows[index].cells[sorted_by].text, reverse=is_reversed)
