"""A panel of rows under one line of heads."""

from __future__ import annotations

from capacity_tui.tui.widgets.panel import Panel


class HeadedPanel(Panel):
    """Rows under a line of heads, which stays in sight while they scroll; ``item_count`` says how many there are."""

    def item_at(self, index: int) -> int | None:
        """Return the row to which a line belongs."""
        return index - 1 if 1 <= index <= self.item_count() else None

    def pinned(self) -> int:
        """Return that the heads stay in sight."""
        return 1 if self.item_count() else 0
