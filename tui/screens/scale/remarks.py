"""What there is to say of the table of scaling: knee, communication, the price of going faster."""

from __future__ import annotations

from capacity_tui.tui.terminal.text import Line, Span, line, wrap
from capacity_tui.tui.widgets.lines import Lines


class Remarks(Lines):
    """Sentences, as many as there are lines for."""

    def __init__(self) -> None:
        super().__init__(id="remarks")
        self._remarks: tuple[str, ...] = ()

    def show_remarks(self, remarks: tuple[str, ...]) -> None:
        """Show other sentences."""
        self._remarks = remarks
        self._repaint()

    def on_resize(self) -> None:
        """Break the sentences for the new width."""
        self._repaint()

    def _repaint(self) -> None:
        if self.is_mounted and self.size:
            self.show(self._build(self.size.width))

    def _build(self, width: int) -> list[Line]:
        text = " ".join(self._remarks)
        return [line(Span(f" {row}", "label")) for row in wrap(text, width - 2)]
