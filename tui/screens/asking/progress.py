"""How far the search is, and how its rows are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity_tui.engine.units import format_seconds
from capacity_tui.tui.terminal.text import Line, Span, clip, line, spread
from capacity_tui.tui.widgets.bars import Bar

if TYPE_CHECKING:
    from capacity_tui.tui.screens.asking.found_table import FoundTable
    from capacity_tui.tui.screens.asking.searching import Searching
    from capacity_tui.tui.shown.found import Found


class Progress(Bar):
    """One line: plans tried, plans that fit, time; at the right how rows are sorted and filtered."""

    def __init__(self) -> None:
        super().__init__(id="progress")
        self._left = line()
        self._right = ""

    def show_state(self, table: FoundTable, searching: Searching) -> None:
        """Show how far the search is."""
        running = searching.is_running
        self._left = _counted(table.found, running, searching.was_stopped) if not table.is_old else _SEARCHING
        words = [f"by {table.order}{', reversed' if table.is_reversed else ''}"]
        words += [f"with {table.filter!r}"] if table.filter else []
        words += [f"{len(table.marked)} marked"] if table.marked else []
        self._right = " · ".join(words) if table.found else ""
        self.repaint()

    def build(self, width: int) -> Line:
        """Lay both out, the way rows are sorted where there is room."""
        return spread(self._left, line(Span(f"{clip(self._right, width // 2)} ", "dim")), width)


_SEARCHING = line(Span(" ▸ ", "accent"), Span("searching…", "value"), Span("  esc stops", "dim"))


def _counted(found: Found | None, running: bool, was_stopped: bool) -> Line:
    if found is None:
        return _SEARCHING if running else line()
    counts = f"{spaced(found.tried)} tried, {spaced(found.fitting)} fit, {format_seconds(found.seconds)}"
    share = f"{found.share:.0%}".replace("%", " %")
    if running:
        end = "stopping…" if was_stopped else "esc stops"
        known = f", {share}" if found.share else ""
        return line(Span(" ▸ ", "accent"), Span(f"{counts}{known}", "value"), Span(f"  {end}", "dim"))
    if not found.is_complete:
        return line(Span(" ! ", "warn"), Span(counts, "value"), Span(f", stopped at {share}: the best so far", "warn"))
    return line(Span(" ✓ ", "good"), Span(counts, "value"))


def spaced(number: int) -> str:
    """Return a whole number with its thousands apart."""
    return f"{number:,}".replace(",", " ")
