"""The verdict over all offers, and what is recommended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity_tui.tui.terminal.text import Line, Span, clip, line, wrap
from capacity_tui.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from capacity_tui.tui.shown.found import Found


class Conclusion(Lines):
    """One line for the verdict, and one for each recommendation where there is room."""

    def __init__(self) -> None:
        super().__init__(id="conclusion")
        self._remarks: tuple[str, ...] = ()
        self._is_old = False

    def show_found(self, found: Found | None, *, is_old: bool) -> None:
        """Show what follows from the offers.

        Args:
            found: the offers.
            is_old: whether they answer an older question.
        """
        self._remarks, self._is_old = found.remarks if found is not None else (), is_old
        self._repaint()

    def on_resize(self) -> None:
        """Lay the lines out for the new width."""
        self._repaint()

    def _repaint(self) -> None:
        if self.is_mounted and self.size:
            roles = ("best", *("value" for _ in self._remarks[1:]))
            told = zip(self._remarks, roles, strict=False)
            width = self.size.width
            self.show([line(Span(clip(f" {text}", width), "dim" if self._is_old else role)) for text, role in told])


def conclusion_lines(found: Found | None, width: int) -> list[Line]:
    """Return verdict and recommendations in full."""
    if found is None or not found.remarks:
        return [line(Span("Nothing was compared yet.", "value"))]
    verdict, *others = found.remarks
    lines = [line(Span(text, "best")) for text in wrap(verdict, width)]
    for remark in others:
        lines += [line(), *(line(Span(text, "value")) for text in wrap(remark, width))]
    return lines
