"""Which columns of a table there is room for, and how wide they are."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from capacity_tui.tui.terminal.text import left, right

GAP = 2
"""Cells between two columns."""


def fitted(widths: Sequence[int], ranks: Sequence[int], room: int) -> tuple[int, ...]:
    """Return the indices of the columns that are shown, in order.

    Args:
        widths: cells that each needs.
        ranks: 0 for what is never left out; of the others the highest goes first, of equals the one at the right.
        room: cells there are.
    """
    kept = list(range(len(widths)))
    while sum(widths[index] + GAP for index in kept) - GAP > room:
        rank, last = max(((ranks[index], index) for index in kept), default=(0, 0))
        if rank == 0:
            break
        kept.remove(last)
    return tuple(kept)


def narrowed(widths: Sequence[int], room: int, least: int) -> tuple[int, ...]:
    """Return widths of columns that are in room together, cell by cell from the widest, none below ``least``."""
    found = list(widths)
    while found and sum(found) + GAP * (len(found) - 1) > room:
        widest = max(range(len(found)), key=found.__getitem__)
        if found[widest] <= least:
            break
        found[widest] -= 1
    return tuple(found)


def joined(texts: Sequence[str], widths: Sequence[int], at_right: Sequence[bool]) -> tuple[str, ...]:
    """Return texts in the widths of their columns, each but the last with the gap behind it."""
    places = zip(texts, widths, at_right, strict=True)
    cells = [(right if flush else left)(text, width) for text, width, flush in places]
    return tuple(cell + " " * GAP for cell in cells[:-1]) + tuple(cells[-1:])


def widest(texts: Sequence[str]) -> int:
    """Return the cells of the widest of some texts."""
    return max(map(cell_len, texts), default=0)
