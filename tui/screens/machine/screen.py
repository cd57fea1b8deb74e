"""The screen of this machine: what is known about it, and measuring it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from capacity_tui.tui.actions import MACHINE, bindings
from capacity_tui.tui.messages import Failed, MachineChanged, Measured, Measuring, Reported
from capacity_tui.tui.mistakes import reported
from capacity_tui.tui.rich_lines import rich_lines
from capacity_tui.tui.screens.dialogs.text_dialog import TextLines
from capacity_tui.tui.screens.machine.measuring import MeasuringBar
from capacity_tui.tui.terminal.text import Line, Span, line
from capacity_tui.tui.view import BenchmarkStep
from capacity_tui.tui.widgets.bars import Footer
from capacity_tui.tui.widgets.guarded import ClosesOnce

if TYPE_CHECKING:
    from rich.console import RenderableType

    from capacity_tui.tui.screens.plan.screen import PlanScreen


class MachineScreen(ClosesOnce[None]):
    """Shows facts, score, topology, settings and advice; measures on request.

    Args:
        plan: the plan screen, which is told when more is known about the machine.
    """

    TITLE = MACHINE
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("machine"), *bindings("panel")]

    def __init__(self, plan: PlanScreen) -> None:
        super().__init__()
        self._plan = plan
        self._parts: tuple[RenderableType, ...] = ()
        self._generation = 0
        self._cancelled: threading.Event | None = None

    def compose(self) -> ComposeResult:
        """Put the text into a frame, above progress and keys."""
        with Vertical(id="machine-frame") as frame:
            frame.border_title = Content(self.TITLE)
            yield TextLines(self._build)
        yield MeasuringBar()
        yield Footer(self._plan.settings.keys, "machine")

    def on_mount(self) -> None:
        """Put the report together."""
        self._report_again()

    def on_unmount(self) -> None:
        """Stop what is still measured."""
        if self._cancelled is not None:
            self._cancelled.set()

    # Threads

    @work(thread=True, exclusive=True, group="report", exit_on_error=False)
    def report(self, generation: int, ascii_only: bool) -> None:
        """Put together what is known about the machine."""
        with reported(self.post_message):
            parts = self._plan.room.engine().machine_report(self._plan.store.document, ascii_only)
            self.post_message(Reported(generation, parts))

    @work(thread=True, group="benchmark", exit_on_error=False)
    def measure(self, generation: int, cancelled: threading.Event) -> None:
        """Measure the machine, and tell the plan screen even if this one is gone by then."""

        def tell(step: BenchmarkStep) -> None:
            self.post_message(Measuring(generation, step))

        with reported(self.post_message):
            outcome = self._plan.room.engine().benchmark(tell, cancelled)
            self.post_message(Measured(generation, outcome))
            if outcome.figures:
                self._plan.post_message(MachineChanged())

    # What the threads report

    @on(Reported)
    def show_report(self, event: Reported) -> None:
        """Show what is known, unless more is by now."""
        if event.generation == self._generation:
            self._parts = event.parts
            self._repaint()

    @on(Measuring)
    def show_step(self, event: Measuring) -> None:
        """Show how far the benchmarks are, unless they were stopped."""
        if event.generation == self._generation and self._cancelled and not self._cancelled.is_set():
            self.query_one(MeasuringBar).show_step(event.step)

    @on(Measured)
    def show_outcome(self, event: Measured) -> None:
        """Show what was measured."""
        self._cancelled = None
        outcome = event.outcome
        ended = "measured" if outcome.is_complete else "stopped"
        plural = "" if outcome.figures == 1 else "s"
        kept = f"{outcome.figures} figure{plural} kept; estimates use them" if outcome.figures else "nothing to keep"
        self.query_one(MeasuringBar).tell(f"{ended}: {kept}", "good" if outcome.is_complete else "warn")
        if outcome.figures:
            self._report_again()

    @on(Failed)
    def show_failure(self, event: Failed) -> None:
        """Show what went wrong; the plan screen keeps all of it."""
        self._cancelled = None
        self._plan.failure = event
        self.query_one(MeasuringBar).tell(event.in_short, "bad")

    # Actions

    def action_benchmark(self) -> None:
        """Measure the machine, one run at a time."""
        if self._cancelled is None:
            self._generation += 1
            self._cancelled = threading.Event()
            self.query_one(MeasuringBar).tell("measuring…")
            self.measure(self._generation, self._cancelled)

    def action_back(self) -> None:
        """Stop measuring; go back if nothing is measured, or it is being stopped already."""
        if self._cancelled is None or self._cancelled.is_set():
            self.dismiss()
            return
        self._cancelled.set()
        self.query_one(MeasuringBar).tell("stopping…")

    def action_copy(self) -> None:
        """Copy all of it."""
        self._plan.copy_text("\n".join(shown.plain.rstrip() for shown in self._lines.lines) + "\n")
        self.query_one(Footer).say("copied")

    def action_move(self, offset: int) -> None:
        """Scroll by lines."""
        self._lines.scroll_lines(offset)

    def action_page(self, direction: int) -> None:
        """Scroll by pages."""
        self._lines.scroll_lines(direction * max(self._lines.size.height - 1, 1))

    def action_end(self, direction: int) -> None:
        """Scroll to the first or the last line."""
        self._lines.scroll_lines(direction * len(self._lines.lines))

    def on_key(self) -> None:
        """Stop saying what was said when the next key comes."""
        self.query_one(Footer).hush()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.action_move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.action_move(-3)

    @property
    def _lines(self) -> TextLines:
        return self.query_one(TextLines)

    def _report_again(self) -> None:
        self._generation += 1
        self.report(self._generation, self.app.has_class("-ascii"))

    def _repaint(self) -> None:
        lines = self._lines
        lines.show(self._build(lines.size.width))

    def _build(self, width: int) -> list[Line]:
        return rich_lines(self._parts, width) if self._parts else [line(Span("looking at this machine…", "dim"))]
