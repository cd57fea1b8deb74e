"""Hands keys on one by one: each is done with before the next is looked at."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TypeAlias

from textual import events
from textual.app import App
from textual.message import Message
from textual.screen import Screen

_LONGEST = 0.25
"""Seconds after which the next key is handed on in any case: whoever had the one before it may be gone."""
_FORGOTTEN = 1.0
"""Seconds after which a key that has not come back never will: a mistake was made on its way."""
_ROUNDS = 3
"""An input submits its answer, the line that asks takes it and closes, and the screen then moves the focus."""
_AGAIN = 0.02
"""Seconds after which a screen that is about to close is looked at again."""
_LEAVING = frozenset({"escape", "ctrl+c", "ctrl+q"})
"""Keys for which nothing is waited: they are how one gets out of waiting."""

_Typed: TypeAlias = events.Key | events.Paste


class KeyDone(Message):
    """Goes the way of a key behind it: where it arrives the key has been, or was kept on its way.

    Args:
        typed: the key.
        rounds: how often it goes that way yet, behind what the key set off there.
    """

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
        self._handed_on_at = 0.0
        self._screen_then: Screen[object] | None = None
        self._timeout: asyncio.TimerHandle | None = None

    @property
    def has_keys(self) -> bool:
        """Whether a key is on its way, or waits for that."""
        return self._handed_on is not None

    @property
    def _is_forgotten(self) -> bool:
        return time.monotonic() - self._handed_on_at > _FORGOTTEN

    @property
    def _is_to_leave(self) -> bool:
        return any(isinstance(typed, events.Key) and typed.key in _LEAVING for typed in self._waiting)

    def is_about_to_close(self) -> bool:
        """Whether further keys are for what lies below the screen that is shown."""
        return False

    async def on_event(self, event: events.Event) -> None:
        """Hand on a key that nobody had yet, once the one before it is done."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self._handed_on is not None:
            self._waiting.append(event)
            if self._is_forgotten and not self.is_about_to_close():
                await self._go_on()
        elif self._screen_stack:
            await self._hand_on(event)

    async def on_key_done(self, message: KeyDone) -> None:
        """Let the next key come once all is done that the one before set off, and a new screen is there."""
        if message.typed is not self._handed_on or not self._screen_stack:
            return
        if self.screen is not self._screen_then:
            self._screen_then = self.screen
            self._limit_wait(message.typed)
            self.screen.call_after_refresh(self.post_message, KeyDone(message.typed))
        elif message.rounds:
            (self.focused or self.screen).post_message(KeyDone(message.typed, message.rounds - 1))
        elif self.is_about_to_close() and not self._is_to_leave:
            asyncio.get_running_loop().call_later(_AGAIN, self.post_message, KeyDone(message.typed))
        else:
            await self._go_on()

    async def _hand_on(self, typed: _Typed) -> None:
        on_the_way, self._screen_then = self.focused or self.screen, self.screen
        self._handed_on, self._handed_on_at = typed, time.monotonic()
        self._limit_wait(typed)
        await super().on_event(typed)
        # A key that the program itself took goes nowhere.
        (on_the_way if typed.is_forwarded else self).post_message(KeyDone(typed, _ROUNDS))

    async def _go_on(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
        self._handed_on = None
        if self._waiting:
            await self._hand_on(self._waiting.popleft())

    def _limit_wait(self, typed: _Typed) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
        self._timeout = asyncio.get_running_loop().call_later(_LONGEST, self.post_message, KeyDone(typed))
