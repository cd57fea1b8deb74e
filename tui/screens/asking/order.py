"""Which rows have the words one looks for, and the order of the rest."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.units import parse_quantity
from capacity_tui.tui.shown.found import FoundColumn, FoundRow

_FRONT = "front"
"""A word that every row of the Pareto front has."""
_LAST = float("inf")
_LIMIT = re.compile(r"(?P<column>[^<>=]+)(?P<sign><=|>=|<|>|=)(?P<value>[^<>=]+)")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}


def is_found(row: FoundRow, columns: Sequence[FoundColumn], words: Iterable[str], is_front: bool) -> bool:
    """Return whether a row has all words, in lower case, in its cells, its verdict or what it sets.

    A word such as ``$/h<20`` limits the numbers of a column; ``risk=low`` says what is in it.
    """
    text = " ".join((*(cell.text for cell in row.cells), *row.about, row.verdict.words, _FRONT if is_front else ""))
    return all(_keeps(row, columns, word) or word in text.casefold() for word in words)


def _keeps(row: FoundRow, columns: Sequence[FoundColumn], word: str) -> bool:
    """Return whether a word is a limit, and the row keeps it."""
    limit = _LIMIT.fullmatch(word)
    if limit is None:
        return False
    wanted, value = limit["column"], limit["value"]
    titles = [column.title.casefold().replace(" ", "") for column in columns]
    place = next((place for place, title in enumerate(titles) if title.startswith(wanted)), None)
    if place is None:
        return False
    cell = row.cells[place]
    try:
        wanted_number = parse_quantity(value, columns[place].unit)
    except CapacityError:
        return limit["sign"] == "=" and cell.text.casefold().startswith(value)
    return cell.number is not None and _SIGNS[limit["sign"]](cell.number, wanted_number)


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

    if columns[sorted_by].is_number or any(rows[index].cells[sorted_by].number is not None for index in kept):
        return sorted(kept, key=by)
    return sorted(kept, key=lambda index: rows[index].cells[sorted_by].text, reverse=is_reversed)
