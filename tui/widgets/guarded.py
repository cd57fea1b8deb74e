"""Widgets that outlive a mistake in their own handlers, and screens that close once."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen, ScreenResultType


class Guarded(MessagePump):
    """Reports an exception of a handler and takes the next message; Textual's own loop would end for good."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            self.app._handle_exception(error)


class ClosesOnce(Guarded, Screen[ScreenResultType]):
    """A screen over another that is closed once, however many keys that close it are under way already.

    It stands behind the kind of screen among the bases, since Textual takes styles from the first.
    """

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close the screen, unless it is closed."""
        return super().dismiss(result) if self.is_active else AwaitComplete.nothing()  # type: ignore[no-untyped-call]
