"""Keys in the order in which they were typed, however many come at once."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeAlias

from textual import events
from textual.app import App
from textual.message import Message
from textual.screen import Screen

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
