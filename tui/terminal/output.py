"""What is written to the terminal: only what changed, each style only as far as it differs from the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

from capacity_tui.tui.text import with_fewer_styles

Cell = tuple[str, Style | None]  # What one cell shows; the second cell of a wide character has no text
_NOTHING: Cell = ("\0", None)
_SHORTEST_GAP = 8  # To go over fewer cells that stay costs more bytes than to write them again


class Painted:
    """The cells of each line as they were written last."""

    def __init__(self) -> None:
        self._lines: dict[int, list[Cell]] = {}

    def forget(self) -> None:
        """Know nothing of the terminal any more: somebody else wrote on it, or it has another size."""
        self._lines.clear()

    def changes(self, x: int, y: int, cells: Sequence[Cell]) -> Iterator[tuple[int, Sequence[Cell]]]:
        """Take cells from a column on for written; yield those not shown yet, with the column of the first."""
        line = self._lines.setdefault(y, [])
        end = x + len(cells)
        line += [_NOTHING] * (end - len(line))
        before, line[x:end] = line[x:end], cells
        if before == cells:
            return
        changed = [index for index, cell in enumerate(cells) if cell != before[index]]
        first = last = changed[0]
        for index in changed[1:]:
            if index - last > _SHORTEST_GAP:
                yield _whole(x, cells, first, last)
                first = index
            last = index
        yield _whole(x, cells, first, last)


class Difference(CompositorUpdate):
    """The part of an update that the terminal does not show yet."""

    def __init__(self, update: LayoutUpdate | ChopsUpdate, painted: Painted) -> None:
        self._update = update
        self._painted = painted

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield all of the update, as one does who asks for no terminal sequences."""
        yield self._update

    def render_segments(self, console: Console) -> str:
        """Return what has to be written, and take it for written."""
        written: list[str] = []
        for x, y, strip in self._pieces():
            for start, cells in self._painted.changes(x, y, _cells(strip)):
                runs = groupby(cells, key=itemgetter(1))
                segments = [Segment("".join(text for text, _ in run), style) for style, run in runs]
                written += (Control.move_to(start, y).segment.text, Strip(segments).render(console))
        return with_fewer_styles("".join(written))

    def _pieces(self) -> Iterator[tuple[int, int, Strip]]:
        """Yield column, line and content of what is to be shown."""
        update = self._update
        if isinstance(update, LayoutUpdate):
            for y, line in enumerate(update.strips, update.region.y):
                x = update.region.x
                for strip in line:
                    yield x, y, strip
                    x += strip.cell_length
            return
        for y, first, stop in update.spans:
            for end, (x, piece) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if piece is not None and x <= stop and end > first:
                    yield x, y, piece if end <= stop else piece.crop(0, stop - x)


def _whole(x: int, cells: Sequence[Cell], first: int, last: int) -> tuple[int, Sequence[Cell]]:
    """Return cells with the column of the first, without cutting a wide character."""
    while first and not cells[first][0]:
        first -= 1
    while last + 1 < len(cells) and not cells[last + 1][0]:
        last += 1
    return x + first, cells[first : last + 1]


def _cells(strip: Strip) -> list[Cell]:
    cells: list[Cell] = []
    for text, style, control in strip:
        if control:
            continue
        if cell_len(text) == len(text):
            cells += [(character, style) for character in text]
            continue
        for character in text:
            width = cell_len(character)
            if width:
                cells += [(character, style), *[("", style)] * (width - 1)]
            elif cells:
                cells[-1] = (cells[-1][0] + character, style)
    return cells
