"""Widgets that outlive a mistake in their own handlers."""

from __future__ import annotations

from textual.message import Message
from textual.message_pump import MessagePump


class Guarded(MessagePump):
    """Reports an exception of a handler and takes the next message; Textual's own loop would end for good."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            self.app._handle_exception(error)
