"""The line one types into."""

from __future__ import annotations

from textual.widgets import Input

from capacity_tui.tui.widgets.guarded import Guarded


class Entry(Guarded, Input):
    """An input of one row."""

    def __init__(self, placeholder: str = "") -> None:
        super().__init__(placeholder=placeholder, compact=True)
        self.cursor_blink = False
