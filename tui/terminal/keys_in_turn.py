"""Hands keys on one by one: each is done with before the next is looked at."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeAlias

from textual import events
from textual.app import App
from textual.message import Message
from textual.screen import Screen

_LONGEST = 0.25
"""Seconds after which the next key is handed on in any case: whoever had the one before it may be gone."""

_Typed: TypeAlias = events.Key | events.Paste


class KeyDone(Message):
    """Goes the way of a key right behind it: where it arrives the key has been, or was kept on its way.

    Args:
        typed: the key.
    """

    def __init__(self, typed: _Typed) -> None:
        super().__init__()
        self.typed = typed


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
        self._timeout: asyncio.TimerHandle | None = None

    @property
    def has_keys(self) -> bool:
        """Whether a key is on its way, or waits for that."""
        return self._handed_on is not None

    async def on_event(self, event: events.Event) -> None:
        """Hand on a key that nobody had yet, once the one before it is done."""
        if not isinstance(event, events.Key | events.Paste):
            await super().on_event(event)
        elif event.is_forwarded:
            await super().on_event(event)
            await self._go_on_behind(event)
        elif self._handed_on is not None:
            self._waiting.append(event)
        elif self._screen_stack:
            await self._hand_on(event)

    async def on_key_done(self, message: KeyDone) -> None:
        """Let the next key come behind one that was kept on its way."""
        await self._go_on_behind(message.typed)

    async def _hand_on(self, typed: _Typed) -> None:
        on_the_way, self._screen_then = self.focused or self.screen, self.screen
        self._handed_on = typed
        self._limit_wait(typed)
        await super().on_event(typed)
        # A key that the program itself took goes nowhere.
        (on_the_way if typed.is_forwarded else self).post_message(KeyDone(typed))

    async def _go_on_behind(self, typed: _Typed) -> None:
        """Let the next key come, on a screen that has just been opened once that is there."""
        if typed is not self._handed_on or not self._screen_stack:
            return
        if self.screen is not self._screen_then:
            self._screen_then = self.screen
            self._limit_wait(typed)
            self.screen.call_after_refresh(self.post_message, KeyDone(typed))
            return
        if self._timeout is not None:
            self._timeout.cancel()
        self._handed_on = None
        if self._waiting:
            await self._hand_on(self._waiting.popleft())

    def _limit_wait(self, typed: _Typed) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
        self._timeout = asyncio.get_running_loop().call_later(_LONGEST, self.post_message, KeyDone(typed))
