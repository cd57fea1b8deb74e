"""One line about the run under the cursor."""

from __future__ import annotations

from capacity_tui.tui.terminal.text import Line, Span, clip, line
from capacity_tui.tui.widgets.bars import Bar


class RunHead(Bar):
    """Says what runs, how far it is, and how long it goes on."""

    def __init__(self) -> None:
        super().__init__(id="run-head")
        self._text, self._role = "", "value"

    def show_head(self, text: str, role: str = "value") -> None:
        """Say something else."""
        self._text, self._role = text, role
        self.repaint()

    def build(self, width: int) -> Line:
        """Cut the line where there is no more room."""
        return line(Span(clip(f" {self._text}", width), self._role)) if self._text else line()
