"""How far the benchmarks are."""

from __future__ import annotations

from capacity_tui.tui.shown.measured import BenchmarkStep
from capacity_tui.tui.terminal.text import Span, fit, line
from capacity_tui.tui.widgets.lines import Lines

_CELLS = 20
_IDLE = Span("B measures memory, CPU, GPUs, disk and network; some ten seconds", "dim")


class MeasuringBar(Lines):
    """Two lines: which benchmark runs, and the last figure with its spread."""

    def __init__(self) -> None:
        super().__init__(id="measuring")
        self._first = line(_IDLE)
        self._latest = ""
        self._warning = ""

    def begin(self, warning: str) -> None:
        """Say that it begins, and while it lasts what may spoil it."""
        self._warning = warning
        self.show_text("measuring…")

    def show_step(self, step: BenchmarkStep) -> None:
        """Show how far the benchmarks are; the last figure stays until the next one."""
        filled = _CELLS * (step.number - 1) // max(step.total, 1)
        self._first = line(
            *("[", Span("━" * filled, "accent"), " " * (_CELLS - filled), "]"),
            *(Span(f" {step.number} of {step.total} ", "label"), Span(step.name, "best")),
            Span("  esc stops", "dim"),
            Span(f"  ! {self._warning}" if self._warning else "", "warn"),
        )
        self._latest = f"last: {step.latest}" if step.latest else self._latest
        self.repaint()

    def show_text(self, text: str, role: str = "value") -> None:
        """Say how it began or ended."""
        self._first, self._latest = line(Span(text, role)), ""
        self.repaint()

    def show_latest(self, text: str) -> None:
        """Say something below how it ended."""
        self._latest = text
        self.repaint()

    def repaint(self) -> None:
        """Paint what changed."""
        lines = [self._first, line(Span(self._latest, "value"))] if self._latest else [self._first]
        self.show([fit(shown, self.size.width) for shown in lines])

    def on_resize(self) -> None:
        """Lay the lines out for the new width."""
        self.repaint()
