"""The line one types into."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding
from textual.widgets import Input

from capacity_tui.tui.widgets.guarded import Guarded


class Entry(Guarded, Input):
    """An input that takes its keys in the order in which they came.

    Textual inserts a character at once, but runs a key of the input (backspace, enter) only after all parents have
    passed it on: what comes in a burst over a slow line would be deleted or entered before its turn.
    """

    _ACTIONS: ClassVar[dict[str, str]] = {
        key: binding.action
        for binding in Input.BINDINGS
        if isinstance(binding, Binding)
        for key in binding.key.split(",")
    }

    def __init__(self, placeholder: str = "") -> None:
        super().__init__(placeholder=placeholder, compact=True)
        self.cursor_blink = False

    async def on_key(self, event: events.Key) -> None:
        """Run the input's own keys here and now."""
        action = self._ACTIONS.get(event.key)
        if action is not None:
            event.stop()
            event.prevent_default()
            await self.run_action(action)
