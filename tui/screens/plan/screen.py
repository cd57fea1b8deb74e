"""The plan screen: five panels over one store."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.messages import (
    Compared,
    Detected,
    Explained,
    Failed,
    LeftBehindFound,
    MachineChanged,
    Opened,
    Restored,
    Sampled,
)
from capacity_tui.tui.screens.dialogs.text_dialog import TextDialog
from capacity_tui.tui.screens.plan.comparison import ComparisonTable
from capacity_tui.tui.screens.plan.field_list import FieldList
from capacity_tui.tui.screens.plan.filing import Filing
from capacity_tui.tui.screens.plan.hardware import Hardware
from capacity_tui.tui.screens.plan.live import Live
from capacity_tui.tui.screens.plan.why import Why, explain_lines
from capacity_tui.tui.screens.plan.workers import UNFOCUSED_SLOWDOWN
from capacity_tui.tui.terminal.text import Line, Span, line, wrap
from capacity_tui.tui.widgets.bars import Header, Hint
from capacity_tui.tui.widgets.panel import Panel
from capacity_tui.tui.widgets.prompt import Prompt


class PlanScreen(Filing):
    """Shows the plan, and reacts to what the threads report."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("plan")
    AUTO_FOCUS: ClassVar[str] = "#config"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-tiny-width"),
        (60, "-narrow"),
        (70, "-medium"),
        (100, "-wide"),
        (116, "-broad"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-tiny-height"),
        (18, "-short"),
        (32, "-tall"),
    ]

    def compose(self) -> ComposeResult:
        """Lay the panels out."""
        yield Header()
        with Horizontal(id="body"):
            with Container(id="left"):
                yield Hardware()
                yield FieldList()
            with Container(id="right"):
                yield ComparisonTable()
                yield Why()
                yield Live(self.glyphs)
        yield Hint()
        yield self.footer

    def on_mount(self) -> None:
        """Paint first, then start the threads."""
        self.query_one(Hint).set_class(self.settings.hint, "-shown")
        self._mark_current(self.query_one(FieldList))
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        self.mount(Prompt())
        self.begin(self.source, self.accelerator)
        self.watch(self.app, "app_focus", self._restart_live, init=False)
        self._restart_live()

    # What the threads report

    @on(Detected)
    def show_detected(self, event: Detected) -> None:
        """Show this machine until a plan says what it is planned for."""
        self.query_one(Hardware).show_rows(event.hardware)
        # A plan that was opened meanwhile knows nothing of this machine yet.
        self.estimate_again()

    @on(Opened)
    def show_opened(self, event: Opened) -> None:
        """Take up another plan, unless yet another was asked for meanwhile."""
        if not self.requests.is_newest(event.request):
            return
        replaces_changes = self.store.is_changed
        self.store.open(event.document, event.path)
        if replaces_changes:
            self.say("u brings the plan before back, with its changes")
        self.plan_changed()

    @on(LeftBehindFound)
    def offer_left_behind(self, event: LeftBehindFound) -> None:
        """Offer what earlier runs of the program left behind."""
        self.offer(event.found)

    @on(Restored)
    def show_restored(self, event: Restored) -> None:
        """Take up restored plans, the last edited one on top of the others."""
        if not self.requests.is_newest(event.request):
            event.kept.leave()
            return
        for document, path in reversed(event.plans):
            self.store.open(document, path, is_saved=False)
        self.restored.append(event.kept)
        self.plan_changed()
        self.say("restored; s saves it", "good")

    @on(Compared)
    def show_compared(self, event: Compared) -> None:
        """Show new numbers, unless they answer for an earlier plan."""
        if not self.store.accept(event.generation, event.comparison):
            return
        self.query_one(Hardware).show_rows(event.comparison.hardware)
        self.show_columns()
        self.show_fields()
        self.ask_why()

    @on(MachineChanged)
    def estimate_again(self) -> None:
        """Take up what is known about this machine by now."""
        engine = self.room.loaded
        if engine is not None:
            self.store.renew(engine.renewed)
            self.plan_changed()

    @on(Explained)
    def show_explained(self, event: Explained) -> None:
        """Show where the number under the cursor comes from."""
        if self.requests.is_newest(event.request) and not self.store.is_stale:
            self.query_one(Why).show_explanation(event.explanation)

    @on(Sampled)
    def show_sample(self, event: Sampled) -> None:
        """Add a sample to the graphs."""
        if not self.is_paused:
            self.query_one(Live).take(event.sample)

    @on(Failed)
    def show_failure(self, event: Failed) -> None:
        """Show what went wrong where it matters, unless it was asked for again; old numbers stay."""
        if not self.requests.is_newest(event.request):
            return
        self.failure = event
        is_estimate = event.request is not None and event.request.group == "compare"
        if not is_estimate:
            self.say(event.in_short, "bad")
        if is_estimate or self.store.document is None:
            self.query_one(ComparisonTable).show_trouble(event.title, event.hint or event.detail)

    # What the panels report

    @on(Panel.CursorMoved, "#plans")
    def explain_row(self) -> None:
        """Explain the number under the cursor."""
        self.ask_why()

    @on(Panel.CursorMoved, "#config")
    def forget_refusal(self) -> None:
        """Clear the error of the field that was left."""
        self.query_one(FieldList).show_error("", "")

    @on(Prompt.Closed)
    def return_focus(self) -> None:
        """Go back to the panel that had the focus."""
        self.current.focus()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Mark the panel that has the focus."""
        if isinstance(event.widget, Panel):
            self._mark_current(event.widget)

    def on_key(self) -> None:
        """Stop saying what was said when the next key comes."""
        self.footer.hush()

    # Panels

    def action_panel(self, number: int) -> None:
        """Go to a panel."""
        panel = next(panel for panel in self.query(Panel) if number == panel.NUMBER)
        # A panel out of sight cannot take the focus, so it is shown first.
        self._mark_current(panel)
        panel.focus()

    def action_panel_beside(self, offset: int) -> None:
        """Go to the next panel, around the end."""
        self.action_panel((self.current.NUMBER - 1 + offset) % len(self.query(Panel)) + 1)

    def action_zoom(self) -> None:
        """Show the current panel alone, or all of them again."""
        self.toggle_class("-zoom")

    def action_back(self) -> None:
        """Show all panels again; with all of them in sight, hide the hint of the first run for good."""
        if self.has_class("-zoom"):
            self.remove_class("-zoom")
            return
        hint = self.query_one(Hint)
        if hint.has_class("-shown"):
            hint.remove_class("-shown")
            self.remember("hint", False)

    def action_detail(self) -> None:
        """Show all of the explanation, or of the last error."""
        explanation = self.query_one(Why).explanation
        if explanation is not None:
            self.app.push_screen(
                TextDialog(explanation.title, lambda width: explain_lines(explanation, width), self.copy_text)
            )

    def action_show_failure(self) -> None:
        """Show all of the last error."""
        failure = self.failure
        if failure is None:
            self.say("nothing went wrong")
            return

        def build(width: int) -> list[Line]:
            parts = ((failure.title, "bad"), (failure.detail, "value"), (failure.hint, "label"))
            wrapped = ((text, role) for whole, role in parts for text in whole.splitlines())
            return [line(Span(piece, role)) for text, role in wrapped for piece in wrap(text, width) or [""]]

        self.app.push_screen(TextDialog("What went wrong", build, self.copy_text))

    def action_machine(self) -> None:
        """Show all about this machine, and measure it."""
        from capacity_tui.tui.screens.machine.screen import MachineScreen

        self.app.push_screen(MachineScreen(self))

    # Live

    def action_pause(self) -> None:
        """Pause the graphs, or go on."""
        self.is_paused = not self.is_paused
        self._restart_live()

    def action_live_rate(self, factor: float) -> None:
        """Sample more or less often."""
        self.set_live_seconds(self.live_seconds * factor)
        self._restart_live()

    def _restart_live(self) -> None:
        self.workers.cancel_group(self, "live")
        live = self.query_one(Live)
        if self.is_paused:
            live.show_state("paused")
            return
        live.show_state(f"every {self.live_seconds:g} s")
        self.watch_sensors(self.live_seconds * (1.0 if self.app.app_focus else UNFOCUSED_SLOWDOWN))

    def _mark_current(self, panel: Panel) -> None:
        """Mark a panel and its column, which decides what stays in sight on a small terminal."""
        self.current = panel
        self.footer.name_keys_of(panel.TITLE.lower())
        for other in self.query(Panel):
            other.set_class(other is panel, "-current")
            other.repaint()
        for column in self.query("#left, #right"):
            column.set_class(panel in column.query(Panel), "-current")
