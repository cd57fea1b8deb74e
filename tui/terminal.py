"""Between program and terminal: keys in the order in which they were typed, and only the cells that changed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip

from capacity_tui.tui.text import with_fewer_styles

_LONGEST = 0.25  # Seconds after which a key is taken for done in any case: whoever had it may be gone
_ROUNDS = 3  # An input submits its answer, the line that asks takes it and closes, and the screen then moves the focus
_AGAIN = 0.02  # Seconds after which it is looked again whether keys still wait for something
_LEAVING = frozenset({"escape", "ctrl+c", "ctrl+q"})
"""Keys for which nothing is waited: they are how one gets out of waiting."""

_Typed: TypeAlias = events.Key | events.Paste


class KeyDone(Message):
    """Goes the way of a key behind it, some rounds yet: where it arrives the key has been, or was kept on its way."""

    def __init__(self, typed: _Typed, rounds: int = 0) -> None:
        super().__init__()
        self.typed = typed
        self.rounds = rounds


class KeysInTurn(App[None]):
    """A program that takes keys in the order in which they came, however many come at once.

    Textual hands every key at once to what has the focus, and runs the command of a key only when the key has come
    back from there: of a burst, as slow lines bring them, the second key would be heard where the first was.
    """

    def __init__(self, *, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._waiting: deque[_Typed] = deque()
        self._handed_on: _Typed | None = None
        self._screen_then: Screen[object] | None = None

    @property
    def has_keys(self) -> bool:
        return self._handed_on is not None or bool(self._waiting)

    @property
    def keys_wait(self) -> bool:
        """Whether further keys are for a screen that is not there yet."""
        return False

    @property
    def _is_held(self) -> bool:
        leaving = (typed for typed in self._waiting if isinstance(typed, events.Key) and typed.key in _LEAVING)
        return self.keys_wait and not any(leaving)

    async def on_event(self, event: events.Event) -> None:
        """Hand on a key that nobody had yet, once the one before it is done."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        else:
            self._waiting.append(event)
            if self._handed_on is None and self._screen_stack and not self.keys_wait:
                await self.hand_on()

    async def on_key_done(self, message: KeyDone) -> None:
        """Let the next key come once all is done that the one before set off, and a new screen is there."""
        if message.typed is not self._handed_on or not self._screen_stack:
            return
        if self.screen is not self._screen_then:
            self._screen_then = self.screen
            self.screen.call_after_refresh(self.post_message, KeyDone(message.typed))
        elif message.rounds:
            (self.focused or self.screen).post_message(KeyDone(message.typed, message.rounds - 1))
        elif self._is_held:
            asyncio.get_running_loop().call_later(_AGAIN, self.post_message, KeyDone(message.typed))
        else:
            self._handed_on = None
            await self.hand_on()

    async def hand_on(self) -> None:
        if not self._waiting:
            return
        typed = self._handed_on = self._waiting.popleft()
        on_the_way, self._screen_then = self.focused or self.screen, self.screen
        asyncio.get_running_loop().call_later(_LONGEST, self._ask_after, typed)
        await super().on_event(typed)
        # A key that the program itself took goes nowhere.
        (on_the_way if typed.is_forwarded else self).post_message(KeyDone(typed, _ROUNDS))

    def _ask_after(self, typed: _Typed) -> None:
        """Come back to a key until it is done: what was to tell that may have got lost on its way."""
        if typed is not self._handed_on or not self._screen_stack:
            return
        if not self._is_held:
            self.post_message(KeyDone(typed))
        asyncio.get_running_loop().call_later(_LONGEST, self._ask_after, typed)


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
