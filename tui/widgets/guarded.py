"""Widgets that outlive a mistake in their own handlers and hear no outdated answer, and screens that close once."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen, ScreenResultType

from capacity_tui.tui.requests import Answer


class Guarded(MessagePump):
    """Reports an exception of a handler and takes the next message; Textual's own loop would end for good.

    Answers to requests that a newer one has outdated are dropped here, so that no handler needs to ask.
    """

    async def _dispatch_message(self, message: Message) -> None:
        if isinstance(message, Answer) and message.is_outdated:
            message.stop()
            message.drop()
            return
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            self.app._handle_exception(error)


class ClosesOnce(Guarded, Screen[ScreenResultType]):
    """A screen over another that is closed once, however many keys that close it are under way already.

    It stands behind the kind of screen among the bases, since Textual takes styles from the first.

    Attributes:
        is_answered: whether it closes as soon as something is read, so that no key is for it any more.
    """

    is_answered = False

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close the screen, unless it is closed."""
        return super().dismiss(result) if self.is_active else AwaitComplete.nothing()  # type: ignore[no-untyped-call]
